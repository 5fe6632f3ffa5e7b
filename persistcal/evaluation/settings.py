"""The settings of an evaluation: one record, which all functions, rules and the page receive.

The workflow makes it from the config and a notebook from arguments. A config also lists blocks
of estimators, which a table compares with each other. The command derives its options from the
fields. The module imports nothing, because the Snakefile reads the defaults and the blocks.
"""
# ruff: noqa: RUF009  # fields are made by a function

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal

EVERY = "*"  # in a block, all estimators
Member = tuple[str, str]  # dataset trained on, estimator
Listed = Sequence[Sequence[str]]
Pairs = Literal["all", "adjacent", "first"] | Listed | Mapping[str, Listed]
Conditioning = Literal["odds", "fitted", "cross_fitted"]
CONDITIONINGS: tuple[Conditioning, ...] = ("odds", "fitted")  # unless asked otherwise
MARGINS = {"accuracy": 0.01, "calibration": 0.02}


def _option(
    default: Any,  # noqa: ANN401
    text: str,
    flags: Mapping[str, str] | None = None,
    **settings: Any,  # noqa: ANN401
) -> Any:  # noqa: ANN401
    """Return a field with an option of the command, as in `persistcal.readers.reading`."""
    given = {"default_factory": default.copy} if default == MARGINS else {"default": default}
    return field(**given, metadata={"text": text, "flags": flags, "settings": settings})


@dataclass(frozen=True, kw_only=True)
class EvaluationSettings:
    """Settings of contrast sets, of the bootstrap and of thresholds."""

    precision: float = _option(
        0.9, "Share of correct answers above the threshold, such as 0.9.", type=float
    )
    delta: float = _option(
        0.1, "Probability that a selected threshold misses the precision.", type=float
    )
    pairs: Pairs = _option(
        "all",
        "Pairs of checkpoints that are compared: all, adjacent, first, or v1:v2 …",
        metavar="PAIRS…",
    )
    margin: Mapping[str, float] = _option(
        MARGINS,
        "The largest fall of accuracy, and difference of mean confidence and accuracy, that "
        "count as none (default: accuracy=.01 calibration=.02).",
        metavar="NAME=SHARE…",
    )
    min_contrast: int = _option(20, "Smaller contrast sets are left out of the means.", least=1)
    min_direction: int = _option(
        5,
        "Questions that a pair needs to gain, and to lose, for intervals of metrics that rest "
        "on both.",
        least=1,
    )
    n_replicates: int = _option(
        10_000,
        "",
        {"--replicates": "Bootstrap replicates."},
        least=200,  # fewer make no interval or test
    )
    seed: int = _option(17, "Seed of the bootstrap.", least=0)
    # Conditionings of the contrast metrics that have intervals and tests
    conditionings: Sequence[Conditioning] = CONDITIONINGS
    # Whether the paper's class-stratified draws are made, for the marks in its tables and its
    # headroom
    paper_marks: bool = True


# The least numbers that a user can give
LEAST: dict[str, int] = {
    option.name: option.metadata["settings"]["least"]
    for option in fields(EvaluationSettings)
    if "least" in option.metadata.get("settings", {})
}


def present(block: Sequence[Member], available: Collection[Member]) -> list[Member]:
    """Return the members of `block` that are `available`, in the order of the block."""
    members: list[Member] = []
    for train_dataset, estimator in block:
        if estimator == EVERY:
            members += [member for member in available if member[0] == train_dataset]
        elif (train_dataset, estimator) in available:
            members.append((train_dataset, estimator))
    return members


def named_blocks(
    blocks: Sequence[Sequence[Member]], available: Collection[Member], dataset: str
) -> dict[str, list[Member]]:
    """Return the blocks with at least two members, by name."""
    left = [present(block, available) for block in blocks]
    return {block_name(block, dataset): block for block in left if len(block) > 1}


def block_name(block: Sequence[Member], dataset: str) -> str:
    """Return the name of a block's test, its members: equal blocks share one."""
    return "+".join(
        estimator if train == dataset else f"{train}:{estimator}" for train, estimator in block
    )
