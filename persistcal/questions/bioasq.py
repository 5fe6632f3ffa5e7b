"""BioASQ as the paper asks it: factoid and list questions of the task-B training data."""

import random
from collections.abc import Sequence
from typing import Any

import pandas as pd

from persistcal.questions.question_list import SHUFFLE_SEED, Question, number_questions

N_EXAMPLES = 5  # few-shot examples of each type
MAX_GROUPS = 10  # a judge loses track of longer lists
LIST_REQUEST = " Just output one of the answers."


def _answers(exact_answer: object) -> list[str]:
    """Flatten the exact answer (groups of synonyms, a list, or one text) without empty ones.

    >>> _answers([["CFTR", " "], ["ABCC7 "]])
    ['CFTR', 'ABCC7']
    """
    if isinstance(exact_answer, str):
        return [answer] if (answer := exact_answer.strip()) else []
    if not isinstance(exact_answer, Sequence):
        return []
    return [answer for part in exact_answer for answer in _answers(part)]


def factoid_question(body: str, exact_answer: object) -> Question:
    """Return a factoid question; several exact answers are each accepted.

    >>> factoid_question("Which gene causes it", [["CFTR"]])[:4]
    ('Which gene causes it?', ['CFTR'], False, 'factoid')
    """
    if "?" not in body and not body.endswith((".", "!")):
        body += "?"
    references = _answers(exact_answer)
    return Question(body, references, any_of=len(references) > 1, category="factoid")


def list_question(body: str, groups: Sequence[object]) -> Question:
    """Return a list question that asks for one answer of its `groups`.

    >>> list_question("List the chains", [["alpha", "α"], ["beta"]])[:4]
    ('List the chains. Just output one of the answers.', ['alpha', 'α', 'beta'], True, 'list')
    """
    if not body.endswith((".", "?", "!")):
        body += "."
    return Question(body + LIST_REQUEST, _answers(groups), any_of=True, category="list")


def _question(entry: dict[str, Any]) -> Question:
    make = factoid_question if entry["type"] == "factoid" else list_question
    question = make(entry["body"].strip(), entry.get("exact_answer") or [])
    if not question.references:
        raise ValueError(
            f"question {entry.get('id')!r} ({entry['body']!r}) has no exact answer"
        )
    return question


def bioasq_questions(entries: Sequence[dict[str, Any]]) -> pd.DataFrame:
    """Return the factoid and list questions of BioASQ's training file, all for evaluation.

    They are in one shuffled order; the category is the type. The first five of each type are
    few-shot examples.
    """
    order = list(range(len(entries)))
    random.Random(SHUFFLE_SEED).shuffle(order)
    first: dict[str, dict[str, Any]] = {}
    for position in order:
        first.setdefault(entries[position]["body"].strip(), entries[position])
    questions = [
        _question(entry)
        for entry in first.values()
        if entry["type"] == "factoid"
        or (entry["type"] == "list" and len(entry.get("exact_answer") or []) <= MAX_GROUPS)
    ]
    examples = [
        example
        for category in ("factoid", "list")
        for example in [q for q in questions if q.category == category][:N_EXAMPLES]
    ]
    asked = [question for question in questions if question not in examples]
    return number_questions("bioasq", asked, examples, train=[0, 0], test=[0, len(asked)])
