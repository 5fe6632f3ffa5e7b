"""The labels of a judge: by a match against references, or read from a judge's reply."""

import re
import string
import unicodedata
from collections.abc import Iterable
from typing import NamedTuple

CORRECT, INCORRECT, NOT_ATTEMPTED = "correct", "incorrect", "not_attempted"
LABELS = (CORRECT, INCORRECT, NOT_ATTEMPTED)

ARTICLES = re.compile(r"\b(a|an|the)\b")
PUNCTUATION = str.maketrans(dict.fromkeys(string.punctuation, " "))


class JudgeError(RuntimeError):
    """Answers cannot be judged; the message says what a person can do about it."""


class Verdict(NamedTuple):
    """What a judge said of one candidate answer.

    Attributes
    ----------
    label : {"correct", "incorrect", "not_attempted"} or None
        None when a person has to decide.
    reason : {"", "refusal", "malformed"}
        Why there is no label.
    reply : str
        The judge's own words.
    """

    label: str | None
    reason: str
    reply: str


def normalise_answer(text: str) -> str:
    """Reduce `text` to what a lexical match compares.

    Lower case; no accents, punctuation, articles or repeated spaces, as in the
    evaluation of TriviaQA and SQuAD; full stops inside abbreviations vanish.

    Examples
    --------
    >>> normalise_answer("The U.S.A.!")
    'usa'
    >>> normalise_answer("São  Tomé")
    'sao tome'
    """
    plain = unicodedata.normalize("NFKD", text.casefold().replace(".", ""))
    plain = "".join(c for c in plain if not unicodedata.combining(c))
    return " ".join(ARTICLES.sub(" ", plain.translate(PUNCTUATION)).split())


def judge_lexically(answer: str, references: Iterable[str]) -> str:
    """Label `answer` "correct" when it equals a reference after normalisation.

    Parameters
    ----------
    answer : str
        A candidate answer.
    references : iterable of str
        Accepted answers, aliases included.

    Returns
    -------
    {"correct", "incorrect", "not_attempted"}
        "not_attempted" when nothing of the answer is left after normalisation.

    Examples
    --------
    >>> judge_lexically("the USA", ["United States", "USA"])
    'correct'
    >>> judge_lexically("Canada", ["United States", "USA"])
    'incorrect'
    """
    said = normalise_answer(answer)
    if not said:
        return NOT_ATTEMPTED
    return CORRECT if said in {normalise_answer(text) for text in references} else INCORRECT


def parse_label(reply: str) -> str | None:
    """Read the label that is the whole of `reply`, or None when it is anything else.

    Case, surrounding white space, a final full stop and the underscore do not
    count; a label inside a sentence does not either, because the sentence may
    say the opposite.

    Examples
    --------
    >>> parse_label(" Not attempted. ")
    'not_attempted'
    >>> parse_label("It is not CORRECT") is None
    True
    """
    said = "_".join(reply.strip().removesuffix(".").casefold().split())
    return said if said in LABELS else None
