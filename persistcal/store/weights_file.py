"""Read and write safetensors files that contain a digest of their content."""

import json
from collections.abc import Mapping
from itertools import chain

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from persistcal.store.files import DamagedFileError, FilePath, digest

SEAL = "sha256"


def _digest(tensors: Mapping[str, Tensor], metadata: Mapping[str, str], companion: str) -> str:
    shapes = {name: [str(t.dtype), [*t.shape]] for name, t in sorted(tensors.items())}
    texts = json.dumps([shapes, dict(metadata), companion], sort_keys=True)
    flat = (tensor.contiguous().view(-1) for _, tensor in sorted(tensors.items()))
    return digest(chain([texts], (tensor.view(torch.uint8).numpy().data for tensor in flat)))


def seal(
    tensors: Mapping[str, Tensor], metadata: Mapping[str, str], companion: str = ""
) -> bytes:
    """Return the bytes of a safetensors file with a digest of its tensors and metadata.

    The digest also covers `companion`, the content of a file that must not change either.
    """
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    file = save(tensors, metadata={**metadata, SEAL: _digest(tensors, metadata, companion)})
    # The library writes the header's keys in random order; sort them for a stable file.
    length = int.from_bytes(file[:8], "little")
    header = json.dumps(json.loads(file[8 : 8 + length]), sort_keys=True).encode()
    header += b" " * (-len(header) % 8)
    return len(header).to_bytes(8, "little") + header + file[8 + length :]


def read_metadata(path: FilePath) -> dict[str, str]:
    """Return the metadata of a safetensors file."""
    with safe_open(path, framework="pt") as file:
        return dict(file.metadata() or {})


def read_sealed(path: FilePath, companion: str = "") -> dict[str, Tensor]:
    """Return the tensors of a safetensors file, after a check of the digest by `seal`.

    Files of other programs have no digest and are not checked.

    Raises
    ------
    DamagedFileError
        If the file cannot be read or does not match its digest.
    """
    try:
        with safe_open(path, framework="pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}
            metadata = dict(file.metadata() or {})
        sealed = metadata.pop(SEAL, None)
        if sealed and _digest(tensors, metadata, companion) != sealed:
            raise ValueError("its content does not match its digest")
    except (SafetensorError, ValueError, OSError) as error:
        raise DamagedFileError(
            f"{path} or the file next to it is damaged ({error}); delete it, so that it is "
            "made again."
        ) from error
    return tensors
