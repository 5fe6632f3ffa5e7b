"""Logs of Inspect (`.eval`), read by Inspect itself where it is installed."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from persistcal.imports.own_answers import OwnAnswersError

if TYPE_CHECKING:
    from inspect_ai.log import EvalSample


def inspect_rows(path: Path) -> pd.DataFrame:
    """Return the answers of a log of Inspect as rows of one's own answers.

    Parameters
    ----------
    path : Path
        A `.eval` file. Each epoch of a sample is a sample here.

    Returns
    -------
    DataFrame
        Columns question_id, question (the last message of the user), references (the
        targets), sample (the epoch), answer (the completion) and, where every completion
        has them, token_logprobs. Scores are not read: labels are the judge's.

    Raises
    ------
    OwnAnswersError
        When Inspect is not installed, the run did not end well, or its samples have no
        free text.
    """
    try:
        from inspect_ai.log import read_eval_log
    except ImportError as error:
        raise OwnAnswersError(
            "is a log of Inspect, which reads it itself: install inspect-ai in the environment "
            "that runs the workflow, or write its answers to a JSONL file"
        ) from error
    log = read_eval_log(str(path))
    if log.status != "success":
        raise OwnAnswersError(
            f"is the log of a run with status {log.status!r}, which may lack answers; run "
            "inspect eval-retry"
        )
    samples = log.samples or []
    for sample in samples:
        where = f"sample {sample.id!r}, epoch {sample.epoch}"
        if sample.error is not None:
            raise OwnAnswersError(f"{where} ended with an error; run inspect eval-retry")
        if sample.choices:
            raise OwnAnswersError(
                f"{where} has choices; only tasks whose answers are free text can be read"
            )
    rows = pd.DataFrame([_row(sample) for sample in samples])
    if "token_logprobs" in rows and rows["token_logprobs"].isna().all():
        rows = rows.drop(columns="token_logprobs")
    return rows


def _row(sample: "EvalSample") -> dict[str, Any]:
    target = sample.target
    return {
        "question_id": str(sample.id),
        "question": _question(sample),
        "references": [target] if isinstance(target, str) else list(target),
        "sample": str(sample.epoch),
        "answer": sample.output.completion,
        "token_logprobs": _logprobs(sample),
    }


def _question(sample: "EvalSample") -> str:
    if isinstance(sample.input, str):
        return sample.input
    asked = [message.text for message in sample.input if message.role == "user"]
    if not asked:
        raise OwnAnswersError(f"sample {sample.id!r} has no message of a user: nothing asked")
    return asked[-1]


def _logprobs(sample: "EvalSample") -> list[float] | None:
    choices = sample.output.choices
    if not choices or choices[0].logprobs is None:
        return None
    return [token.logprob for token in choices[0].logprobs.content]
