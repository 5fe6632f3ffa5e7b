"""Agreement of two states in which questions became wrong since a third one."""

from collections.abc import Sequence

import pandas as pd

from persistcal.judge.audit import kappa


def measure_agreement(
    answers: pd.DataFrame,
    categories: pd.Series,
    *,
    reference: str,
    pairs: Sequence[tuple[str, str]],
) -> pd.DataFrame:
    """Count the answers that are gone at each of two states, and at both: the table AGREEMENTS.

    Of the test questions those count that are right at the checkpoint `reference`; one that is
    not right at a state is gone. Each pair has a row for each category with a known answer, and
    one for all questions, whose category is empty. Cohen's kappa is NaN unless answers are both
    gone and kept.
    """
    tested = answers[answers["split"] == "test"]
    right = tested.pivot(index="question_id", columns="checkpoint", values="correct").dropna()
    known = right[right[reference].astype(bool)].astype(bool)
    of = categories.reindex(known.index)
    groups = [("", known), *known.groupby(of, sort=True)]
    rows = []
    for first, second in pairs:
        for category, group in groups:
            one, other = (~group[state].to_numpy() for state in (first, second))
            rows.append(
                {
                    "first": first,
                    "second": second,
                    "category": category,
                    "known": len(group),
                    "gone_first": one.sum(),
                    "gone_second": other.sum(),
                    "gone_both": (one & other).sum(),
                    "kappa": kappa(one, other),
                }
            )
    return pd.DataFrame(rows)
