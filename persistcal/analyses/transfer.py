"""Transfer matrices: AUC of adapters trained at one checkpoint and used at each."""

from collections.abc import Mapping, Sequence

import pandas as pd

from persistcal.evaluation.metrics import auc
from persistcal.store.artifacts import TRANSFER


def transfer_matrix(
    answers: Mapping[str, pd.DataFrame],
    scores: pd.DataFrame,
    sets: Mapping[str, Sequence[str]],
    *,
    train_dataset: str,
) -> pd.DataFrame:
    """Return the full-set AUC of every adapter at every checkpoint: the table TRANSFER.

    The AUC is the mean over seeds; NaN where all answers are correct, or none.

    Parameters
    ----------
    answers : mapping of str to DataFrame
        By checkpoint, in order, its predictions: columns question_id and correct.
    scores : DataFrame
        Table SCORES: confidences of each checkpoint, with an adapter, in its own answers.
    sets : mapping of str to sequence of str
        For each recipe the names of the training sets whose adapters are used.
    """
    rows = []
    adapters = [(recipe, name) for recipe, names in sets.items() for name in names]
    of_dataset = scores[scores["train_dataset"] == train_dataset]
    for checkpoint, predicted in answers.items():
        own = of_dataset[of_dataset["answers_of"] == checkpoint]
        by_adapter = dict(list(own.groupby(["recipe", "trained_on"])))
        for recipe, trained_on in adapters:
            adapter = f"adapter {recipe!r} trained on {trained_on!r}"
            if (recipe, trained_on) not in by_adapter:
                raise ValueError(f"No scores of {adapter} at checkpoint {checkpoint!r}.")
            values = []
            for seed, scored in by_adapter[recipe, trained_on].groupby("seed"):
                joined = predicted.merge(scored, on="question_id", validate="one_to_one")
                if lost := len(predicted) - len(joined):
                    raise ValueError(
                        f"{lost} answers of checkpoint {checkpoint!r} have no score of "
                        f"{adapter}, seed {seed}."
                    )
                values.append(auc(joined["confidence"], joined["correct"]))
            mean = sum(values) / len(values)
            rows.append((recipe, trained_on, checkpoint, mean, len(predicted)))
    return pd.DataFrame(rows, columns=TRANSFER.but("model", "dataset"))
