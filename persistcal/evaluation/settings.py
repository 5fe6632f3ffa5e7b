"""The settings of an evaluation: one record, which all functions, rules and the page receive.

The workflow makes it from the config and a notebook from arguments. A config also lists blocks
of estimators, which a table compares with each other. The module imports nothing, because the
Snakefile reads the defaults and the blocks.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

EVERY = "*"  # in a block, all estimators
Member = tuple[str, str]  # dataset trained on, estimator
Listed = Sequence[Sequence[str]]
Pairs = Literal["all", "adjacent", "first"] | Listed | Mapping[str, Listed]
Conditioning = Literal["odds", "fitted", "cross_fitted"]
CONDITIONINGS: tuple[Conditioning, ...] = ("odds", "fitted")  # unless asked otherwise
MARGINS = {"accuracy": 0.01, "calibration": 0.02}
# The least numbers that a user can give; fewer replicates make no interval or test
LEAST = {"min_contrast": 1, "min_direction": 1, "n_replicates": 200, "seed": 0}


@dataclass(frozen=True, kw_only=True)
class EvaluationSettings:
    """Settings of contrast sets, of the bootstrap and of thresholds.

    Parameters
    ----------
    min_contrast : int, default=20
        Smaller contrast sets are left out of the contrast metrics.
    pairs : {"all", "adjacent", "first"}, list or mapping, default="all"
        The pairs of checkpoints that have a contrast set, see `contrast.choose_pairs`.
    conditionings : sequence of {"odds", "fitted", "cross_fitted"}, default=("odds", "fitted")
        Conditionings of the contrast metrics that have intervals and tests.
    min_direction : int, default=5
        Questions that each pair needs to gain, and to lose, for an interval and a test of the
        metrics that rest on both.
    n_replicates : int, default=10000
        Bootstrap replicates.
    seed : int, default=17
        Seed of the bootstrap.
    precision, delta : float, default=0.9 and 0.1
        Share of correct answers above a threshold, and the largest probability that a selected
        threshold misses it.
    margin : mapping of str to float, default={"accuracy": 0.01, "calibration": 0.02}
        The largest fall of accuracy, and difference of mean confidence and accuracy, that is
        none in a verdict.
    paper_marks : bool, default=True
        Whether the paper's class-stratified draws are made. Only the marks in its tables and
        its headroom need them.
    """

    min_contrast: int = 20
    pairs: Pairs = "all"
    conditionings: Sequence[Conditioning] = CONDITIONINGS
    min_direction: int = 5
    n_replicates: int = 10_000
    seed: int = 17
    precision: float = 0.9
    delta: float = 0.1
    margin: Mapping[str, float] = field(default_factory=MARGINS.copy)
    paper_marks: bool = True


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
