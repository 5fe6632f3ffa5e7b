"""Splits of answers: those of the questions, and further asks of the test questions."""

HALVES = ("half1", "half2")  # of the samples of test: two independent asks
AGAIN = "again"  # asked again after other few-shot examples
FURTHER_ASKS = (*HALVES, AGAIN)
SPLITS = ("train", "test", *FURTHER_ASKS)
ASKS = {"test": 0, "half1": 1, "half2": 2, AGAIN: 3}  # the column `ask` of predictions
LEAST_SAMPLES = 4  # of a question, so that each half has two


def split_of_questions(split: str) -> str:
    """Return the split of the questions that the answers of a split belong to.

    >>> [split_of_questions(split) for split in ("train", "half2")]
    ['train', 'test']
    """
    return "test" if split in FURTHER_ASKS else split
