"""Round the pre-trained checkpoints of atlas to float16 and write them as a repository.

`python -m tools.export_checkpoints results/atlas_pretraining FOLDER` reads the results of
`config/atlas_pretraining.yaml` and writes a sub-folder per checkpoint, with SHA256SUMS of all
files. `make pretrain` calls it; `config/atlas.yaml` reads such a folder.
"""

import json
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

from persistcal.models.checkpoint import SUMS, WEIGHTS, Checkpoint
from persistcal.store.files import sha256, write_whole

VERIFIER = "atlas-verifier"


def revisions(results: Path) -> dict[str, Path]:
    """Return the record of each pre-trained checkpoint by its name in the repository."""
    records = {path.stem: path for path in (results / "checkpoints" / "atlas").glob("*.json")}
    records |= {
        path.parent.name.removeprefix("atlas-"): path
        for path in (results / "checkpoints" / VERIFIER).glob("*.json")
    }
    if not records:
        raise SystemExit(
            f"{results} has no checkpoints of atlas; make them with `make pretrain`."
        )
    return records


def write_rounded(checkpoint: Checkpoint, folder: Path) -> None:
    """Write a checkpoint with its weights in float16; refuse numbers beyond its range."""
    checkpoint.check(checkpoint.repo, checkpoint.files | checkpoint.weights)
    source = Path(checkpoint.repo)
    weights = {name: w.half() for name, w in load_file(source / WEIGHTS).items()}
    if large := [name for name, w in weights.items() if not torch.isfinite(w).all()]:
        raise SystemExit(f"{source / WEIGHTS}: {large[0]} has numbers too large for float16.")
    folder.mkdir(parents=True, exist_ok=True)
    for name in checkpoint.files:
        shutil.copyfile(source / name, folder / name)
    edit_json(folder / "config.json", {"dtype": "float16"})
    # These depend on how the tokenizer was loaded, so the first checkpoint's file would differ.
    edit_json(folder / "tokenizer_config.json", {}, ["is_local", "local_files_only"])
    save_file(weights, folder / WEIGHTS, {"format": "pt"})
    (folder / WEIGHTS).chmod(0o644)


def edit_json(path: Path, changes: dict[str, str], removed: Sequence[str] = ()) -> None:
    """Change keys of a JSON file, and remove others."""
    content = json.loads(path.read_text(encoding="utf-8")) | changes
    kept = {key: value for key, value in content.items() if key not in removed}
    write_whole(path, json.dumps(kept, indent=2, ensure_ascii=False) + "\n")


def export(results: Path, folder: Path) -> None:
    """Write all checkpoints of a pre-training into `folder`, and their digests."""
    for name, record in revisions(results).items():
        write_rounded(Checkpoint.read(record), folder / name)
    files = sorted(path for path in folder.glob("*/*") if path.is_file())
    lines = [f"{sha256(path)}  {path.relative_to(folder).as_posix()}\n" for path in files]
    write_whole(folder / SUMS, "".join(lines))


if __name__ == "__main__":
    export(*map(Path, sys.argv[1:]))
