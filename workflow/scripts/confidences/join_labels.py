"""Join an estimator's confidences with the labels of the answers."""

import pandas as pd

from persistcal.answers.clusters import RATED, join_predictions, with_groups
from persistcal.questions.splits import AGAIN, HALVES, ask_of_half
from persistcal.store.artifacts import Answers, Confidences, Predictions, Questions
from persistcal.store.jobs import log, run

# The column `ask` of predictions
ASKS = {
    "test": 0,
    **{half: ask_of_half(*divmod(n, 2)) + 1 for n, half in enumerate(HALVES)},
    AGAIN: 90,
}


def join_labels(
    questions: Questions,
    confidences: Confidences,
    answers: Answers,
    *,
    estimator: str,
    copies: bool,
    splits: list[str],
) -> Predictions:
    """Return the labelled answers to each of `splits`, with confidences and groups.

    Each split is an ask of its own. Halves of samples are there if all checkpoints have them.
    `copies` is True for confidences of another checkpoint in its own answers.
    """
    asks: list[pd.DataFrame] = []
    for split in splits:
        rated, labelled = (table[table["split"] == split] for table in (confidences, answers))
        if asks and set(labelled["checkpoint"]) != set(asks[0]["checkpoint"]):
            break
        joined = join_predictions(labelled, rated[RATED], estimator, copies=copies)
        asks.append(joined.assign(ask=ASKS[split]))
        log.info("%s: %d predictions of %d answers", split, len(joined), len(labelled))
    return with_groups(pd.concat(asks), questions)


if __name__ == "__main__":
    run(join_labels, snakemake)
