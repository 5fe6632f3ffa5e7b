"""What the paper, its release and a study share, and the choices by which they can differ."""

import csv
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from snakemake.common.configfile import load_configfile

from study.checkpoints import Config
from study.study import Study

OVERLAY = "config/as_released.yaml"


def settings_compared(config: Mapping[str, Any], project: Path) -> str:
    """Return the settings of `config` for each choice in `config/as_released.yaml`.

    For imported results only the choices of steps that run here are returned.
    """
    chosen = {}
    for path in _key_paths(load_configfile(project / OVERLAY)):
        value: Any = config
        for key in path:
            value = value.get(key) if isinstance(value, Mapping) else None
        chosen[path] = value
    study = config["study"]
    if study["predictions"]:
        return f"study.predictions: {study['predictions']}"
    if study["source"] == "release":
        chosen = {path: value for path, value in chosen.items() if "posthoc" in path}
    return "; ".join(f"{'.'.join(path)}: {json.dumps(value)}" for path, value in chosen.items())


def shares_cells(labels: Mapping[str, Mapping[str, str]], printed: Path) -> bool:
    """Return whether the paper has `printed` a number about a model and dataset of a study.

    Both go by their display names, `labels`.
    """
    display_names = set(labels["models"].values()), set(labels["datasets"].values())
    with printed.open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file)
        return any(
            row["model"] in display_names[0] and row["eval_dataset"] in display_names[1]
            for row in rows
        )


def release_model(study: Study, name: str) -> Config:
    """Return the repository of a model and its revisions by checkpoint."""
    described = study.described(name)
    revisions = {c: entry["revision"] for c, entry in described.items()}
    groups = ("earlier", "evaluation")
    return {
        "repo": study.config["models"][name]["repo"],
        **{g: {c: revisions[c] for c in study.group(name, g)} for g in groups},
    }


def release_dataset(study: Study, name: str) -> Mapping[str, Any]:
    """Return the splits of a dataset of the release, and its training datasets."""
    splits = ("train", "test", "train_datasets")
    return {k: value for k, value in study.config["datasets"][name].items() if k in splits}


def _key_paths(node: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    for key, value in node.items():
        if isinstance(value, Mapping):
            yield from ((key, *path) for path in _key_paths(value))
        else:
            yield (key,)
