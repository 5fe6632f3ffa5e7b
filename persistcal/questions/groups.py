"""Groups of questions about one fact or document, which change together."""

from collections.abc import Sequence

import pandas as pd

from persistcal.store.user_files import UserTableError


def check_groups(
    names: Sequence[str] | pd.Series, questions: Sequence[str] | pd.Series
) -> None:
    """Refuse a column `group` with gaps, or with one group for all questions."""
    table = pd.DataFrame({"group": list(names), "question_id": list(questions)})
    if (table["group"] == "").all():
        return
    if (lacking := table["group"] == "").any():
        raise UserTableError(
            f"group is empty in {lacking.sum():,} rows, first for question "
            f"{table.loc[lacking, 'question_id'].iloc[0]!r}; give each question a group (its "
            "own id if it is alone), or leave the column out"
        )
    if table["group"].nunique() == 1 and table["question_id"].nunique() > 1:
        raise UserTableError(
            f"all questions have the group {table['group'].iloc[0]!r}, so that nothing is "
            "known about other groups; give each question the fact or document that it is "
            "about, or leave the column out"
        )
    groups = table.drop_duplicates()
    if (twice := groups.duplicated("question_id", keep=False)).any():
        question = groups.loc[twice, "question_id"].iloc[0]
        of_question = groups.loc[groups["question_id"] == question, "group"]
        raise UserTableError(
            f"question {question!r} has the groups {', '.join(map(repr, of_question))}; give a "
            "question one group in all rows"
        )
