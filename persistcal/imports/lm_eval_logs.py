"""The sample logs of lm-evaluation-harness (``samples_*.jsonl``), as answers of one's own."""

import ast
from collections.abc import Collection

import pandas as pd

from persistcal.imports.own_answers import OwnAnswersError

_KEYS = {"doc_id", "doc", "target", "arguments", "resps", "filter"}


def is_lm_eval_log(columns: Collection[str]) -> bool:
    """Whether rows with these columns are such a log."""
    return set(columns) >= _KEYS


def lm_eval_rows(log: pd.DataFrame) -> pd.DataFrame:
    """Return the responses of a log, a row each.

    Parameters
    ----------
    log : DataFrame
        Its lines. Where a task has several filters, each has lines of its own about the
        same responses; those of the first one count.

    Returns
    -------
    DataFrame
        question_id (`doc_id`), question (`doc.question`), references (`target`), answer
        (each of `resps`, as the model gave it and before any filter) and sample.

    Raises
    ------
    OwnAnswersError
        When a task has no free text, or its documents no question.
    """
    rows = []
    first = log["filter"].iloc[0] if len(log) else ""
    for number, line in enumerate(log.to_dict("records"), start=1):
        if line["filter"] != first:
            continue
        requests = list(line["arguments"].values())
        # What is generated has settings as its second argument; what is scored, a text.
        if len(requests) != 1 or not isinstance(requests[0].get("arg_1"), dict):
            raise OwnAnswersError(
                f"row {number} is of a task without free text: lm-evaluation-harness scored "
                "given choices; take the log of a task that generates (generate_until)"
            )
        if not isinstance(line["doc"], dict) or "question" not in line["doc"]:
            raise OwnAnswersError(
                f"the document of row {number} has no 'question'; write the answers into a "
                "file of your own (docs/own_answers.md)"
            )
        for sample, text in enumerate(line["resps"][0]):
            rows.append(
                (
                    line["doc_id"],
                    line["doc"]["question"],
                    _references(line["target"]),
                    text,
                    sample,
                )
            )
    names = ["question_id", "question", "references", "answer", "sample"]
    return pd.DataFrame(rows, columns=names, dtype=object)


def _references(target: object) -> object:
    """Return a target as it was before it was written: a list stands there as Python's text."""
    if isinstance(target, str) and target.startswith("["):
        try:
            several = ast.literal_eval(target)
        except (ValueError, SyntaxError):
            return target
        return [str(text) for text in several] if isinstance(several, list) else target
    return target
