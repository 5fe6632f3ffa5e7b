"""Tables about the questions of a dataset, as LaTeX."""

from collections.abc import Sequence

import pandas as pd

from persistcal.report.latex import escape, floating, line

CATEGORY_COLUMNS = 3
EXAMPLES_PER_CATEGORY = 2
REFERENCES_PRINTED = 5


def category_rows(questions: pd.DataFrame) -> pd.DataFrame:
    """Return the categories of the questions that are asked, in alphabetical order.

    Parameters
    ----------
    questions : DataFrame
        Table `persistcal.store.artifacts.QUESTIONS`.

    Returns
    -------
    DataFrame
        Columns `category`, `n_train` and `n_test` (questions of the split that are
        not excluded). Questions without a category do not count.
    """
    asked = questions[~questions["excluded"] & (questions["category"] != "")]
    asked = asked[asked["split"].isin(["train", "test"])]
    rows = (
        asked.assign(n_train=asked["split"] == "train", n_test=asked["split"] == "test")
        .groupby("category", as_index=False)[["n_train", "n_test"]]
        .sum()
    )
    return rows.sort_values(
        "category", key=lambda names: names.str.casefold(), kind="stable", ignore_index=True
    )


def categories_table(rows: pd.DataFrame, *, dataset: str, label: str) -> str:
    """Return the LaTeX of categories in columns that are read across.

    Parameters
    ----------
    rows : DataFrame
        As from `category_rows`.
    dataset : str
        Label of the dataset.
    label : str
        What ``tab:`` is put before.
    """
    names = [escape(name) for name in rows["category"]]
    names += [""] * (-len(names) % CATEGORY_COLUMNS)
    lines = [
        rf"\begin{{tabular}}{{{'l' * CATEGORY_COLUMNS}}}",
        r"\toprule",
        *(
            line(names[start : start + CATEGORY_COLUMNS])
            for start in range(0, len(names), CATEGORY_COLUMNS)
        ),
        r"\bottomrule",
        r"\end{tabular}",
    ]
    caption = f"{dataset}: categories of the questions included in the evaluation."
    return floating(lines, caption=caption, label=label)


def example_questions(questions: pd.DataFrame) -> pd.DataFrame:
    """Return the first test questions of each category that are asked.

    Parameters
    ----------
    questions : DataFrame
        Table `persistcal.store.artifacts.QUESTIONS`.

    Returns
    -------
    DataFrame
        Its rows of the two lowest `index` of each category, by category.
    """
    asked = questions[(questions["split"] == "test") & ~questions["excluded"]]
    ordered = asked.sort_values(["category", "index"], ignore_index=True)
    return ordered.groupby("category").head(EXAMPLES_PER_CATEGORY).reset_index(drop=True)


def example_rows(examples: pd.DataFrame) -> pd.DataFrame:
    """Return `example_questions` as texts: columns `type`, `question` and `references`.

    Examples
    --------
    >>> questions = {"category": ["list"], "question": ["Who?"], "references": [["A", "B"]]}
    >>> example_rows(pd.DataFrame(questions)).to_dict("records")
    [{'type': 'List', 'question': 'Who?', 'references': 'A; B'}]
    """
    return pd.DataFrame(
        {
            "type": [name[:1].upper() + name[1:] for name in examples["category"]],
            "question": examples["question"],
            "references": ["; ".join(answers) for answers in examples["references"]],
        }
    )


def examples_table(examples: pd.DataFrame, *, dataset: str, label: str) -> str:
    """Return the LaTeX of example questions with their first reference answers.

    Parameters
    ----------
    examples : DataFrame
        As from `example_questions`.
    dataset : str
        Label of the dataset.
    label : str
        What ``tab:`` is put before.
    """
    printed = examples.assign(references=examples["references"].map(_shortened))
    lines = [
        r"\begin{tabular}{lp{0.42\linewidth}p{0.25\linewidth}}",
        r"\toprule",
        line(["Type", "Question", "Reference answer(s)"]),
        r"\midrule",
        *(line(map(escape, row)) for row in example_rows(printed).to_numpy()),
        r"\bottomrule",
        r"\end{tabular}",
    ]
    caption = f"{dataset}: example questions."
    several = examples[examples["references"].str.len() > 1]
    if len(several) and several["any_of"].all():
        caption += (
            " Where several reference answers are given, an answer that matches any of them "
            "is accepted."
        )
    return floating(lines, caption=caption, label=label)


def _shortened(references: Sequence[str]) -> list[str]:
    left = len(references) - REFERENCES_PRINTED
    return [*references[:REFERENCES_PRINTED], *([f"and {left} more"] if left > 0 else [])]
