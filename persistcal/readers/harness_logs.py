"""Read logs of evaluation harnesses in JSON lines as answers or scored options.

lm-evaluation-harness writes ``samples_*.jsonl``; OLMES, olmo-eval and DataDecide write
``*-predictions.jsonl``.
"""

import ast
import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from persistcal.questions.labels import CORRECT, INCORRECT
from persistcal.readers.rules import number_of
from persistcal.readers.versions import WayOfAsking, describe_settings
from persistcal.store.sheets import cut
from persistcal.store.user_files import UserTableError, read_file

log = logging.getLogger(__name__)

LM_EVAL_KEYS = {"doc_id", "doc", "target", "arguments", "resps"}  # required in every line
OLMES_KEYS = {"doc_id", "native_id", "model_output", "label"}
_REQUEST_KEYS = {"doc_id", "request", "idx"}
_BESIDE_SCORES = {"filtered_resps", "filter", "doc_hash", "prompt_hash", "target_hash"}
_TEXT = r"""(?:'[^'\\]*(?:\\.[^'\\]*)*'|"[^"\\]*(?:\\.[^"\\]*)*")"""
_LIST_OF_TEXTS = re.compile(rf"\[(?:{_TEXT}(?:, {_TEXT})*)?\]", re.DOTALL)
# The logs' own accuracies, by normalisation
LM_EVAL_ACC = {"none": "acc", "per_character": "acc_norm", "unconditional": "acc_mutual_info"}
OLMES_ACC = {
    "none": "acc_raw",
    "per_token": "acc_per_token",
    "per_character": "acc_per_char",
    "unconditional": "acc_uncond",
}
# Keys of OLMES, by column of `persistcal.readers.options`
NUMBERS = {
    "option_logprobs": "sum_logits",
    "option_tokens": "num_tokens",
    "option_characters": "num_chars",
    "option_logprobs_unconditional": "sum_logits_uncond",
}
FEW_SHOT = "\n\n"  # between the examples of a prompt, and before its own question

Line = dict[str, Any]  # a line of a log; `_lines_of` adds the number as `row`


def lm_eval_rows(
    log: pd.DataFrame, *, filtered: str | None = None, labelled: bool = False
) -> pd.DataFrame:
    """Return the responses of a log in the columns of `persistcal.readers.answers`.

    The answer is the response itself, or the output of the filter named by `filtered`.
    """
    lines = _lines_of(log)
    for line in lines:
        requests = _requests(line)
        # The only request of a generation has a dict of settings.
        if len(requests) != 1 or [type(part) for part in requests[0][1:2]] != [dict]:
            raise UserTableError(
                f"row {line['row']} is of a task without free text: lm-evaluation-harness "
                "scored given choices; take the log of a task that generates "
                "(generate_until), or in a study set decoding.strategy to options"
            )
    rows = []
    for line in _one_per_document(lines, filtered, labelled=labelled):
        row = line["row"]
        if not isinstance(line["doc"], dict) or "question" not in line["doc"]:
            raise UserTableError(
                f"the document of row {row} has no 'question'; write the answers into a "
                "file of your own (docs/formats.md)"
            )
        answers = _texts_of(line, filtered)
        label = _label(line, len(answers)) if labelled else ""
        key = (line["doc_id"], line["doc"]["question"], _references(line))
        replies = line["resps"][0] if filtered and len(line["resps"]) == 1 else answers
        replies = replies if len(replies) == len(answers) else answers
        texts = enumerate(zip(answers, replies, strict=True))
        rows += [(*key, *pair, sample, label) for sample, pair in texts]
    names = ["question_id", "question", "references", "answer", "reply", "sample", "label"]
    made = pd.DataFrame(rows, columns=names, dtype=object)
    by_id = {str(line["doc_id"]): _requests(line)[0] for line in lines}
    made.attrs["greedy"] = all(_is_greedy(settings) for _, settings, *_ in by_id.values())
    prompts = {name: hash(str(prompt)) for name, (prompt, *_) in by_id.items()}
    _, settings, *_ = next(iter(by_id.values()))
    made.attrs["asking"] = WayOfAsking(prompts, describe_settings(settings))
    return made


def _is_greedy(settings: Mapping[str, Any]) -> bool:
    """Return whether a generation does not sample, by the settings.

    >>> [_is_greedy(s) for s in ({"temperature": 0}, {"do_sample": False}, {"until": ["."]})]
    [True, True, False]
    """
    if (temperature := settings.get("temperature")) is not None:
        return float(temperature) == 0
    return settings.get("do_sample") is False


def _lines_of(log: pd.DataFrame) -> list[Line]:
    numbered = log.assign(row=range(1, len(log) + 1))
    return [
        {str(key): value for key, value in line.items()} for line in numbered.to_dict("records")
    ]


def _requests(line: Line) -> list[list[Any]]:
    """Return the arguments of each request of a line; older versions write them as lists."""
    # arg_0 is the prompt, arg_1 the continuation or the settings.
    return [_in_order(request) for request in _in_order(line["arguments"])] or [[]]


def _in_order(given: object) -> list[Any]:
    """Return a list, or values in the order of the numbers in their names, or else nothing.

    >>> _in_order({"arg_10": "c", "arg_2": "b", "arg_0": "a"})
    ['a', 'b', 'c']
    """
    if isinstance(given, dict):
        return [given[name] for name in sorted(given, key=lambda name: (len(name), name))]
    return given if isinstance(given, list) else []


def _one_per_document(
    lines: Sequence[Line], filtered: str | None, *, labelled: bool
) -> list[Line]:
    """Return one line for each document: the line of the filter, or the first line."""
    by_filter: dict[str, dict[str, Line]] = {}
    first: dict[str, Line] = {}
    repeated: list[int] = []
    for line in lines:
        of_filter = by_filter.setdefault(str(line.get("filter", "none")), {})
        document = str(line["doc_id"])
        earlier = of_filter.get(document, first.setdefault(document, line))
        if earlier["resps"] != line["resps"] or earlier["doc"] != line["doc"]:
            raise UserTableError(
                f"rows {earlier['row']} and {line['row']} are both of document {document}, and "
                "differ, so the log has the lines of two runs or tasks; keep the lines of one "
                "of them, or write the lines of each to a file of its own"
            )
        if document not in of_filter:
            of_filter[document] = line
        elif _same_output(earlier, line) or not (filtered or labelled):
            repeated.append(line["row"])
        else:
            raise UserTableError(
                f"rows {earlier['row']} and {line['row']} are two outputs of filters for "
                f"document {document}, and no key 'filter' names them; keep the lines of one "
                "filter, or leave out `filter` and `labels`"
            )
    if repeated:
        log.warning("Skipped %d lines that repeat a document's responses", len(repeated))
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


def _same_output(first: Line, second: Line) -> bool:
    """Return whether two lines differ only in their number."""
    return all(
        first.get(name) == second.get(name) or (first.get(name) != first.get(name))
        for name in {*first, *second} - {"row"}
    )


def _texts_of(line: Line, filtered: str | None) -> list[str]:
    """Return the responses of a line, or the output of its filter."""
    name = "filtered_resps" if filtered else "resps"
    values, remedy = line.get(name), "which is not text; take another filter, or none"
    if isinstance(values, list) and len(values) == 1:
        texts = values if filtered and not isinstance(values[0], list) else values[0]
        if isinstance(texts, list) and texts and all(isinstance(text, str) for text in texts):
            return texts
    if not filtered:
        remedy = (
            'but the harness writes a list of one list, [["…"]], with all responses to the '
            "document; write the answers into a file of your own"
        )
    raise UserTableError(f"{name} of row {line['row']} is {cut(values)}, {remedy}")


def _references(line: Line) -> object:
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


def _label(line: Line, n_answers: int) -> str:
    """Return the label for the log's score of the only answer."""
    row, metrics = line["row"], line.get("metrics")
    if n_answers > 1:
        raise UserTableError(
            f"row {row} has one score for {n_answers} answers, so `labels: log` does not "
            "label each; name a filter that keeps one, or leave `labels` out"
        )
    if not isinstance(metrics, list):
        present = {name for name, value in line.items() if value == value}
        metrics = sorted(present - LM_EVAL_KEYS - _BESIDE_SCORES - {"row", "metrics"})
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
    """Return the documents of a log in the columns of `persistcal.readers.options`.

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
                "correct": line.get(LM_EVAL_ACC.get(normalisation, "")),
                "version": f"{line.get('doc_hash', '')}{line.get('prompt_hash', '')}",
            }
        )
    gold = _gold(lines, rows)
    return pd.DataFrame(rows, dtype=object).assign(gold=pd.Series(gold, dtype=object))


def _delimiter(
    lines: Sequence[Line], requests: Sequence[Sequence[tuple[str, str]]], normalisation: str
) -> str:
    """Infer the delimiter before each option, which the log does not record.

    An option without the delimiter is a text in the document. If no shared prefix
    does this for all options, or several do, it is the shared white space.
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
            f"all options begin with {cut(shared)}, and the documents do not show how "
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


def _scored(line: Line) -> list[tuple[str, str]]:
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


def _logprobs(line: Line, n: int) -> list[object]:
    """Return the log-probability of each request, without the flag for greedy decoding."""
    resps = line["resps"]
    firsts = [
        response[0] for response in resps if isinstance(response, list) and len(response) == 1
    ]
    pairs = [pair for pair in firsts if isinstance(pair, list) and len(pair) == 2]
    if len(pairs) == len(resps) == n:
        return [logprob for logprob, _ in pairs]
    raise UserTableError(
        f"resps of row {line['row']} is {cut(resps)}, but the harness writes a list of "
        f"one pair for each of the {n} requests; write the scores into a file of your own"
    )


def _gold(lines: Sequence[Line], rows: Sequence[Line]) -> list[int | None]:
    """Return the position of each document's correct option.

    A target is a position or an option's text. If both readings are possible, the accuracy of
    the log decides.
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
        f"target of row {lines[first]['row']} is {cut(target)}, which is not surely "
        f"the text or the place of one of the options {cut(options)}; write the scores "
        "into a file of your own (docs/formats.md)"
    )


def _gives_accuracy(
    gold: Sequence[int | None], lines: Sequence[Line], rows: Sequence[Line]
) -> bool:
    best = [np.argmax([number_of(x) for x in row["option_logprobs"]]) for row in rows]
    reported = [number_of(line.get("acc")) for line in lines]
    return reported == [float(b == g) for b, g in zip(best, gold, strict=True)]


def _question(doc: object, prompt: str) -> str:
    """Return the question or query of a document, or the last block of the prompt."""
    if isinstance(doc, dict):
        for name in ("question", "query"):
            if isinstance(text := doc.get(name), str) and text.strip():
                return text
    return prompt.strip().rpartition(FEW_SHOT)[2]


def olmes_options(
    log: pd.DataFrame, normalisation: str, requests: str | None = None
) -> pd.DataFrame:
    """Return the instances of a log in the columns of `persistcal.readers.options`.

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
        document, name, metrics = str(line["doc_id"]), line["native_id"], line.get("metrics")
        if not requests:
            options = [
                output.get("text") or f"option {n} ({output.get('num_chars', '?')} characters)"
                for n, output in enumerate(outputs, start=1)
            ]
            question = f"document {document}" if name is None else str(name)
            texts = {"question": question, "options": options}
        elif len(asked.get(document, {}).get("options", ())) == len(outputs):
            texts = asked[document]
        else:
            raise UserTableError(
                f"row {number} has {len(outputs)} options of document {document}, but "
                f"{requests} has other ones; give the requests of the same run"
            )
        row = {
            "question_id": line["doc_id"],
            "gold": line["label"],
            "correct": metrics.get(OLMES_ACC[normalisation])
            if isinstance(metrics, dict)
            else None,
            "version": f"{name} {line.get('task_hash', '')}",
        }
        rows.append({**texts, **values, **row})
    return pd.DataFrame(rows, dtype=object)


def _with_unconditional(outputs: Sequence[Line]) -> list[Line]:
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


def _texts(requests: str) -> dict[str, Line]:
    """Return the question and options of each document by its id."""
    if not Path(requests).read_bytes().strip():
        raise UserTableError(
            f"{requests} is empty; copy the requests of the run again, or delete the file to "
            "read the log without texts"
        )
    lines = read_file(requests, known_names=_REQUEST_KEYS)
    if not set(lines.columns) >= _REQUEST_KEYS:
        raise UserTableError(
            f"{requests} has no requests; give the -requests.jsonl of the same run"
        )
    texts: dict[str, Line] = {}
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
