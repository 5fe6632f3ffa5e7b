"""Label answers by a match with references, and parse labels in a judge's replies."""

import re
import string
import unicodedata
from collections.abc import Iterable

CORRECT, INCORRECT, NOT_ATTEMPTED = "correct", "incorrect", "not_attempted"
LABELS = (CORRECT, INCORRECT, NOT_ATTEMPTED)
ARTICLES = {"a", "an", "the"}

SAME = str.maketrans({**dict.fromkeys("‐‑‒–−", "-"), "♯": "#", "⁄": "/", "&": " and "})
# Characters with a meaning are replaced by private ones while punctuation is dropped.
MEANT = str.maketrans(".-+#a", "\ue000\ue001\ue002\ue003\ue004")
AS_WRITTEN = str.maketrans("\ue000\ue001\ue002\ue003\ue004", ".-+#a")
# Soft hyphen, zero-width characters, marks of direction, byte order mark
UNSEEN = dict.fromkeys(
    [0xAD, *range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x206A), 0xFEFF]
)

THOUSANDS = re.compile(
    r"(?<![\d.,])\d{1,3}([,'’\u00a0\u2009\u202f])\d{3}(?:\1\d{3})*(?!\d|,\d)"
)
RAISED = re.compile(r"(?<=\d)(?=[⁰¹²³⁴⁵⁶⁷⁸⁹⁻])")
FRACTION = re.compile(r"(?<=\d)(?=[¼-¾⅐-⅞])")
LEADING_POINT = re.compile(r"(?<!\w)\.(?=\d)")
FULL_STOP = re.compile(r"\.(?!\d)|(?<=[^\W\d_])\.")
POINT_OUTSIDE_NUMBER = re.compile(r"(?<!\d)\.|\.(?!\d)")
MINUS = re.compile(r"(\d\s*|\w)?-\$?(?=[£€¥]?\d)")  # hyphen or range if the group matches
# Characters that distinguish answers: Cl-, blood group A-; C++, Canal+; F#; Vitamin A
CHARGE = re.compile(r"(?<=\b[^\W\d_])-(?=\s)|(?:(?<=\b[^\W\d_])|(?<=\b[^\W\d_]{2}))-(?=\W*$)")
PLUS_SHARP = re.compile(r"(?<=[\w+])\+|(?<=\w)#")
FINAL_A = re.compile(r"(?<=\w\s)a(?=\W*$)")
NUMBERED = re.compile(r"\s*\(?(\d+)\s*[.:)]\s*(.*)")


class JudgeError(RuntimeError):
    """Answers cannot be judged; the message contains the remedy."""


def normalise_answer(text: str) -> str:
    """Return the normal form of `text` for a lexical match.

    The text becomes lower case, without accents, punctuation, articles, repeated spaces and
    full stops inside abbreviations, as in the evaluation of TriviaQA and SQuAD. Separators of
    thousands are removed, and ``&`` becomes "and". Some characters distinguish answers and are
    kept: the sign and decimal point of a number, ``+`` and ``#`` after a word (C++, F#), ``-``
    after one or two final letters (Cl-), a final "A" (Vitamin A), and articles if the text has
    no other word.

    Examples
    --------
    >>> normalise_answer("The U.S.A.!")
    'usa'
    >>> normalise_answer("São  Tomé")
    'sao tome'
    >>> normalise_answer("−1,234.5")
    '-1234.5'
    """
    plain = THOUSANDS.sub(lambda number: re.sub(r"\D", "", number[0]), one_form(text))
    plain = FRACTION.sub(" ", RAISED.sub("^", " ".join(plain.split())))
    plain = unicodedata.normalize("NFKD", plain).casefold().translate(SAME)
    plain = "".join(c for c in plain if not unicodedata.combining(c))
    plain = POINT_OUTSIDE_NUMBER.sub("", LEADING_POINT.sub("0.", plain)).replace(".", "\ue000")
    plain = MINUS.sub(lambda m: m[0] if m[1] else "-".translate(MEANT), plain)
    for meant in (CHARGE, PLUS_SHARP, FINAL_A):
        plain = meant.sub(lambda m: m[0].translate(MEANT), plain)
    words = "".join(" " if _is_punctuation(c) else c for c in plain).split()
    kept = [word for word in words if word not in ARTICLES]
    return " ".join(kept or words).translate(AS_WRITTEN)


def _is_punctuation(character: str) -> bool:
    return character in string.punctuation or unicodedata.category(character)[0] == "P"


def _as_written(text: str) -> str:
    return " ".join(one_form(text).casefold().split())


def judge_lexically(answer: str, references: Iterable[str]) -> str:
    """Return the label of `answer` by comparing it with the references.

    The label is "correct" if the answer equals a reference, as written or after normalisation.
    Otherwise it is "not_attempted" if the answer contains only punctuation and articles, and
    "incorrect" in all other cases.

    Examples
    --------
    >>> judge_lexically("the USA", ["United States", "USA"])
    'correct'
    >>> judge_lexically("Canada", ["United States", "USA"])
    'incorrect'
    """
    references = list(references)
    written, normalised = _as_written(answer), normalise_answer(answer)
    if written and written in map(_as_written, references):
        return CORRECT
    if normalised and normalised in map(normalise_answer, references):
        return CORRECT
    return INCORRECT if set(normalised.split()) - ARTICLES else NOT_ATTEMPTED


def parse_label(reply: str) -> str | None:
    """Return the label if `reply` consists only of it, otherwise None.

    Case, surrounding white space, a final full stop and the underscore are ignored. A label
    inside a sentence is not read, because the sentence can mean the opposite.

    >>> parse_label(" Not attempted. ")
    'not_attempted'
    >>> parse_label("It is not CORRECT") is None
    True
    """
    word = "_".join(reply.strip().removesuffix(".").casefold().split())
    return word if word in LABELS else None


def parse_labels(reply: str, n: int) -> tuple[str | None, ...]:
    r"""Return the labels of `n` candidates from the lines of `reply`, one line each, in order.

    A line can begin with the number of the candidate, ``2.`` or ``2:`` or ``(2)``; with a wrong
    number it is unreadable. After an unreadable line only numbered lines are read, because the
    candidates of other lines are uncertain.

    >>> parse_labels("Here they are:\n2: CORRECT\nINCORRECT", 3)
    (None, 'correct', None)
    """
    lines = [line for line in reply.splitlines() if line.strip()][:n]
    if len(lines) < n:
        return (None,) * n
    labels: list[str | None] = []
    in_step = True
    for number, line in enumerate(lines, start=1):
        if numbered := NUMBERED.fullmatch(line):
            label = parse_label(numbered[2]) if numbered[1] == str(number) else None
        else:
            label = parse_label(line) if in_step else None
        in_step = in_step and label is not None
        labels.append(label)
    return tuple(labels)


def one_form(text: str) -> str:
    """Return `text` with composed letters (NFC) and without zero-width characters.

    >>> one_form("Cafe\u0301\u200b") == "Caf\u00e9"
    True
    """
    return text if text.isascii() else unicodedata.normalize("NFC", text.translate(UNSEEN))


def normalise(answer: str) -> str:
    """Return `answer` in lower case and without full stops; equal results are the same answer.

    A point before a digit is kept, unless it follows a letter.

    >>> [normalise(answer) for answer in (" U.S.A. ", "3.5", "-.5", "No.5")]
    ['usa', '3.5', '-.5', 'no5']
    """
    return " ".join(FULL_STOP.sub("", one_form(answer).lower()).split())
