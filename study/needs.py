"""Needs of a study's estimators, read from their files."""

from pathlib import Path
from typing import Any

from persistcal.confidence.needs import declared_needs

FUNCTIONS = Path(__file__).parents[1] / "persistcal" / "confidence" / "estimators"


def needs_of(function: str) -> tuple[str, ...]:
    """Return the needs of a module of the project's or of a user's file, if it is there.

    Raises
    ------
    ValueError
        When the file is no Python, or its NEEDS are not known ones.
    """
    path = Path(function) if function.endswith(".py") else FUNCTIONS / f"{function}.py"
    try:
        return declared_needs(path.read_text(encoding="utf-8")) if path.exists() else ()
    except (ValueError, SyntaxError) as error:
        raise ValueError(f"{path}: {error}") from error


def all_needs(config: dict[str, Any]) -> dict[str, tuple[str, ...]]:
    """Return the needs of each estimator of the study that is a function."""
    catalogue = config["estimators"]
    names = [name for name in config["study"]["estimators"] if "function" in catalogue[name]]
    return {name: needs_of(catalogue[name]["function"]) for name in names}
