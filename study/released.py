"""The choices by which the paper, its released code and a study can differ."""

import csv
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from snakemake.common.configfile import load_configfile

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


def _key_paths(node: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    for key, value in node.items():
        if isinstance(value, Mapping):
            yield from ((key, *path) for path in _key_paths(value))
        else:
            yield (key,)
