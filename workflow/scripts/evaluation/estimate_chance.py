"""Estimate which flips are chance, and the metrics of those that are not."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from persistcal.evaluation.arrange import arrange
from persistcal.evaluation.chance import adjusted_metrics, flips_by_chance
from persistcal.evaluation.contrast import Pairs, choose_pairs, contrast_sets
from persistcal.store.artifacts import ChanceAdjusted, ChanceFlips, Predictions, Questions
from persistcal.store.jobs import log, run


def estimate_chance(
    predictions: Predictions,
    questions: Questions,
    *,
    checkpoints: Mapping[str, Sequence[str]],
    min_contrast: Mapping[str, int],
    pairs: Pairs,
    n_replicates: int,
    seed: int,
) -> tuple[ChanceFlips, ChanceAdjusted]:
    """Return both tables of `persistcal.evaluation.chance` on all data that have options.

    `checkpoints` are by model those of the evaluation; `min_contrast` is by dataset.
    """
    how = {"n_replicates": n_replicates, "seed": seed}
    n_options = {}
    for dataset, rows in questions.groupby("dataset"):
        options = rows.set_index("question_id")["options"]
        n_options[dataset] = options.map(len, na_action="ignore").fillna(0).to_dict()
    flips, adjusted = [], []
    for names, rows in predictions.groupby(["model", "dataset"], sort=False):
        model, dataset = map(str, names)
        if not any(n_options[dataset].values()):
            log.info("No question of %s has options, so nothing there is chance", dataset)
            continue
        answers = arrange(rows, checkpoints[model])
        chosen = choose_pairs(pairs, answers.checkpoints)
        sets = contrast_sets(answers.correct, min_contrast=min_contrast[dataset], pairs=chosen)
        of_each = np.array([n_options[dataset][q] for q in answers.questions], int)
        place = {"model": model, "dataset": dataset}
        flips.append(flips_by_chance(answers, sets, of_each, **how).assign(**place))
        adjusted.append(adjusted_metrics(answers, sets, of_each, **how).assign(**place))
        found = flips[-1][["improvement", "regression"]].to_numpy().sum()
        said = "%s on %s: %.0f of %d flips are expected by chance"
        log.info(said, model, dataset, flips[-1]["chance"].sum(), found)
    if not flips:
        raise ValueError(
            "evaluation.chance is true, but no question of this study has options; set it to "
            "false, or give its questions options"
        )
    return pd.concat(flips), pd.concat(adjusted)


if __name__ == "__main__":
    run(estimate_chance, snakemake)
