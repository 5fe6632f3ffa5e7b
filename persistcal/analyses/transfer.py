"""Transfer matrices: how well an adapter of some checkpoints ranks another one's answers."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from persistcal.evaluation.metrics import auc


def transfer_matrix(
    answers: Mapping[str, pd.DataFrame],
    scores: pd.DataFrame,
    sets: Mapping[str, Sequence[str]],
    *,
    train_dataset: str,
) -> pd.DataFrame:
    """Return the full-set AUC of every adapter at every checkpoint.

    Parameters
    ----------
    answers : mapping of str to DataFrame
        By checkpoint, in order, its predictions: columns question_id and correct.
    scores : DataFrame
        Table SCORES: what each checkpoint's weights give to its own answers.
    sets : mapping of str to sequence of str
        For each recipe the names of the training sets whose adapters are used.
    train_dataset : str
        The dataset that the adapters were trained on.

    Returns
    -------
    DataFrame
        Columns recipe, trained_on, checkpoint, auc (mean over seeds; NaN where all
        answers are correct, or none) and n, the number of answers.

    Raises
    ------
    ValueError
        When an adapter has no scores at a checkpoint, or lacks one of its answers.
    """
    rows: list[dict[str, Any]] = []
    for checkpoint, predicted in answers.items():
        own = scores[
            (scores["answers_of"] == checkpoint) & (scores["train_dataset"] == train_dataset)
        ]
        by_adapter = dict(list(own.groupby(["recipe", "trained_on"])))
        for recipe, names in sets.items():
            for trained_on in names:
                adapter = f"adapter {recipe!r} trained on {trained_on!r}"
                if (recipe, trained_on) not in by_adapter:
                    raise ValueError(f"No scores of {adapter} at checkpoint {checkpoint!r}.")
                values = []
                for seed, scored in by_adapter[recipe, trained_on].groupby("seed"):
                    joined = predicted.merge(scored, on="question_id", validate="one_to_one")
                    if len(joined) < len(predicted):
                        raise ValueError(
                            f"{len(predicted) - len(joined)} answers of checkpoint "
                            f"{checkpoint!r} have no score of {adapter}, seed {seed}."
                        )
                    values.append(auc(joined["confidence"], joined["correct"]))
                rows.append(
                    {
                        "recipe": recipe,
                        "trained_on": trained_on,
                        "checkpoint": checkpoint,
                        "auc": sum(values) / len(values),
                        "n": len(predicted),
                    }
                )
    return pd.DataFrame(rows)
