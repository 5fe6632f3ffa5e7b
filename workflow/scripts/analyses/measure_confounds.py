"""Measure the scores of baselines that use only groups of questions, or the answer."""

import pandas as pd

from persistcal.answers.clusters import with_groups
from persistcal.confidence import confounds
from persistcal.confidence.confounds import count_references, rate_answers
from persistcal.evaluation.settings import EvaluationSettings
from persistcal.report.analysis_tables import confounds_table
from persistcal.store.artifacts import CONFOUNDS, Answers, Confounds, Facts, Questions
from persistcal.store.jobs import log, run


def measure_confounds(
    answers: Answers,
    questions: Questions,
    facts: Facts,
    *,
    settings: dict[str, EvaluationSettings],
    labels: dict[str, dict[str, str]],
) -> tuple[str, Confounds]:
    """Return the scores of each attribute of a question and answer, as LaTeX and as rows.

    `settings` are by dataset, and `facts` are the facts behind the questions, if any.
    """
    tables = []
    for names, given in answers.groupby(["model", "dataset"], sort=False):
        model, dataset = map(str, names)
        asked, asked_for = (table[table["dataset"] == dataset] for table in (questions, facts))
        given = with_groups(given, asked)
        if given["answer"].notna().all():  # imported predictions have no texts
            trained = asked[(asked["split"] == "train") & ~asked["excluded"]]
            references = count_references(trained["references"])
            given = pd.concat([given, rate_answers(given, references)], axis=1)
        attributes = confounds.attributes(asked, None if asked_for.empty else asked_for)
        try:
            scores = confounds.measure_confounds(
                given, attributes, list(given["checkpoint"].unique()), settings[dataset]
            )
        except ValueError as error:
            raise ValueError(
                f"{model}, {dataset}: {error}; take {dataset!r} out of "
                "analyses.confounds.datasets."
            ) from error
        tables.append(scores.assign(model=model, dataset=dataset))
        for row in scores.itertuples():
            log.info("%s, %s, %s: Δ₀ᵇ %.3f", model, dataset, row.attribute, row.delta0_balanced)
    rows = pd.concat(tables)[CONFOUNDS.schema.names]
    return confounds_table(rows, labels=labels), rows


if __name__ == "__main__":
    run(measure_confounds, snakemake)
