"""Compare question ids between checkpoints and models: spelling, and how many are shared."""

import re
import unicodedata
from collections.abc import Collection, Iterator, Mapping
from itertools import combinations

import pandas as pd

_LEADING_ZEROS = re.compile(r"(?<![\d.])0+(?=\d)")
_WHOLE = re.compile(r"([+-]?\d+)\.0*")
_INVISIBLE = dict.fromkeys([0x200B, 0x200C, 0x200D, 0x2060, 0xFEFF, 0x00AD])


def fold(question_id: str) -> str:
    r"""Return an identifier without what programs add to or take from one on the way.

    >>> fold("007"), fold(" 7.0"), fold("q07"), fold("2.05"), fold("cafe\u0301")
    ('7', '7', 'q7', '2.05', 'café')
    """
    text = unicodedata.normalize("NFKC", question_id).translate(_INVISIBLE)
    text = _LEADING_ZEROS.sub("", "".join(text.split()))
    whole = _WHOLE.fullmatch(text)
    return whole[1] if whole else text


def spelling_error(predictions: pd.DataFrame) -> str:
    """Describe questions whose ids differ in spelling between states; empty if there are none.

    `predictions` are of one dataset, of one model or several. Spellings that are all known to
    the same states are different questions.
    """
    keys = ["model", "checkpoint", "question_id"]
    distinct = predictions.drop_duplicates(keys)[keys].astype(str)
    states = {
        place: frozenset(ids)
        for place, ids in distinct.groupby(keys[:2], sort=False)["question_id"]
    }
    if len(set(states.values())) < 2:
        return ""
    known: dict[str, dict[str, list[str]]] = {}  # states by spelling, of each question
    for (model, checkpoint), ids in states.items():
        for name in sorted(ids):
            at = known.setdefault(fold(name), {}).setdefault(name, [])
            at.append(f"{checkpoint} of {model}")
    differing = [at for at in known.values() if len(set(map(tuple, at.values()))) > 1]
    if not (clash := [at for at in differing if len(at) > 1]):
        return ""
    shared, every = frozenset.intersection(*states.values()), frozenset.union(*states.values())
    first = "; ".join(f"{name!r} at {at[0]}" for name, at in clash[0].items())
    return (
        f"the ids of {len(clash):,} questions differ in spelling ({first}), so that "
        f"{len(shared):,} of {len(every):,} ids are shared by all checkpoints and models; "
        "write the id of a question in one way"
    )


def partly_shared(questions: Mapping[str, Collection[str]]) -> str:
    """Say how many questions all checkpoints have; nothing where that is all of them.

    >>> print(partly_shared({"a": ["1", "2"], "b": ["2"]}))
    only 1 of 2 questions are at every checkpoint (a 2, b 1): ...
    >>> partly_shared({"a": ["1"], "b": ["1"]})
    ''
    """
    sets = [set(names) for names in questions.values()]
    shared, every = set.intersection(*sets), set.union(*sets)
    if len(shared) == len(every):
        return ""
    sizes = ", ".join(
        f"{name} {len(there):,}" for name, there in zip(questions, sets, strict=True)
    )
    return (
        f"only {len(shared):,} of {len(every):,} questions are at every checkpoint ({sizes}): "
        "a contrast set holds those that both of its checkpoints have"
    )


def shared_by_models(questions: Mapping[str, Collection[str]]) -> Iterator[str]:
    """Yield a sentence for each two models that answered different questions.

    `questions` are those that the last checkpoint of each model answered.

    >>> list(shared_by_models({"A": ["1", "2"], "B": ["2", "3", "4"]}))
    ['A and B share 1 of 4 questions and are compared on these']
    """
    for (model, ids), (other, others) in combinations(questions.items(), 2):
        shared, every = set(ids) & set(others), set(ids) | set(others)
        if len(shared) < len(every):
            yield (
                f"{model} and {other} share {len(shared):,} of {len(every):,} questions and "
                "are compared on these"
            )
