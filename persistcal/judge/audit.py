"""An audit of the judge: a sheet for a person to fill in, and its summary.

The sheet hides the judge's labels and is in random order, so that a person cannot
see which questions are from the contrast set.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from persistcal.evaluation.proportions import wilson
from persistcal.questions.question_list import truths_of
from persistcal.store.sheets import Sheet, check_shown, find_rows, read_mark

KINDS = ("contrast", "correct", "incorrect")  # one, both or no answer is correct
ANSWERS = ("earlier", "later")  # the checkpoints with answers on the sheet
GIVEN = ["question_id", "question", "references", "earlier_answer", "later_answer"]
ENTRIES = ["earlier_correct", "later_correct", "reference_correct", "reference_incomplete"]
TO_FILL = [*ENTRIES, "note"]


class AuditError(ValueError):
    """An audit sheet cannot be drawn or read."""


class Draws(NamedTuple):
    """Numbers of questions to draw: right at one of two checkpoints, at both, or at neither."""

    n_contrast: int
    n_correct: int
    n_incorrect: int


def draw_sheet(
    questions: pd.DataFrame,
    earlier: pd.DataFrame,
    later: pd.DataFrame,
    *,
    draws: Draws,
    seed: int,
) -> pd.DataFrame:
    """Draw questions of three kinds, with the answers of two checkpoints on the test split.

    Returns columns `GIVEN` and, empty, `TO_FILL`; refuses fewer of a kind than asked for.
    """
    joined = _both(questions, earlier, later)
    order = _draw(joined, draws, seed)
    rows = joined.set_index("question_id").loc[order].reset_index()
    return rows[GIVEN].assign(**dict.fromkeys(TO_FILL, ""))


def summarise_sheet(
    sheet: Sheet, questions: pd.DataFrame, earlier: pd.DataFrame, later: pd.DataFrame
) -> pd.DataFrame:
    """Compare a filled sheet with the judge's labels; return the table AUDIT_AGREEMENTS.

    Entries of the sheet of `draw_sheet` are yes or no. Empty cells do not count, except that an
    empty `reference_incomplete` means no. Measures, for the questions of the contrast set, the
    others, and all: `agreement` with the judge over answers, and Cohen's kappa;
    `agreement_complete`, the same without incomplete references; `reference_correct` and
    `reference_incomplete` over questions.
    """
    joined = _both(questions, earlier, later).set_index("question_id")
    filled = _read_entries(sheet, joined)
    judged = joined.loc[filled["question_id"]].reset_index()
    contrast = (judged["correct_earlier"] != judged["correct_later"]).to_numpy()
    groups = {"contrast": contrast, "non_contrast": ~contrast, "all": contrast | ~contrast}
    rows = [
        {"group": group, **measure, **share_of(measure["count"], measure["n"])}
        for group, members in groups.items()
        for measure in _measures(filled[members], judged[members])
    ]
    return pd.DataFrame(rows)


def states_of_sheet(
    sheet: Sheet,
    questions: pd.DataFrame,
    earlier: pd.DataFrame,
    later: pd.DataFrame,
    *,
    draws: Draws,
    seed: int,
) -> pd.DataFrame:
    """Return question_id, with its state by the judge and by a person (-1: not labelled).

    There is a row for each question that both checkpoints answered. The state is 2 × (earlier
    answer correct) + (later answer correct), see `persistcal.judge.correction`.
    """
    joined = _both(questions, earlier, later)
    filled = _read_entries(sheet, joined.set_index("question_id"))
    names = filled["question_id"]
    if (foreign := ~names.isin(_draw(joined, draws, seed))).any():
        raise AuditError(
            f"{sheet.path}: question {names[foreign].iloc[0]!r} is not on the sheet that "
            "analyses.audit would draw now, so its chance of being drawn is unknown: the "
            "judge's labels, the sizes or the seed have changed. Set them back, or draw and "
            "fill in a new sheet."
        )
    judged = 2 * joined["correct_earlier"].astype(int) + joined["correct_later"].astype(int)
    entries = filled.set_index("question_id")
    labelled = 2 * entries["earlier_correct"] + entries["later_correct"]
    person = labelled.reindex(joined["question_id"]).fillna(-1).astype(int)
    return pd.DataFrame(
        {"question_id": joined["question_id"], "judged": judged, "person": person.to_numpy()}
    )


def _both(questions: pd.DataFrame, earlier: pd.DataFrame, later: pd.DataFrame) -> pd.DataFrame:
    """Return the questions that both checkpoints answered, with the columns of a sheet."""
    pairs = earlier.merge(later, on="question_id", suffixes=("_earlier", "_later"))
    rows = questions.set_index("question_id").loc[pairs["question_id"]]
    truths, references = truths_of(questions), []
    for question, usual in rows["references"].items():
        of_states = truths.get(str(question), {}).items()  # which have references of their own
        lines = [f"{text} ({name})" for name, texts in of_states for text in texts]
        references.append(" | ".join([*usual, *lines]))
    return pairs.assign(
        question=rows["question"].to_numpy(),
        references=references,
        **{f"{side}_answer": pairs[f"answer_{side}"] for side in ANSWERS},
    )


def _draw(joined: pd.DataFrame, draws: Draws, seed: int) -> list[str]:
    """Return the questions of a sheet, in its order."""
    right = joined["correct_earlier"].astype(int) + joined["correct_later"]
    generator = np.random.default_rng(seed)
    drawn: list[str] = []
    for kind, n_right, n in zip(KINDS, (1, 2, 0), draws, strict=True):
        ids = joined.loc[right == n_right, "question_id"].to_numpy()
        if len(ids) < n:
            raise AuditError(
                f"An audit needs {n} {kind} questions, and these checkpoints have {len(ids)}; "
                f"lower n_{kind}, or take other checkpoints."
            )
        drawn += generator.choice(ids, n, replace=False).tolist()
    order: list[str] = generator.permutation(drawn).tolist()
    return order


def _read_entries(sheet: Sheet, joined: pd.DataFrame) -> pd.DataFrame:
    """Return question_id and each entry as 1, 0 or NaN; refuse a sheet of other texts.

    `joined` has the present texts of a sheet by question_id.
    """
    rows = find_rows(sheet, "question_id", set(joined.index))
    for name, row in rows.items():
        for column in GIVEN[1:]:
            check_shown(sheet, row, column, joined.at[name, column])
    entries = pd.DataFrame(
        [[read_mark(sheet, row, name) for name in ENTRIES] for row in rows.values()],
        columns=ENTRIES,
        dtype=float,
    )
    if entries[[f"{side}_correct" for side in ANSWERS]].isna().all(axis=None):
        raise AuditError(f"{sheet.path}: no answer of the sheet is labelled yet; fill it in.")
    entries.insert(0, "question_id", list(rows))
    return entries


def _measures(filled: pd.DataFrame, judged: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Yield measure, count, n and kappa of some questions of the sheet."""
    complete = (filled["reference_incomplete"] != 1).to_numpy()
    counted = {"agreement": complete | ~complete, "agreement_complete": complete}
    for name, rows in counted.items():
        person = np.concatenate([filled.loc[rows, f"{side}_correct"] for side in ANSWERS])
        judge = np.concatenate([judged.loc[rows, f"correct_{side}"] for side in ANSWERS])
        answered = ~np.isnan(person)
        person, judge = person[answered] == 1, judge[answered].astype(bool)
        yield {
            "measure": name,
            "count": int((person == judge).sum()),
            "n": len(person),
            "kappa": kappa(person, judge),
        }
    looked_up = filled[filled["reference_correct"].notna()]
    for name in ("reference_correct", "reference_incomplete"):
        count = int((looked_up[name] == 1).sum())
        yield {"measure": name, "count": count, "n": len(looked_up), "kappa": float("nan")}


def share_of(count: int, n: int) -> dict[str, float]:
    """Return `count` of `n` as a share with its 95 % Wilson score interval; NaN of none."""
    if n == 0:
        return dict.fromkeys(("share", "lower", "upper"), float("nan"))
    lower, upper = wilson(count / n, n)
    return {"share": count / n, "lower": float(lower), "upper": float(upper)}


def kappa(judge: NDArray[np.bool_], foreign: NDArray[np.bool_]) -> float:
    """Return Cohen's kappa of two raters; NaN unless both labels occur.

    Cohen, "A Coefficient of Agreement for Nominal Scales", Educational and Psychological
    Measurement 1960.
    """
    if len(np.union1d(judge, foreign)) < 2:
        return float("nan")
    from sklearn.metrics import cohen_kappa_score  # takes longer to import than to compute

    return float(cohen_kappa_score(judge, foreign))
