"""How large a model is where the config does not say: read off its files."""

import functools
from math import prod
from pathlib import Path
from typing import Any


@functools.cache
def _weights_in(folder: Path) -> int:
    """Return the weights in the safetensors files of a folder, from their headers alone."""
    from safetensors import SafetensorError, safe_open  # studies without models may lack it

    n = 0
    for path in sorted(folder.glob("*.safetensors")):
        try:
            with safe_open(path, "np") as file:
                n += sum(prod(file.get_slice(name).get_shape()) for name in file.keys())
        except (OSError, SafetensorError):
            continue  # the job that resolves the checkpoint says what is wrong with it
    return n


def weights_on_disk(config: dict[str, Any], model: str) -> int:
    """Return the weights of the largest checkpoint of `model` in a local folder, else 0."""
    about = config["models"].get(model, {})
    repo = about.get("repo")
    if repo is None:
        return 0
    named = (c.get("revision") for c in about.get("checkpoints", {}).values())
    return max((_weights_in(Path(repo, revision)) for revision in named if revision), default=0)
