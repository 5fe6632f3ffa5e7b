"""Splits of answers: those of the questions, and halves of the samples of test questions."""

HALVES = ("half1", "half2")  # two independent asks
SPLITS = ("train", "test", *HALVES)
LEAST_SAMPLES = 4  # of a question, so that each half has two


def split_of_questions(split: str) -> str:
    """Return the split of the questions that the answers of a split belong to.

    >>> [split_of_questions(split) for split in ("train", "half2")]
    ['train', 'test']
    """
    return "test" if split in HALVES else split
