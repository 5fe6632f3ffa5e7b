"""Needs of a study's estimators, read from their files."""

from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from persistcal.confidence.needs import INSTALLED, declared_needs

FUNCTIONS = Path(__file__).parents[1] / "persistcal" / "confidence" / "estimators"


def file_of(function: str) -> Path | None:
    """Return the file of an estimator's function, or None where no package has it.

    An installed package, which declares it as an entry point, is found without its import.
    """
    if function.endswith(".py"):
        return Path(function)
    if (own := FUNCTIONS / f"{function}.py").exists():
        return own
    for point in entry_points(group=INSTALLED, name=function):
        package, *parts = point.module.split(".")
        spec = find_spec(package)
        if spec and spec.submodule_search_locations and parts:
            return Path(spec.submodule_search_locations[0], *parts).with_suffix(".py")
        if spec and spec.origin:
            return Path(spec.origin)
    return None


def installed() -> list[str]:
    """Return the names of estimators that installed packages declare."""
    return sorted(entry_points(group=INSTALLED).names)


def needs_of(function: str) -> tuple[str, ...]:
    """Return the needs of an estimator's function, if its file is there."""
    path = file_of(function)
    try:
        if path is None or not path.exists():
            return ()
        return declared_needs(path.read_text(encoding="utf-8"))
    except (ValueError, SyntaxError) as error:
        raise ValueError(f"{path}: {error}") from error


def all_needs(config: dict[str, Any]) -> dict[str, tuple[str, ...]]:
    """Return the needs of each estimator of the study that is a function."""
    catalogue = config["estimators"]
    names = [name for name in config["study"]["estimators"] if "function" in catalogue[name]]
    return {name: needs_of(catalogue[name]["function"]) for name in names}
