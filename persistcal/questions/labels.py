"""The labels of a judge: by a match against references, or read from a judge's reply."""

import re
import string
import unicodedata
from collections.abc import Iterable, Mapping

CORRECT, INCORRECT, NOT_ATTEMPTED = "correct", "incorrect", "not_attempted"

LABELS = (CORRECT, INCORRECT, NOT_ATTEMPTED)

WORDS = {label: label for label in LABELS}

LETTERS = {"r": CORRECT, "w": INCORRECT, "n": NOT_ATTEMPTED}

ARTICLES = {"a", "an", "the"}

SAME = str.maketrans({**dict.fromkeys("‐‑‒–−", "-"), "♯": "#", "⁄": "/", "&": " and "})

# Characters that carry meaning stand as private ones while the others are dropped.
MEANT = str.maketrans(".-+#a", "\ue000\ue001\ue002\ue003\ue004")

AS_WRITTEN = str.maketrans("\ue000\ue001\ue002\ue003\ue004", ".-+#a")

THOUSANDS = re.compile(
    r"(?<![\d.,])\d{1,3}([,'’\u00a0\u2009\u202f])\d{3}(?:\1\d{3})*(?!\d|,\d)"
)

RAISED = re.compile(r"(?<=\d)(?=[⁰¹²³⁴⁵⁶⁷⁸⁹⁻])")

FRACTION = re.compile(r"(?<=\d)(?=[¼-¾⅐-⅞])")

LEADING_POINT = re.compile(r"(?<!\w)\.(?=\d)")

FULL_STOP = re.compile(r"(?<!\d)\.|\.(?!\d)")

MINUS = re.compile(r"(\d\s*|\w)?-\$?(?=[£€¥]?\d)")  # hyphen or range if the group is there

# What makes another answer: Cl-, blood group A-; C++, Canal+; F#; Vitamin A
CHARGE = re.compile(r"(?<=\b[^\W\d_])-(?=\s)|(?:(?<=\b[^\W\d_])|(?<=\b[^\W\d_]{2}))-(?=\W*$)")

PLUS_SHARP = re.compile(r"(?<=[\w+])\+|(?<=\w)#")

FINAL_A = re.compile(r"(?<=\w\s)a(?=\W*$)")

NUMBERED = re.compile(r"\s*\(?(\d+)\s*[.:)]\s*(.*)")


class JudgeError(RuntimeError):
    """Answers cannot be judged; the message says what a person can do about it."""


def normalise_answer(text: str) -> str:
    """Reduce `text` to what a lexical match compares.

    Lower case; no accents, punctuation, articles or repeated spaces, as in the
    evaluation of TriviaQA and SQuAD; full stops inside abbreviations vanish.
    Kept is what makes another answer: the sign and the decimal point of a
    number, ``+`` and ``#`` after a word (C++, F#), a final ``-`` of one or two
    letters (Cl-), a final "A" (Vitamin A), and articles that are all there is.
    Separators of thousands vanish, ``&`` is "and".

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
    plain = FULL_STOP.sub("", LEADING_POINT.sub("0.", plain)).replace(".", "\ue000")
    plain = MINUS.sub(lambda m: m[0] if m[1] else "-".translate(MEANT), plain)
    for meant in (CHARGE, PLUS_SHARP, FINAL_A):
        plain = meant.sub(lambda m: m[0].translate(MEANT), plain)
    words = "".join(" " if _is_punctuation(c) else c for c in plain).split()
    said = [word for word in words if word not in ARTICLES]
    return " ".join(said or words).translate(AS_WRITTEN)


def _is_punctuation(character: str) -> bool:
    return character in string.punctuation or unicodedata.category(character)[0] == "P"


def _as_written(text: str) -> str:
    return " ".join(one_form(text).casefold().split())


def judge_lexically(answer: str, references: Iterable[str]) -> str:
    """Label `answer` "correct" when it equals a reference, as written or after normalisation.

    It is "not_attempted" when it equals none and is nothing but punctuation and articles.

    Examples
    --------
    >>> judge_lexically("the USA", ["United States", "USA"])
    'correct'
    >>> judge_lexically("Canada", ["United States", "USA"])
    'incorrect'
    """
    references = list(references)
    written, said = _as_written(answer), normalise_answer(answer)
    if written and written in map(_as_written, references):
        return CORRECT
    if said and said in map(normalise_answer, references):
        return CORRECT
    return INCORRECT if set(said.split()) - ARTICLES else NOT_ATTEMPTED


def parse_label(reply: str, words: Mapping[str, str] = WORDS) -> str | None:
    """Read the label that is the whole of `reply`, or None when it is anything else.

    Case, surrounding white space, a final full stop and the underscore do not
    count; a label inside a sentence does not either, because the sentence may
    say the opposite. `words` are what stands for each label.

    Examples
    --------
    >>> parse_label(" Not attempted. ")
    'not_attempted'
    >>> parse_label("It is not CORRECT") is None
    True
    >>> parse_label("R", LETTERS)
    'correct'
    """
    said = "_".join(reply.strip().removesuffix(".").casefold().split())
    return words.get(said)


def parse_labels(
    reply: str, n: int, words: Mapping[str, str] = WORDS
) -> tuple[str | None, ...]:
    r"""Read the labels of `n` candidates from the lines of `reply`, one line each, in order.

    Empty lines, and lines after the n-th, do not count. A line may begin with
    the number of its candidate, ``2.`` or ``2:`` or ``(2)``; another number
    makes it unreadable. After a line that cannot be read it is not certain any
    more which candidate a line is about, unless it is numbered. None is where a person
    has to decide: everywhere if there are too few lines.

    Examples
    --------
    >>> parse_labels("CORRECT\nNot attempted.\nINCORRECT", 2)
    ('correct', 'not_attempted')
    >>> parse_labels("Here they are:\n2: CORRECT\nINCORRECT", 3)
    (None, 'correct', None)
    >>> parse_labels("CORRECT", 2)
    (None, None)
    """
    lines = [line for line in reply.splitlines() if line.strip()][:n]
    if len(lines) < n:
        return (None,) * n
    labels: list[str | None] = []
    in_step = True
    for number, line in enumerate(lines, start=1):
        if numbered := NUMBERED.fullmatch(line):
            label = parse_label(numbered[2], words) if numbered[1] == str(number) else None
        else:
            label = parse_label(line, words) if in_step else None
        in_step = in_step and label is not None
        labels.append(label)
    return tuple(labels)


FULL_STOP = re.compile(r"\.(?!\d)|(?<=[^\W\d_])\.")


# Soft hyphen, zero-width characters, marks of direction, byte order mark
UNSEEN = dict.fromkeys(
    [0xAD, *range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x206A), 0xFEFF]
)


def one_form(text: str) -> str:
    """Return `text` with composed letters (NFC) and without characters of no width.

    >>> one_form("Cafe\u0301\u200b") == "Caf\u00e9"
    True
    """
    return text if text.isascii() else unicodedata.normalize("NFC", text.translate(UNSEEN))


def normalise(answer: str) -> str:
    """Lower-case `answer` without full stops, in one form: what counts as identical.

    A point before a digit is no full stop, unless it is after a letter.

    >>> [normalise(answer) for answer in (" U.S.A. ", "3.5", "-.5", "No.5")]
    ['usa', '3.5', '-.5', 'no5']
    """
    return " ".join(FULL_STOP.sub("", one_form(answer).lower()).split())
