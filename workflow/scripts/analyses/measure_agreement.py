"""Measure the agreement of states on lost answers."""

import pandas as pd

from persistcal.judge import accuracy
from persistcal.report.analysis_tables import agreement_table
from persistcal.store.artifacts import AGREEMENTS, Agreements, Answers, Questions
from persistcal.store.jobs import run


def measure_agreement(
    answers: Answers,
    questions: Questions,
    *,
    reference: str,
    pairs: list[tuple[str, str]],
    labels: dict[str, dict[str, str]],
    checkpoints: dict[str, dict[str, str]],
) -> tuple[str, Agreements]:
    """Return the answers that are gone at each of two states, as a LaTeX table and as rows.

    `checkpoints` are display names by model.
    """
    tables = []
    for names, given in answers.groupby(["model", "dataset"], sort=False):
        model, dataset = map(str, names)
        asked = questions[questions["dataset"] == dataset].set_index("question_id")["category"]
        agreement = accuracy.measure_agreement(given, asked, reference=reference, pairs=pairs)
        tables.append(agreement.assign(model=model, dataset=dataset))
    rows = pd.concat(tables)[AGREEMENTS.schema.names]
    return agreement_table(rows, labels=labels, checkpoints=checkpoints), rows


if __name__ == "__main__":
    run(measure_agreement, snakemake)
