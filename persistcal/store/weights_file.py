"""Safetensors files that carry a digest of what is in them."""

import json
from collections.abc import Mapping
from itertools import chain

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from persistcal.store.files import DamagedFileError, FilePath, digest

SEAL = "sha256"


def _digest(tensors: Mapping[str, Tensor], metadata: Mapping[str, str], beside: str) -> str:
    about = {name: [str(t.dtype), [*t.shape]] for name, t in sorted(tensors.items())}
    texts = json.dumps([about, dict(metadata), beside], sort_keys=True)
    flat = (tensor.contiguous().view(-1) for _, tensor in sorted(tensors.items()))
    return digest(chain([texts], (tensor.view(torch.uint8).numpy().data for tensor in flat)))


def seal(tensors: Mapping[str, Tensor], metadata: Mapping[str, str], beside: str = "") -> bytes:
    """Return a safetensors file that `read_sealed` reads.

    The digest also covers the content of a file that goes with it, `beside`.
    """
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    file = save(tensors, metadata={**metadata, SEAL: _digest(tensors, metadata, beside)})
    # The header's keys are in an order of chance; sorted, they make the same file each time.
    length = int.from_bytes(file[:8], "little")
    header = json.dumps(json.loads(file[8 : 8 + length]), sort_keys=True).encode()
    header += b" " * (-len(header) % 8)
    return len(header).to_bytes(8, "little") + header + file[8 + length :]


def read_metadata(path: FilePath) -> dict[str, str]:
    """Return the metadata of a safetensors file."""
    with safe_open(path, framework="pt") as file:
        return dict(file.metadata() or {})


def read_sealed(path: FilePath, beside: str = "") -> dict[str, Tensor]:
    """Return the tensors of a safetensors file; those of one by `seal` are as they were.

    Other programs' files carry no digest and are read as they are.
    """
    try:
        with safe_open(path, framework="pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}
            metadata = dict(file.metadata() or {})
        sealed = metadata.pop(SEAL, None)
        if sealed and _digest(tensors, metadata, beside) != sealed:
            raise ValueError("its content is not what was written")
    except (SafetensorError, ValueError, OSError) as error:
        raise DamagedFileError(
            f"{path} is damaged, or what is beside it ({error}); delete it, so that it is made "
            "again."
        ) from error
    return tensors
