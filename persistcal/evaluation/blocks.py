"""Blocks: the estimators that a table compares with each other. Imports nothing heavy."""

from collections.abc import Collection, Sequence

EVERY = "*"  # in a block, all estimators

Member = tuple[str, str]  # dataset trained on, estimator


def present(block: Sequence[Member], available: Collection[Member]) -> list[Member]:
    """Return the members of `block` that are `available`, in the order of the block."""
    chosen: list[Member] = []
    for train_dataset, estimator in block:
        if estimator == EVERY:
            chosen += [member for member in available if member[0] == train_dataset]
        elif (train_dataset, estimator) in available:
            chosen.append((train_dataset, estimator))
    return chosen


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
