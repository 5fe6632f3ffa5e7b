"""Questions' files of every_eval_ever (``*_samples.jsonl``) as rows of answers or predictions.

`persistcal.report.exports.every_eval_ever` writes, in a question's metadata, what the format
has no field for; files of others lack it.
"""

import json
from collections.abc import Iterable, Iterator
from typing import Any

import pandas as pd
import pyarrow as pa

from persistcal.imports.user_tables import UserTableError
from persistcal.judge.labels import CORRECT, INCORRECT

_TEXT, _TEXTS = {"type": "string"}, {"type": "array", "items": {"type": "string"}}
_MAYBE_TEXTS = {"type": ["array", "null"], "items": {"type": "string"}}
_NAMES = ("schema_version", "evaluation_id", "model_id", "evaluation_name", "sample_id")
# What version 0.2.2 asks of a line, as far as it is read here
LINE = {
    "type": "object",
    "required": [*_NAMES, "interaction_type", "input", "answer_attribution", "evaluation"],
    "properties": {
        **dict.fromkeys(_NAMES, _TEXT),
        "interaction_type": {"enum": ["single_turn", "multi_turn", "agentic"]},
        "input": {
            "type": "object",
            "required": ["raw", "reference"],
            "properties": {"raw": _TEXT, "reference": _TEXTS, "choices": _MAYBE_TEXTS},
        },
        "output": {
            "type": ["object", "null"],
            "required": ["raw"],
            "properties": {"raw": _TEXTS},
        },
        "answer_attribution": {"type": "array"},
        "evaluation": {
            "type": "object",
            "required": ["score", "is_correct"],
            "properties": {"score": {"type": "number"}, "is_correct": {"type": "boolean"}},
        },
        "metadata": {"type": ["object", "null"], "additionalProperties": _TEXT},
    },
}
KEYS = {"evaluation_id", "sample_id", "interaction_type"}  # by which the files are known
PLACE = ("model", "checkpoint", "dataset")
OF_RESPONSES = ("n_tokens", "entropy")  # beside what rows of answers may have
Lines = Iterable[tuple[int, Any]]


def _checked(lines: Lines) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Yield the place of each line, the line, and its metadata with JSON read."""
    from jsonschema import Draft7Validator

    validator = Draft7Validator(LINE)
    for number, line in lines:
        where = f"line {number}"
        if error := next(iter(validator.iter_errors(line)), None):
            at = ".".join(map(str, error.absolute_path)) or "the record"
            raise UserTableError(
                f"{where} is no record of every_eval_ever, {at}: {error.message}; correct it"
            )
        if line["interaction_type"] != "single_turn" or line.get("output") is None:
            raise UserTableError(
                f"{where} is no single turn with an output; only these can be read"
            )
        about = dict(line.get("metadata") or {})
        for name in ("responses", "predictions"):
            try:
                about[name] = json.loads(about.get(name, "[]"))
            except ValueError as error:
                raise UserTableError(
                    f"metadata.{name} of {where} is no JSON ({error}); export it again"
                ) from None
        texts, responses = line["output"]["raw"], about["responses"]
        if responses and len(responses) != len(texts):
            raise UserTableError(
                f"{where} has {len(texts)} outputs and {len(responses)} metadata.responses; "
                "export it again"
            )
        about["responses"] = responses or [{} for _ in texts]
        yield where, line, about


def every_eval_ever_rows(lines: Lines, *, labelled: bool) -> pd.DataFrame:
    """Return the outputs of all lines, in columns of own answers and of `OF_RESPONSES`.

    Where it is `labelled`, an answer's label is that of its response; in files of others the
    one output is correct as the line says.
    """
    rows = []
    for where, line, about in _checked(lines):
        if line["input"].get("choices"):
            raise UserTableError(
                f"{where} has choices; if it has their scores, set decoding.strategy to options"
            )
        texts = line["output"]["raw"]
        if labelled and len(texts) > 1 and "label" not in about["responses"][0]:
            raise UserTableError(
                f"{where} has one score for {len(texts)} outputs, so `labels: log` cannot tell "
                "them apart; let the judge label"
            )
        one = CORRECT if line["evaluation"]["is_correct"] else INCORRECT
        for number, (text, response) in enumerate(zip(texts, about["responses"], strict=True)):
            rows.append(
                {
                    **{name: about[name] for name in (*PLACE, "split") if name in about},
                    "question_id": line["sample_id"],
                    "question": line["input"]["raw"],
                    "references": line["input"]["reference"],
                    "answer": text,
                    "sample": response.get("beam", number),
                    "logprob": response.get("logprob"),
                    "label": response.get("label", one if text else "") if labelled else "",
                    **{name: response.get(name) for name in OF_RESPONSES},
                }
            )
    return pd.DataFrame(rows, dtype=object)


def every_eval_ever_options(lines: Lines) -> pd.DataFrame:
    """Return the scored choices of all lines, a row each, in the columns of own options."""
    rows = []
    for where, line, about in _checked(lines):
        choices, responses = line["input"].get("choices") or [], about["responses"]
        if len(choices) != len(responses) or any("logprob" not in of for of in responses):
            raise UserTableError(
                f"{where} has no log-probability for each choice (metadata.responses); only "
                "exports of scored options have them"
            )
        rows.append(
            {
                **{name: about[name] for name in (*PLACE, "split", "gold") if name in about},
                "question_id": line["sample_id"],
                "question": line["input"]["raw"],
                "options": choices,
                "option_logprobs": [of["logprob"] for of in responses],
                **{
                    column: [of[name] for of in responses]
                    for column, name in (
                        ("option_tokens", "n_tokens"),
                        ("option_logprobs_unconditional", "unconditional"),
                    )
                    if all(name in of for of in responses)
                },
            }
        )
    return pd.DataFrame(rows, dtype=object)


def every_eval_ever_predictions(lines: Lines) -> pa.RecordBatch:
    """Return the confidences of all lines, in the columns of own predictions."""
    rows = []
    for where, line, about in _checked(lines):
        if lacking := [name for name in PLACE if name not in about]:
            raise UserTableError(
                f"{where} does not say its {lacking[0]} (metadata.{lacking[0]}), so its "
                "confidences cannot be read; give study.predictions a CSV or parquet file"
            )
        place = [about[name] for name in PLACE]
        right = line["evaluation"]["is_correct"]
        rows += [(*place, line["sample_id"], *stated, right) for stated in about["predictions"]]
    if not rows:
        raise UserTableError("holds no confidence (metadata.predictions of its lines)")
    stated = ["train_dataset", "estimator", "seed", "confidence"]
    names = [*PLACE, "question_id", *stated, "correct"]
    return pa.RecordBatch.from_pandas(pd.DataFrame(rows, columns=names), preserve_index=False)
