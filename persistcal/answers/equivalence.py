"""Which answers to a question mean the same, found with few comparisons.

Comparisons of all questions are asked together, in rounds: models are fast on batches.
"""

import re
import unicodedata
from collections.abc import Callable, Sequence
from typing import NamedTuple


class Pair(NamedTuple):
    """Two answers to a question; where order matters, whether `one` entails `other`."""

    question: str
    one: str
    other: str


PairTest = Callable[[Sequence[Pair]], Sequence[bool]]

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


def identical(pairs: Sequence[Pair]) -> list[bool]:
    """Say of each pair whether its answers are the same after normalisation."""
    return [normalise(pair.one) == normalise(pair.other) for pair in pairs]


def mutual_entailment(entails: PairTest) -> PairTest:
    """Make an equivalence of `entails`: identical, or each entails the other.

    The first direction goes from the answer that sorts first, so that another
    checkpoint's comparison of the same answers begins with the same one; the
    second is asked only where the first is entailment.

    Examples
    --------
    >>> part_of = lambda pairs: [pair.other in pair.one for pair in pairs]
    >>> where = "Where is Oslo?"
    >>> pairs = [Pair(where, "Norway", "norway."), Pair(where, "Norway", "Nor")]
    >>> mutual_entailment(part_of)(pairs)
    [True, False]
    """

    def equivalent(pairs: Sequence[Pair]) -> list[bool]:
        different = [not same for same in identical(pairs)]
        there = [Pair(p.question, *sorted((p.one, p.other))) for p in pairs]
        back = [Pair(p.question, p.other, p.one) for p in there]
        both = _ask_some(entails, back, _ask_some(entails, there, different))
        return [yes or not asked for yes, asked in zip(both, different, strict=True)]

    return equivalent


def _ask_some(compare: PairTest, pairs: list[Pair], wanted: list[bool]) -> list[bool]:
    """Compare the pairs that are wanted; of the others the answer is no."""
    answers = iter(compare([pair for pair, ask in zip(pairs, wanted, strict=True) if ask]))
    return [ask and bool(next(answers)) for ask in wanted]


def group_answers(
    asked: Sequence[tuple[str, Sequence[str]]], equivalent: PairTest
) -> list[list[int]]:
    """Group each question's answers: the connected components of `equivalent`.

    Answers that are already connected are not compared. Each round compares one
    answer of each question with one of every other group.

    Parameters
    ----------
    asked : sequence of (str, sequence of str)
        Questions, each with its distinct answers.
    equivalent : callable
        Whether the answers of each pair mean the same; symmetric.

    Returns
    -------
    list of list of int
        For each question a number per answer, equal for answers that mean the same.

    Examples
    --------
    >>> same_initial = lambda pairs: [pair.one[0] == pair.other[0] for pair in pairs]
    >>> group_answers([("Who?", ["Ann", "Bob", "Alice"])], same_initial)
    [[0, 1, 0]]
    """
    groups = [_identical_groups(answers) for _, answers in asked]
    compared: list[set[tuple[int, int]]] = [set() for _ in asked]
    while open_pairs := [
        (number, i, j)
        for number, group in enumerate(groups)
        for i, j in _next_pairs(group, compared[number])
    ]:
        pairs = [Pair(asked[n][0], asked[n][1][i], asked[n][1][j]) for n, i, j in open_pairs]
        for (n, i, j), same in zip(open_pairs, equivalent(pairs), strict=True):
            compared[n].add((i, j))
            if same:
                kept, gone = groups[n][i], groups[n][j]
                groups[n] = [kept if group == gone else group for group in groups[n]]
    return groups


def _identical_groups(answers: Sequence[str]) -> list[int]:
    first: dict[str, int] = {}
    return [first.setdefault(normalise(answer), i) for i, answer in enumerate(answers)]


def _next_pairs(group: list[int], compared: set[tuple[int, int]]) -> list[tuple[int, int]]:
    """Pair the first answer that is not compared with all yet with one of each other group."""
    for i in range(len(group)):
        pairs: dict[int, tuple[int, int]] = {}
        for j in range(i + 1, len(group)):
            if group[j] != group[i] and (i, j) not in compared:
                pairs.setdefault(group[j], (i, j))
        if pairs:
            return list(pairs.values())
    return []
