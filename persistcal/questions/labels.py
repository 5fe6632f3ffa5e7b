"""Label answers by a match with references, and parse labels in a judge's replies."""

import re
import string
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

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
# The zeros at the end of a decimal number, but not of a version such as 1.10.2
LAST_ZEROS = re.compile(r"(?<![\w.])(\d+)\.(\d*?)0+(?!\d|\.\d)")
MINUS = re.compile(r"(\d\s*|\w)?-\$?(?=[£€¥]?\d)")  # hyphen or range if the group matches
# Characters that distinguish answers: Cl-, blood group A-; C++, Canal+; F#; Vitamin A
CHARGE = re.compile(r"(?<=\b[^\W\d_])-(?=\s)|(?:(?<=\b[^\W\d_])|(?<=\b[^\W\d_]{2}))-(?=\W*$)")
PLUS_SHARP = re.compile(r"(?<=[\w+])\+|(?<=\w)#")
FINAL_A = re.compile(r"(?<=\w\s)a(?=\W*$)")
NUMBERED = re.compile(r"\s*\(?(\d+)\s*[.:)]\s*(.*)")
# Characters around the labels of a judge's reply
FENCE = re.compile(r"^\s*(```|~~~)\w*\s*$", re.MULTILINE)
EMPHASIS = re.compile(r"[*`]|(?<!\w)__|__(?!\w)")
HEADING = re.compile(r"labels?\s*:\s*", re.IGNORECASE)


class JudgeError(RuntimeError):
    """Answers cannot be judged; the message contains the remedy."""


class Spelling(NamedTuple):
    """The normal form of an answer."""

    text: str  # without marks on Latin and Greek letters
    marks: tuple[str, ...]  # of each character of `text`


def normalise_answer(text: str) -> str:
    """Return the normal form of `text` for a lexical match.

    The text becomes lower case, without accents, punctuation, articles, repeated spaces and
    full stops inside abbreviations, as in the evaluation of TriviaQA and SQuAD. Only Latin and
    Greek letters lose their accents; in other scripts these make other letters. Separators of
    thousands and zeros at the end of decimal numbers are removed, and ``&`` becomes "and". Some
    characters distinguish answers and are kept: the sign and decimal point of a number, ``+``
    and ``#`` after a word (C++, F#), ``-`` after one or two final letters (Cl-), a final "A"
    (Vitamin A), and articles if the text has no other word.

    Examples
    --------
    >>> normalise_answer("The U.S.A.!")
    'usa'
    >>> normalise_answer("São  Tomé")
    'sao tome'
    >>> normalise_answer("−1,234.50")
    '-1234.5'
    """
    return _spelling(text).text


@lru_cache(1 << 16)
def _spelling(text: str) -> Spelling:
    """Return the normal form of `text`; one without words is compared as it is written."""
    plain = THOUSANDS.sub(lambda number: re.sub(r"\D", "", number[0]), one_form(text))
    plain = FRACTION.sub(" ", RAISED.sub("^", " ".join(plain.split())))
    plain = unicodedata.normalize("NFKD", plain).casefold().translate(SAME)
    if plain.isascii():
        plain = _words(plain)
        return Spelling(plain, ("",) * len(plain))
    # Composed letters are words for the patterns, and combining marks are not.
    words = unicodedata.normalize("NFD", _words(unicodedata.normalize("NFC", _marked(plain))))
    letters = re.findall(r"[^\u0300-\u036f][\u0300-\u036f]*", words)
    # Marks on other letters than Latin and Greek ones are no accents.
    is_accented = [unicodedata.name(c[0], "").startswith(("LATIN", "GREEK")) for c in letters]
    bare = [c[0] if has else c for c, has in zip(letters, is_accented, strict=True)]
    marks = [
        letter[len(bare_letter) :] for letter, bare_letter in zip(letters, bare, strict=True)
    ]
    return Spelling("".join(bare), tuple(marks))


def _marked(decomposed: str) -> str:
    """Return a decomposed text without the marks on characters other than letters."""
    kept, base = [], " "
    for character in decomposed:
        if not unicodedata.combining(character):
            base = character
        elif not base.isalpha():
            continue
        kept.append(character)
    return "".join(kept)


def _words(plain: str) -> str:
    """Return a text in lower case without articles and meaningless punctuation."""
    plain = LAST_ZEROS.sub(lambda m: f"{m[1]}.{m[2]}".rstrip("."), plain)
    plain = POINT_OUTSIDE_NUMBER.sub("", LEADING_POINT.sub("0.", plain)).replace(".", "\ue000")
    plain = MINUS.sub(lambda m: m[0] if m[1] else "-".translate(MEANT), plain)
    for meant in (CHARGE, PLUS_SHARP, FINAL_A):
        plain = meant.sub(lambda m: m[0].translate(MEANT), plain)
    words = "".join(
        " " if c in string.punctuation or unicodedata.category(c)[0] == "P" else c
        for c in plain
    ).split()
    kept = [word for word in words if word not in ARTICLES]
    return " ".join(kept or words).translate(AS_WRITTEN)


def _leaves_out(spelling: Spelling, longer: Spelling) -> bool:
    """Return whether a spelling equals a `longer` one except for missing marks."""
    return all(a in ("", b) for a, b in zip(spelling.marks, longer.marks, strict=True))


def same_answer(one: str, other: str) -> bool:
    """Return whether two answers are lexically the same: by this they are grouped and labelled.

    They are the same as written, or in the form of `normalise_answer`. A spelling can leave out
    marks of the other one, but different marks never match.

    >>> [same_answer("Malmo", "Malmö"), same_answer("Malmó", "Malmö")]
    [True, False]
    >>> [same_answer("The Nile!", "nile"), same_answer("1,000", "1000.0")]
    [True, True]
    """
    first, second = _spelling(one), _spelling(other)
    if first.text and first.text == second.text:
        return _leaves_out(first, second) or _leaves_out(second, first)
    written = _as_written(one)
    return bool(written) and written == _as_written(other)


def group_same_answers(answers: Sequence[str]) -> list[int]:
    """Return a number per answer, equal for answers of one group.

    A spelling without marks is in the group of the one spelling with marks. If there are
    several of these, it is in a separate group, because it could mean any of them.

    >>> group_same_answers(["Nile", "The Nile", "Malmö", "malmo", "Oslo"])
    [0, 0, 2, 2, 4]
    >>> group_same_answers(["Malmö", "Malmo", "Malmó"])
    [0, 1, 2]
    """
    spellings = [_spelling(answer) for answer in answers]
    by_text: dict[str, list[Spelling]] = {}
    for spelling in dict.fromkeys(spellings):
        by_text.setdefault(spelling.text, []).append(spelling)
    full = {text: _fullest(variants) for text, variants in by_text.items()}
    first: dict[object, int] = {}
    groups = []
    for number, (answer, spelling) in enumerate(zip(answers, spellings, strict=True)):
        above = [s for s in full[spelling.text] if _leaves_out(spelling, s)]
        key: object = above[0] if len(above) == 1 else spelling
        groups.append(first.setdefault(key if spelling.text else _as_written(answer), number))
    return groups


def _fullest(spellings: Sequence[Spelling]) -> list[Spelling]:
    """Return the spellings that leave out no mark of another one."""
    return [
        one
        for one in spellings
        if not any(one != other and _leaves_out(one, other) for other in spellings)
    ]


def _as_written(text: str) -> str:
    return " ".join(one_form(text).casefold().split())


def judge_lexically(answer: str, references: Iterable[str]) -> str:
    """Return the label of `answer` by comparing it with the references.

    The label is "correct" if the answer is the `same_answer` as a reference. Otherwise it is
    "not_attempted" if the answer contains only punctuation and articles, and "incorrect" in all
    other cases.

    Examples
    --------
    >>> judge_lexically("the USA", ["United States", "USA"])
    'correct'
    >>> judge_lexically("Canada", ["United States", "USA"])
    'incorrect'
    """
    if any(same_answer(answer, reference) for reference in references):
        return CORRECT
    has_words = set(normalise_answer(answer).split()) - ARTICLES
    return INCORRECT if has_words else NOT_ATTEMPTED


# Characters that TriviaQA's evaluation reads as spaces, and articles that it drops
BENCHMARK_SPACES = str.maketrans(dict.fromkeys(string.punctuation + "‘’´`", " "))
BENCHMARK_ARTICLES = re.compile(r"\b(a|an|the)\b")


def benchmark_form(text: str) -> str:
    """Return the normal form of an answer in the evaluation of TriviaQA.

    Lower case, with spaces in place of punctuation, without articles and repeated spaces [1]_.

    References
    ----------
    .. [1] ``normalize_answer`` in evaluation/triviaqa_evaluation.py of mandarjoshi90/triviaqa.

    Examples
    --------
    >>> benchmark_form("The Beatles' “White_Album”")
    'beatles “white album”'
    """
    return " ".join(
        BENCHMARK_ARTICLES.sub(" ", text.lower().translate(BENCHMARK_SPACES)).split()
    )


def judge_by_exact_match(answer: str, references: Iterable[str]) -> str:
    """Return the label of `answer` by the standard metric of TriviaQA.

    The label is "correct" if the `benchmark_form` of the answer equals the form of a reference,
    "not_attempted" if it is empty, and "incorrect" in all other cases.

    Examples
    --------
    >>> judge_by_exact_match("an Eagle!", ["Bald eagle", "eagle"])
    'correct'
    >>> judge_by_exact_match("golden eagle", ["Bald eagle", "eagle"])
    'incorrect'
    """
    if not (form := benchmark_form(answer)):
        return NOT_ATTEMPTED
    return CORRECT if form in map(benchmark_form, references) else INCORRECT


Words = Mapping[str, str]  # a judge's words for labels, such as {"R": "correct"}
OWN_WORDS: Words = {label: label for label in LABELS}


def word_form(word: str) -> str:
    """Return a judge's word without case, underscores and repeated spaces.

    >>> [word_form(word) for word in ("NOT ATTEMPTED", "not_attempted")]
    ['not attempted', 'not attempted']
    """
    return " ".join(word.casefold().replace("_", " ").split())


def _without_markup(reply: str) -> str:
    """Return a reply without code fences, emphasis and "Label:" before its text."""
    plain = EMPHASIS.sub("", FENCE.sub("", reply)).strip()
    return HEADING.sub("", plain, count=1)


def parse_label(reply: str, words: Words = OWN_WORDS) -> str | None:
    """Return the label if `reply` is one of the `words` and nothing else, otherwise None.

    Case, surrounding white space, a final full stop and the underscore are ignored, as are a
    code fence, emphasis such as ``**`` and "Label:" before the word. A label inside a sentence
    is not read, because the sentence can mean the opposite.

    >>> [parse_label(" Not attempted. "), parse_label("**Label:** `CORRECT`")]
    ['not_attempted', 'correct']
    >>> parse_label("It is not CORRECT") is None
    True
    >>> parse_label("W", {"R": "correct", "W": "incorrect"})
    'incorrect'
    """
    by_form = {word_form(word): label for word, label in words.items()}
    return by_form.get(word_form(_without_markup(reply).removesuffix(".")))


def parse_labels(reply: str, n: int, words: Words = OWN_WORDS) -> tuple[str | None, ...]:
    r"""Return the labels of `n` candidates from the lines of `reply`, one line each, in order.

    A line can begin with the number of the candidate, ``2.`` or ``2:`` or ``(2)``; with a wrong
    number it is unreadable. After an unreadable line only numbered lines are read, because the
    candidates of other lines are uncertain. Code fences and a line "Labels:" do not count, and
    each line is read like `parse_label`.

    >>> parse_labels("Here they are:\n2: CORRECT\nINCORRECT", 3)
    (None, 'correct', None)
    >>> parse_labels("```\n**1.** R\n**2.** W\n```", 2, {"R": "correct", "W": "incorrect"})
    ('correct', 'incorrect')
    """
    plain = (_without_markup(line) for line in reply.splitlines())
    lines = [line for line in plain if line][:n]
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


def one_form(text: str) -> str:
    """Return `text` with composed letters (NFC) and without zero-width characters.

    >>> one_form("Cafe\u0301\u200b") == "Caf\u00e9"
    True
    """
    return text if text.isascii() else unicodedata.normalize("NFC", text.translate(UNSEEN))


def without_stops(answer: str) -> str:
    """Return `answer` in lower case and without any full stop, as the paper's code compares it.

    Nothing else is changed, also no space.

    >>> without_stops("U.S.A."), without_stops("3.5  m")
    ('usa', '35  m')
    """
    return answer.lower().replace(".", "")


def normalise(answer: str) -> str:
    """Return `answer` in lower case and without full stops, the paper's form of one answer.

    A point before a digit is kept, unless it follows a letter.

    >>> [normalise(answer) for answer in (" U.S.A. ", "3.5", "-.5", "No.5", "Malmö")]
    ['usa', '3.5', '-.5', 'no5', 'malmö']
    """
    return " ".join(FULL_STOP.sub("", one_form(answer).lower()).split())
