"""Question identifiers compared between checkpoints, and their other spellings."""

import re
import unicodedata
from collections.abc import Collection, Mapping

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


def other_spellings(asked: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of questions that some checkpoints know by another spelling.

    Of each question the first row of each spelling, with `fold` as index; spellings that are at
    the same checkpoints are different questions.
    """
    distinct = asked.drop_duplicates(["checkpoint", "question_id"])
    names = distinct["question_id"].astype(str)
    folded = names.map({name: fold(name) for name in names.unique()})
    by_fold = names.groupby(folded)
    several = distinct[folded.map(by_fold.nunique()) > 1]
    if several.empty:
        return several
    at = several.groupby("question_id", observed=True)["checkpoint"].agg(frozenset)
    rows = several.assign(at=several["question_id"].map(at).astype(object))
    rows = rows.set_axis(folded[several.index], axis="index")
    differ = rows["at"].groupby(level=0).nunique() > 1
    clashing = rows[differ.reindex(rows.index).to_numpy()].drop(columns="at")
    return clashing.drop_duplicates("question_id").sort_index(kind="stable")


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
