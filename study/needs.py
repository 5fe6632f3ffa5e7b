"""Needs of a study's estimators, read from their files."""

from pathlib import Path
from typing import Any

from persistcal.confidence.column_needs import declared_needs

FUNCTIONS = Path(__file__).parents[1] / "persistcal" / "confidence" / "estimators"


def file_of(function: str) -> Path:
    """Return the file of an estimator's function, the user's or the project's own."""
    return Path(function) if function.endswith(".py") else FUNCTIONS / f"{function}.py"


def needs_of(function: str) -> tuple[str, ...]:
    """Return the needs of an estimator's function, if its file is there."""
    path = file_of(function)
    try:
        if not path.exists():
            return ()
        return declared_needs(path.read_text(encoding="utf-8"))
    except (ValueError, SyntaxError) as error:
        raise ValueError(f"{path}: {error}") from error


def all_needs(config: dict[str, Any]) -> dict[str, tuple[str, ...]]:
    """Return the needs of each estimator of the study that is a function."""
    catalogue = config["estimators"]
    names = [name for name in config["study"]["estimators"] if "function" in catalogue[name]]
    return {name: needs_of(catalogue[name]["function"]) for name in names}
