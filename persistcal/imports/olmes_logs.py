"""Read predictions of OLMES, olmo-eval and DataDecide (``*-predictions.jsonl``)."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from persistcal.imports.answers import number_of
from persistcal.store.user_files import UserTableError, read_file

KEYS = {"doc_id", "native_id", "model_output", "label"}  # required in every line
_REQUEST_KEYS = {"doc_id", "request", "idx"}
# The log's own accuracy, by normalisation
ACCURACY = {
    "none": "acc_raw",
    "per_token": "acc_per_token",
    "per_character": "acc_per_char",
    "unconditional": "acc_uncond",
}
# Keys in the log, by column of `persistcal.imports.options`
NUMBERS = {
    "option_logprobs": "sum_logits",
    "option_tokens": "num_tokens",
    "option_characters": "num_chars",
    "option_logprobs_unconditional": "sum_logits_uncond",
}


def olmes_options(
    log: pd.DataFrame, normalisation: str, requests: str | None = None
) -> pd.DataFrame:
    """Return the instances of a log in the columns of `persistcal.imports.options`.

    Texts come from the file `requests`. Without it, ids and lengths replace the texts.
    """
    asked = _texts(requests) if requests else {}
    rows = []
    for number, line in enumerate(log.to_dict("records"), start=1):
        outputs = line["model_output"]
        if not isinstance(outputs, list) or not all(isinstance(o, dict) for o in outputs):
            raise UserTableError(
                f"model_output of row {number} is not a list of scored options"
            )
        outputs = _with_unconditional(outputs)
        if not all("sum_logits" in output for output in outputs):
            raise UserTableError(
                f"an option of row {number} has no sum_logits; take the predictions of a task "
                "that scores given choices"
            )
        values = {
            column: [output[key] for output in outputs]
            for column, key in NUMBERS.items()
            if all(output.get(key) is not None for output in outputs)
        }
        name = line["native_id"]
        question = f"document {line['doc_id']}" if name is None else str(name)
        texts = {"question": question, "options": _shown(outputs)}
        if requests:
            if len(asked.get(str(line["doc_id"]), {}).get("options", ())) != len(outputs):
                raise UserTableError(
                    f"row {number} has {len(outputs)} options of document {line['doc_id']}, "
                    f"but {requests} has other ones; give the requests of the same run"
                )
            texts = asked[str(line["doc_id"])]
        metrics = line.get("metrics")
        rows.append(
            {
                **texts,
                **values,
                "question_id": line["doc_id"],
                "gold": line["label"],
                "correct": (metrics if isinstance(metrics, dict) else {}).get(
                    ACCURACY[normalisation]
                ),
                "version": f"{name} {line.get('task_hash', '')}",
            }
        )
    return pd.DataFrame(rows, dtype=object)


def _with_unconditional(outputs: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return one record for each option, with its unconditional score if there is one.

    olmo-eval repeats all options at the end of the list, scored without the question.
    """
    texts, half = [output.get("text") for output in outputs], len(outputs) // 2
    if None in texts or not half or texts[:half] != texts[half:]:
        return [dict(output) for output in outputs]
    return [
        {**output, "sum_logits_uncond": unconditional.get("sum_logits")}
        for output, unconditional in zip(outputs[:half], outputs[half:], strict=True)
    ]


def _shown(outputs: Sequence[Mapping[str, Any]]) -> list[object]:
    return [
        output.get("text") or f"option {number} ({output.get('num_chars', '?')} characters)"
        for number, output in enumerate(outputs, start=1)
    ]


def _texts(requests: str) -> dict[str, dict[str, Any]]:
    """Return the question and options of each document by its id."""
    lines = read_file(requests, known=_REQUEST_KEYS)
    if not set(lines.columns) >= _REQUEST_KEYS:
        raise UserTableError(
            f"{requests} has no requests; give the -requests.jsonl of the same run"
        )
    texts: dict[str, dict[str, Any]] = {}
    continuations: dict[str, dict[float, object]] = {}
    for number, line in enumerate(lines.to_dict("records"), start=1):
        name, place = str(line["doc_id"]), number_of(line["idx"])
        doc, request = (
            part if isinstance(part, dict) else {}
            for part in (line.get("doc"), line["request"])
        )
        question = {"question": doc.get("query") or request.get("context")}
        question["options"] = doc.get("choices")
        if not question["question"]:
            raise UserTableError(
                f"{requests}: row {number} has neither a query in doc nor a context in "
                "request; give the requests as OLMES writes them"
            )
        texts.setdefault(name, question)
        if isinstance(question["options"], list):
            continue
        of_doc = continuations.setdefault(name, {})
        if place in of_doc or place != place:
            raise UserTableError(
                f"{requests}: row {number} has the idx {line['idx']!r}, which another option "
                f"of document {name} has, or which is not a number; number options from 0"
            )
        of_doc[place] = request.get("continuation")
    for name, of_doc in continuations.items():
        ordered = [of_doc.get(float(place)) for place in range(len(of_doc))]
        if None in ordered:
            raise UserTableError(
                f"{requests}: document {name} lacks the continuation of option "
                f"{ordered.index(None)}; give one request for each option, with idx from 0"
            )
        texts[name]["options"] = ordered
    return texts
