"""Read logs of Inspect (`.eval`, `.json`) with inspect-ai, if it is installed."""

from collections.abc import Sequence
from itertools import takewhile
from string import ascii_uppercase
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile

import pandas as pd

from persistcal.questions.labels import CORRECT, INCORRECT, NOT_ATTEMPTED
from persistcal.readers.versions import WayOfAsking, describe_settings
from persistcal.store.user_files import UserTableError

if TYPE_CHECKING:
    from inspect_ai.log import EvalLog, EvalSample
    from inspect_ai.model import ChatCompletionChoice

STATED = "stated_confidence"  # a scorer of this name gives the confidence of an answer
REMEDY = (
    ", or in the command give --errored drop, which leaves the question out at all versions, "
    "or --errored incorrect"
)
SETTINGS = ("temperature", "top_p", "top_k", "max_tokens", "stop_seqs")  # that change answers
FAILED = "(ended with an error or a limit)"  # in place of an answer that counts as wrong
CHOICE = "choice"  # Inspect's scorer of multiple choice, which records the chosen options
SCORES = {"C": CORRECT, "I": INCORRECT, "N": NOT_ATTEMPTED, 1.0: CORRECT, 0.0: INCORRECT}


def inspect_rows(
    path: str, *, labelled: bool = False, scorer: str | None = None, errored: str | None = None
) -> pd.DataFrame:
    """Return the answers of a log in the columns of `persistcal.readers.answers`.

    Each completion in each epoch is one sample. The user's last message is the question. The
    answer to multiple choice is the text of the chosen option, or else the completion. The
    label is the only score, or the score of `scorer`. Samples that ended with an error or a
    limit are refused, unless `errored` is "drop", which leaves their answers out, or
    "incorrect", which counts them as wrong.
    """
    try:
        from inspect_ai.log import read_eval_log
    except ImportError as error:
        raise UserTableError(
            "is a log of Inspect, which reads it itself: install inspect-ai in the environment "
            "that runs the workflow, or write its answers to a JSONL file"
        ) from error
    try:
        log = read_eval_log(path)
    except (ValueError, OSError, BadZipFile) as error:
        reason = str(error).partition("\n")[0]
        raise UserTableError(
            f"is no log that Inspect can read ({reason}); copy it again: it may be cut off"
        ) from error
    samples = log.samples or []
    if log.status != "success" and not (errored and samples):
        raise UserTableError(
            f"is the log of a run with status {log.status!r}, so answers can be missing; run "
            f"inspect eval-retry{REMEDY}"
        )
    failed = [s for s in samples if s.error is not None or s.limit is not None]
    if failed and not errored:
        _refuse_failed(failed[0])
    failed_ids = {str(sample.id) for sample in failed}
    samples = [
        sample
        for sample in samples
        if sample not in failed and not (errored == "drop" and str(sample.id) in failed_ids)
    ]
    for sample in samples:
        _check(sample, labelled=labelled)
    most = max((len(sample.output.choices) for sample in samples), default=1)
    rows = pd.DataFrame(
        [
            _row(sample, (sample.epoch - 1) * most + number, choice, labelled, scorer)
            for sample in samples
            for number, choice in enumerate(sample.output.choices, start=1)
        ]
        + [
            _row(sample, (sample.epoch - 1) * most + number, None, labelled, scorer)
            for sample in (failed if errored == "incorrect" else [])
            for number in range(1, most + 1)
        ]
    )
    if rows.empty:
        raise UserTableError("has no sample with an answer; run it again, or leave the log out")
    failures = sorted(failed_ids)
    if "token_logprobs" in rows and rows["token_logprobs"].isna().all():
        rows = rows.drop(columns="token_logprobs")
    if not any(STATED in (sample.scores or {}) for sample in samples):
        rows = rows.drop(columns="confidence", errors="ignore")
    rows = rows if labelled else rows.drop(columns="label", errors="ignore")
    prompts = {str(sample.id): hash(_prompt(sample)) for sample in samples}
    settings = settings_of(log)
    asking = WayOfAsking(prompts, describe_settings(settings))
    is_greedy = settings.get("temperature") == 0
    rows.attrs |= {"failed": failures, "greedy": is_greedy, "asking": asking}
    return rows


def settings_of(log: "EvalLog") -> dict[str, object]:
    """Return the settings of a log that change answers; those of the plan come first."""
    configs = [c for c in (log.eval.model_generate_config, log.plan.config) if c is not None]
    return {
        name: value
        for config in configs
        for name in SETTINGS
        if (value := getattr(config, name, None)) is not None
    }


def _prompt(sample: "EvalSample") -> tuple[str, ...]:
    """Return the texts that the model saw before its first reply."""
    before = takewhile(lambda message: message.role != "assistant", sample.messages)
    return tuple(message.text for message in before)


def _refuse_failed(sample: "EvalSample") -> None:
    location = f"sample {sample.id!r}, epoch {sample.epoch}"
    if sample.limit is None:
        raise UserTableError(f"{location} ended with an error; run inspect eval-retry{REMEDY}")
    raise UserTableError(
        f"{location} was stopped by its {sample.limit.type} limit ({sample.limit.limit:g}), so "
        f"its answer can be incomplete; raise it and run it again{REMEDY}"
    )


def _check(sample: "EvalSample", *, labelled: bool) -> None:
    location = f"sample {sample.id!r}, epoch {sample.epoch}"
    if sample.choices and CHOICE not in (sample.scores or {}):
        raise UserTableError(
            f"{location} has choices, but no score of the scorer {CHOICE}, which records the "
            "chosen one; score the log with it (inspect score)"
        )
    if not sample.output.choices:
        raise UserTableError(
            f"{location} has no output of a model; use a solver that generates"
        )
    n = len(sample.output.choices)
    if (labelled or sample.choices) and n > 1:
        reason = "one choice" if sample.choices else "one score, which is not that of each"
        raise UserTableError(f"{location} has {n} completions and {reason}; use epochs instead")
    if STATED in (sample.scores or {}) and n > 1:
        raise UserTableError(
            f"{location} has {n} completions, but the model stated its confidence only in the "
            "first; use epochs instead"
        )


def _row(
    sample: "EvalSample",
    number: int,
    choice: "ChatCompletionChoice | None",
    labelled: bool,
    scorer: str | None,
) -> dict[str, Any]:
    """Return a completion as a row; without one, the wrong answer of a sample that failed."""
    target = _options(sample, sample.target) if sample.choices else sample.target
    row = {
        "question_id": str(sample.id),
        "question": _question(sample),
        "references": [target] if isinstance(target, str) else list(target),
        "sample": str(number),
        "answer": FAILED,
        "reply": FAILED,
        "token_logprobs": None,
        "confidence": None,
        "label": INCORRECT if labelled else "",
    }
    if choice is None:
        return row
    answer = choice.message.text
    if sample.choices:
        # The score shows the letters of the chosen options as "A, C".
        shown = ((sample.scores or {})[CHOICE].answer or "").split(",")
        letters = [letter.strip() for letter in shown if letter.strip()]
        answer = _options(sample, letters) or answer
    tokens = choice.logprobs.content if choice.logprobs else None
    stated = (sample.scores or {}).get(STATED)
    return row | {
        "answer": answer,
        "reply": choice.message.text,
        "token_logprobs": None if tokens is None else [token.logprob for token in tokens],
        "confidence": stated.value if stated else None,
        "label": _label(sample, scorer) if labelled else "",
    }


def _options(sample: "EvalSample", letters: str | Sequence[str]) -> str:
    """Return the text of the option with a letter; several texts are sorted and joined."""
    options = sample.choices or []
    if len(options) > len(ascii_uppercase):
        raise UserTableError(f"sample {sample.id!r} has more options than letters")
    texts = dict(zip(ascii_uppercase, options, strict=False))
    named = [letters] if isinstance(letters, str) else letters
    if unknown := [letter for letter in named if letter not in texts]:
        raise UserTableError(
            f"sample {sample.id!r} has no option {unknown[0]!r}, but {', '.join(texts)}; name "
            "options by their letters in target, as Inspect does"
        )
    return "; ".join(sorted(texts[letter] for letter in named))


def _question(sample: "EvalSample") -> str:
    if isinstance(sample.input, str):
        return sample.input
    texts = [message.text for message in sample.input if message.role == "user"]
    if not texts:
        raise UserTableError(f"sample {sample.id!r} has no message of a user, so no question")
    return texts[-1]


def _label(sample: "EvalSample", scorer: str | None) -> str:
    """Return the label for a sample's only score, or for the score of `scorer`."""
    scores = sample.scores or {}
    if scorer and scorer not in scores:
        listed = ", ".join(scores) or "none"
        raise UserTableError(
            f"sample {sample.id!r}, epoch {sample.epoch} has no score of {scorer}; its scorers "
            f"are {listed}"
        )
    scorers = [scorer] if scorer else [name for name in scores if name != STATED]
    values = [scores[name].value for name in scorers]
    if len(values) == 1 and isinstance(values[0], str | int | float) and values[0] in SCORES:
        return SCORES[values[0]]
    raise UserTableError(
        f"sample {sample.id!r}, epoch {sample.epoch} has the scores {values}, "
        "but `labels: log` needs one, of C, I, N, 1 or 0; name a scorer (in the command, "
        f"--scorer NAME, of {', '.join(scores)}), or let the judge label"
    )
