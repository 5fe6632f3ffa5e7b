"""Record the machine and the versions of packages behind each result.

Each job writes one line with this into its log, and a study collects these lines.
"""

import json
import logging
import platform
import re
import sys
from collections.abc import Mapping
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Any

from persistcal.store.files import FilePath

log = logging.getLogger(__name__)  # only in files, see `persistcal.store.jobs.log_to`

PACKAGES = ("snakemake", "torch", "transformers", "peft", "numpy", "scipy", "pandas", "pyarrow")
MADE_BY = "made by "


def package_versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that results depend on."""
    versions = {"python": platform.python_version()}
    for package in PACKAGES:
        with suppress(metadata.PackageNotFoundError):
            versions[package] = metadata.version(package)
    return versions


def _matches(pattern: str, files: list[Path]) -> list[str]:
    texts = (file.read_text(encoding="utf-8", errors="replace") for file in files)
    return sorted({name.strip() for text in texts for name in re.findall(pattern, text)})


def machine() -> str:
    """Return the name of the GPUs, if this process uses torch, and else of the processor.

    Names are read from files of the system, because asking CUDA takes memory of the GPU.
    """
    drivers = sorted(Path("/proc/driver/nvidia/gpus").glob("*/information"))
    gpus = _matches(r"Model:(.+)", drivers) if "torch" in sys.modules else []
    processors = [path for path in [Path("/proc/cpuinfo")] if path.exists()]
    names = gpus or _matches(r"model name\s*:(.+)", processors)
    return ", ".join(names) or platform.processor() or platform.machine()


def log_maker() -> None:
    """Write a line about this process into the job's log."""
    log.info("%s%s", MADE_BY, json.dumps({"machine": machine(), **package_versions()}))


def read_makers(logs: FilePath) -> dict[str, list[dict[str, str]]]:
    """Return the machines and versions behind the results of each rule, by its logs."""
    makers: dict[str, list[dict[str, str]]] = {}
    for path in sorted(Path(logs).rglob("*.log")):
        with path.open(encoding="utf-8", errors="replace") as file:
            _, mark, maker = file.readline().partition(MADE_BY)
        rule = makers.setdefault(path.relative_to(logs).parts[0].removesuffix(".log"), [])
        if mark and json.loads(maker) not in rule:
            rule.append(json.loads(maker))
    return makers


def describe_machines(makers: Mapping[str, list[dict[str, Any]]]) -> str:
    """Return the machines with their rules, or only the machine if all rules ran on one.

    >>> describe_machines({"train": [{"machine": "GPU"}], "score": [{"machine": "CPU"}]})
    'CPU (score); GPU (train)'
    """
    rules: dict[str, list[str]] = {}
    for rule, jobs in makers.items():
        for name in {maker["machine"] for maker in jobs}:
            rules.setdefault(name, []).append(rule)
    if len(rules) == 1:
        return next(iter(rules))
    return "; ".join(f"{name} ({', '.join(rules[name])})" for name in sorted(rules))
