"""Read lm-evaluation-harness logs (``samples_*.jsonl``) as answers or scored options."""

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import pandas as pd

from persistcal.imports.answers import number_of
from persistcal.questions.labels import CORRECT, INCORRECT
from persistcal.store.user_files import UserTableError

KEYS = {"doc_id", "doc", "target", "arguments", "resps"}  # required in every line
_BESIDE_SCORES = {*KEYS, "filtered_resps", "filter", "doc_hash", "prompt_hash", "target_hash"}
_TEXT = r"""(?:'[^'\\]*(?:\\.[^'\\]*)*'|"[^"\\]*(?:\\.[^"\\]*)*")"""
_LIST_OF_TEXTS = re.compile(rf"\[(?:{_TEXT}(?:, {_TEXT})*)?\]", re.DOTALL)
# The log's own accuracy, by normalisation
ACCURACY = {"none": "acc", "per_character": "acc_norm", "unconditional": "acc_mutual_info"}
FEW_SHOT = "\n\n"  # between the examples of a prompt, and before its own question


def lm_eval_rows(
    log: pd.DataFrame, *, filtered: str | None = None, labelled: bool = False
) -> pd.DataFrame:
    """Return the responses of a log in the columns of `persistcal.imports.answers`.

    A task with several filters repeats each response on one line per filter. The answer is the
    response itself, or the output of the filter named by `filtered`.
    """
    lines = _lines_of(log)
    for line in lines:
        _refuse_choices(line)
    rows = []
    for line in _one_per_document(lines, filtered, labelled=labelled):
        row = line["row"]
        if not isinstance(line["doc"], dict) or "question" not in line["doc"]:
            raise UserTableError(
                f"the document of row {row} has no 'question'; write the answers into a "
                "file of your own (docs/formats.md)"
            )
        answers = _filtered(line) if filtered else _responses(line)
        label = _label(line, len(answers)) if labelled else ""
        asked = (line["doc_id"], line["doc"]["question"], _references(line))
        rows += [(*asked, text, sample, label) for sample, text in enumerate(answers)]
    names = ["question_id", "question", "references", "answer", "sample", "label"]
    return pd.DataFrame(rows, columns=names, dtype=object)


def _lines_of(log: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the lines of a log, each with its number as `row`."""
    return [
        {**{str(key): value for key, value in line.items()}, "row": row}
        for row, line in enumerate(log.to_dict("records"), start=1)
    ]


def _requests(line: Mapping[str, Any]) -> list[list[Any]]:
    """Return the arguments of each request of a line; older versions write them as lists."""
    requests = line["arguments"]
    requests = _in_order(requests) if isinstance(requests, dict) else requests
    if not isinstance(requests, list) or not requests:
        return [[]]
    # arg_0 is the prompt, arg_1 the continuation or the settings.
    ordered = [
        _in_order(request) if isinstance(request, dict) else request for request in requests
    ]
    return [request if isinstance(request, list) else [] for request in ordered]


def _in_order(named: Mapping[str, Any]) -> list[Any]:
    """Return values sorted by the numbers in their names, so that arg_2 precedes arg_10.

    >>> _in_order({"arg_10": "c", "arg_2": "b", "arg_0": "a"})
    ['a', 'b', 'c']
    """
    return [named[name] for name in sorted(named, key=lambda name: (len(name), name))]


def _refuse_choices(line: dict[str, Any]) -> None:
    """Refuse a line unless its only request is a generation, with a dict of settings."""
    requests = _requests(line)
    if len(requests) != 1 or [type(part) for part in requests[0][1:2]] != [dict]:
        raise UserTableError(
            f"row {line['row']} is of a task without free text: lm-evaluation-harness scored "
            "given choices; take the log of a task that generates (generate_until), or in a "
            "study set decoding.strategy to options"
        )


def _one_per_document(
    lines: Sequence[dict[str, Any]], filtered: str | None, *, labelled: bool
) -> list[dict[str, Any]]:
    """Return one line for each document: the line of the filter, or the first line."""
    by_filter: dict[str, dict[str, dict[str, Any]]] = {}
    first: dict[str, dict[str, Any]] = {}
    for line in lines:
        of_filter = by_filter.setdefault(str(line.get("filter", "none")), {})
        document = str(line["doc_id"])
        earlier = of_filter.get(document, first.setdefault(document, line))
        if document in of_filter or earlier["resps"] != line["resps"]:
            raise UserTableError(
                f"rows {earlier['row']} and {line['row']} are both of document {document}; "
                "give each run's log as a separate file"
            )
        of_filter[document] = line
    filters = ", ".join(by_filter)
    if filtered is None:
        if labelled and len(by_filter) > 1:
            raise UserTableError(
                f"has scores of several filters ({filters}); name one by the key filter of its "
                "entry in study.answers (in the command, --filter)"
            )
        return list(first.values())
    if filtered not in by_filter:
        raise UserTableError(f"has no filter {filtered!r}; it has {filters}")
    chosen = by_filter[filtered]
    if lacking := [document for document in first if document not in chosen]:
        raise UserTableError(
            f"has {len(lacking)} documents without a line of the filter {filtered}, the first "
            f"is {lacking[0]}; take another filter, or none"
        )
    return list(chosen.values())


def _responses(line: dict[str, Any]) -> list[str]:
    resps = line["resps"]
    if isinstance(resps, list) and len(resps) == 1 and _are_texts(resps[0]):
        return resps[0]
    raise UserTableError(
        f"resps of row {line['row']} is {_shortened(resps)}, but the harness writes a list of "
        'one list, [["…"]], with all responses to the document; write the answers into a file '
        "of your own"
    )


def _filtered(line: dict[str, Any]) -> list[str]:
    outputs = line.get("filtered_resps")
    if isinstance(outputs, list) and len(outputs) == 1:
        texts = outputs[0] if isinstance(outputs[0], list) else outputs
        if _are_texts(texts):
            return texts
    raise UserTableError(
        f"filtered_resps of row {line['row']} is {_shortened(outputs)}, which is not text; "
        "take another filter, or none"
    )


def _are_texts(values: object) -> bool:
    return (
        isinstance(values, list)
        and bool(values)
        and all(isinstance(value, str) for value in values)
    )


def _shortened(value: object) -> str:
    text = repr(value)
    return text if len(text) < 60 else f"{text[:60]}…"


def _references(line: dict[str, Any]) -> object:
    """Return the target's references; logs store a list as Python prints it."""
    target = line["target"]
    # A text that merely looks like a list is the document's own.
    if (
        isinstance(target, str)
        and target not in line["doc"].values()
        and _LIST_OF_TEXTS.fullmatch(target)
    ):
        with suppress(SyntaxError, ValueError):
            return ast.literal_eval(target)
    return target if isinstance(target, list) else [target]


def _label(line: dict[str, Any], n_answers: int) -> str:
    """Return the label for the log's score of the only answer."""
    row, metrics = line["row"], line.get("metrics")
    if n_answers > 1:
        raise UserTableError(
            f"row {row} has one score for {n_answers} answers, so `labels: log` does not "
            "label each; name a filter that keeps one, or leave `labels` out"
        )
    if not isinstance(metrics, list):
        present = {name for name, value in line.items() if value == value}
        metrics = sorted(present - _BESIDE_SCORES - {"row", "metrics"})
    name = "exact_match" if "exact_match" in metrics else ", ".join(metrics)
    try:
        return {0.0: INCORRECT, 1.0: CORRECT}[number_of(line[name])]
    except (KeyError, TypeError, ValueError):
        raise UserTableError(
            f"row {row} has the scores {', '.join(f'{m}: {line.get(m)}' for m in metrics)!r}, "
            "but `labels: log` needs exact_match, or one score that is 0 or 1; leave `labels` "
            "out"
        ) from None


def scores_options(log: pd.DataFrame) -> bool:
    """Return whether the first line of a log scores given options and generates no text."""
    [first] = _lines_of(log.head(1))
    return all(
        [type(part) for part in request[:2]] == [str, str] for request in _requests(first)
    )


def lm_eval_options(log: pd.DataFrame, normalisation: str) -> pd.DataFrame:
    """Return the documents of a log in the columns of `persistcal.imports.options`.

    As in `acc_norm`, an option's length excludes the delimiter before its text. `correct` is
    the log's accuracy under the `normalisation`, if the log has it.
    """
    lines = _one_per_document(_lines_of(log), None, labelled=False)
    requests = [_scored(line) for line in lines]
    delimiter = _delimiter(lines, requests, normalisation)
    rows = []
    for line, asked in zip(lines, requests, strict=True):
        logprobs = _logprobs(line, len(asked))
        half, n, unconditional = len(asked) // 2, len(asked), None
        if asked[half:] == [("", text) for _, text in asked[:half]]:  # for acc_mutual_info
            n, unconditional = half, logprobs[half:]
        if len({context for context, _ in asked[:n]}) > 1:
            raise UserTableError(
                f"row {line['row']} has options inside the question, not after it, and the log "
                "does not show which is right; write the scores into a file of your own "
                "(docs/formats.md)"
            )
        options = [text.removeprefix(delimiter) for _, text in asked[:n]]
        rows.append(
            {
                "question_id": line["doc_id"],
                "question": _question(line["doc"], asked[0][0]),
                "options": options,
                "option_logprobs": logprobs[:n],
                "option_logprobs_unconditional": unconditional,
                "option_characters": [max(len(text), 1) for text in options],
                "correct": line.get(ACCURACY.get(normalisation, "")),
                "version": f"{line.get('doc_hash', '')}{line.get('prompt_hash', '')}",
            }
        )
    gold = _gold(lines, rows)
    return pd.DataFrame(rows, dtype=object).assign(gold=pd.Series(gold, dtype=object))


def _delimiter(
    lines: Sequence[Mapping[str, Any]],
    requests: Sequence[Sequence[tuple[str, str]]],
    normalisation: str,
) -> str:
    """Infer the delimiter before each option, which the log does not record.

    Removing the delimiter from an option leaves a text of its document. If no shared prefix
    does this for all options, or several do, return the shared white space.

    Raises
    ------
    UserTableError
        The lengths of options are needed, but the delimiter is unknown.
    """
    continuations = [text for line in requests for _, text in line]
    first, last = min(continuations), max(continuations)
    shared = next(
        (first[:n] for n in range(len(first), 0, -1) if last.startswith(first[:n])), ""
    )
    documents = [set(_leaves(line["doc"])) for line in lines]
    fitting = [
        shared[:n]
        for n in range(len(shared) + 1)
        if all(
            text[n:] in leaves
            for line, leaves in zip(requests, documents, strict=True)
            for _, text in line
        )
    ]
    if len(fitting) == 1:
        return fitting[0]
    if normalisation == "per_character" and shared:
        raise UserTableError(
            f"all options begin with {_shortened(shared)}, and the documents do not show how "
            "much of it is the task's delimiter, so the numbers of characters are unknown; "
            "choose another normalisation, or write the scores into a file of your own with "
            "option_characters (docs/formats.md)"
        )
    return shared[: len(shared) - len(shared.lstrip())]


def _leaves(value: object) -> Iterator[str]:
    """Yield the texts in a document."""
    if isinstance(value, str):
        yield value
    if isinstance(value, dict):
        value = list(value.values())
    for part in value if isinstance(value, list) else ():
        yield from _leaves(part)


def _scored(line: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return context and continuation of each request."""
    pairs = []
    for request in _requests(line):
        if [type(part) for part in request[:2]] != [str, str]:
            raise UserTableError(
                f"row {line['row']} is of a task that generates text, not of a multiple_choice "
                "task, so it scores no options; take another log, or in a study set "
                "decoding.strategy to sample"
            )
        pairs.append((request[0], request[1]))
    return pairs


def _logprobs(line: Mapping[str, Any], n: int) -> list[object]:
    """Return the log-probability of each request, without the flag for greedy decoding."""
    resps = line["resps"]
    firsts = [
        response[0] for response in resps if isinstance(response, list) and len(response) == 1
    ]
    pairs = [pair for pair in firsts if isinstance(pair, list) and len(pair) == 2]
    if len(pairs) == len(resps) == n:
        return [logprob for logprob, _ in pairs]
    raise UserTableError(
        f"resps of row {line['row']} is {_shortened(resps)}, but the harness writes a list of "
        f"one pair for each of the {n} requests; write the scores into a file of your own"
    )


def _gold(
    lines: Sequence[Mapping[str, Any]], rows: Sequence[Mapping[str, Any]]
) -> list[int | None]:
    """Return the position of each document's correct option.

    A target is a position or an option's text. If both readings are possible, the one that
    reproduces the log's accuracy is used.
    """
    by_place, by_text = [], []
    for line, row in zip(lines, rows, strict=True):
        target, options = str(line["target"]).strip(), [text.strip() for text in row["options"]]
        places = [str(place) for place in range(len(options))]
        by_place.append(places.index(target) if target in places else None)
        by_text.append(options.index(target) if target in options else None)
    readings = [gold for gold in (by_place, by_text) if None not in gold]
    if len(readings) == 2 and by_place != by_text:
        readings = [gold for gold in readings if _gives_accuracy(gold, lines, rows)]
    if readings and readings[0] == readings[-1]:
        return readings[0]
    unread = [reading == (None, None) for reading in zip(by_place, by_text, strict=True)]
    first = unread.index(True) if any(unread) else 0
    target, options = lines[first]["target"], rows[first]["options"]
    raise UserTableError(
        f"target of row {lines[first]['row']} is {_shortened(target)}, which is not surely "
        f"the text or the place of one of the options {_shortened(options)}; write the scores "
        "into a file of your own (docs/formats.md)"
    )


def _gives_accuracy(
    gold: Sequence[int | None],
    lines: Sequence[Mapping[str, Any]],
    rows: Sequence[Mapping[str, Any]],
) -> bool:
    best = [np.argmax([number_of(x) for x in row["option_logprobs"]]) for row in rows]
    reported = [number_of(line.get("acc")) for line in lines]
    return reported == [float(b == g) for b, g in zip(best, gold, strict=True)]


def _question(doc: object, prompt: str) -> str:
    """Return a document's question or query, or else the last block of its prompt."""
    if isinstance(doc, dict):
        for name in ("question", "query"):
            if isinstance(text := doc.get(name), str) and text.strip():
                return text
    return prompt.strip().rpartition(FEW_SHOT)[2]
