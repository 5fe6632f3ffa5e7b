"""Splits of answers: the splits of questions, and further asks of the test questions."""

from typing import Any

MOST_HALVINGS = 20
# Two halves of the test samples are independent asks, from one halving
HALVES = tuple(f"half{number}" for number in range(1, 2 * MOST_HALVINGS + 1))
AGAIN = "again"  # asked again after other few-shot examples
FURTHER_ASKS = (*HALVES, AGAIN)
SPLITS = ("train", "test", *FURTHER_ASKS)
LEAST_SAMPLES = 4  # samples per question, so that each half has two


def ask_of_half(halving: Any, side: Any) -> Any:  # noqa: ANN401 - numbers, or columns
    """Return the number in the column `ask` of a side, 1 or 2, of a halving from 0.

    >>> ask_of_half(0, 1), ask_of_half(0, 2), ask_of_half(3, 2)
    (101, 102, 402)
    """
    return 100 * (halving + 1) + side


def split_of_questions(split: str) -> str:
    """Return the split of the questions that the answers of a split belong to.

    >>> [split_of_questions(split) for split in ("train", "half2")]
    ['train', 'test']
    """
    return "test" if split in FURTHER_ASKS else split
