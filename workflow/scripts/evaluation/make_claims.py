"""Say of each estimator whether its confidence followed the changes."""

import pandas as pd

from persistcal.evaluation import claims
from persistcal.evaluation.replicates import from_table
from persistcal.evaluation.settings import EvaluationSettings
from persistcal.store.artifacts import CLAIMS, Claims, Predictions, Replicates, empty
from persistcal.store.jobs import log, run


def make_claims(
    predictions: Predictions,
    replicates: Replicates,
    *,
    checkpoints: dict[str, list[str]],
    settings: dict[str, EvaluationSettings],
    is_greedy: bool,
) -> Claims:
    """Return the claims of each model and dataset, see `persistcal.evaluation.claims`.

    `checkpoints` maps models to evaluation checkpoints, and `settings` are by dataset.
    """
    tables = []
    by_place = dict(list(replicates.groupby(["model", "dataset"], sort=False)))
    for place, rows in predictions.groupby(["model", "dataset"], sort=False):
        model, dataset = map(str, place)
        made = claims.make_claims(
            rows,
            from_table(by_place[model, dataset]),
            checkpoints[model],
            settings[dataset],
            is_greedy=is_greedy,
        )
        tables.append(made.assign(model=model, dataset=dataset))
    words = pd.concat(tables)["word"] if tables else pd.Series(dtype=str)
    log.info("%s", words[words.ne("")].value_counts().to_dict())
    return pd.concat(tables, ignore_index=True) if tables else empty(CLAIMS)


if __name__ == "__main__":
    run(make_claims, snakemake)
