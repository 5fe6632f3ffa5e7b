"""Questions with a passage before them: what a state is asked that has a context."""

from collections.abc import Iterable, Sequence

import pandas as pd

from persistcal.imports.user_tables import UserTableError, check_columns, texts
from persistcal.questions.templates import check_fields
from persistcal.store.artifacts import QUESTIONS

NEEDED = ("question_id", "passage")
KNOWN = sorted({*NEEDED, "dataset"})


def with_passages(
    questions: pd.DataFrame, rows: pd.DataFrame, *, prompt: str, splits: Sequence[str]
) -> pd.DataFrame:
    """Return `questions` with the passage of each put before it.

    A user's `rows` have columns question_id and passage, and dataset where they are about
    several. Questions of these `splits` need a passage; others have one where there is a row.
    """
    check_columns(list(rows.columns), NEEDED, ["dataset"], unknown=f"known are {KNOWN}")
    check_fields(prompt, "the context's prompt", ["passage", "question"])
    given = pd.DataFrame({name: texts(rows, name, one_line=False) for name in KNOWN})
    if "dataset" in rows:
        given = given[given["dataset"].isin(questions["dataset"])]
    known = dict(zip(questions["question_id"], questions["question"], strict=True))
    passages = dict(zip(given["question_id"], given["passage"], strict=True))
    asked = questions["split"].isin(splits) & ~questions["excluded"].astype(bool)
    ids, needed = given["question_id"], questions.loc[asked, "question_id"]
    problems: dict[str, Iterable[str]] = {
        "is there twice; keep one passage of it": ids[ids.duplicated()],
        "is none of the dataset's; remove it, or add a column dataset where the file is about "
        "several": ids[~ids.isin(list(known))],
        "has no passage; add one": [one for one in needed if not passages.get(one)],
    }
    for problem, wrong in problems.items():
        if named := list(wrong):
            raise UserTableError(f"question {named[0]!r} {problem}")
    before, _, after = prompt.rstrip("\n").partition("{question}")

    def put(question: str) -> str:
        passage = passages.get(question, "")
        parts = (part.replace("{passage}", passage) for part in (before, after))
        return known[question] if not passage else known[question].join(parts)

    texts_asked = questions["question_id"].map(put)
    return questions.assign(question=texts_asked)[QUESTIONS.schema.names]
