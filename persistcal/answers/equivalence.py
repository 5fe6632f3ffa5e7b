"""Whether two answers have the same meaning, and the groups that follow from it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from persistcal.questions import labels


class Pair(NamedTuple):
    """Two answers to a question; if order matters, whether `one` entails `other`."""

    question: str
    one: str
    other: str


PairTest = Callable[[Sequence[Pair]], Sequence[bool]]


def identical(pairs: Sequence[Pair]) -> list[bool]:
    """Return for each pair whether its answers are equal by the rule that labels answers."""
    return [labels.same_answer(pair.one, pair.other) for pair in pairs]


Form = Callable[[str], str]
FORMS: Mapping[str, Form] = {"numbers": labels.normalise, "released": labels.without_stops}


def nothing(pairs: Sequence[Pair]) -> list[bool]:
    """Return for each pair that its answers do not entail each other."""
    return [False] * len(pairs)


@dataclass(frozen=True)
class MutualEntailment:
    """The paper's equivalence: equal in a form, or mutual entailment.

    The first test starts from the answer that sorts first, so that all checkpoints share
    it. The second direction is tested only if the first one is entailment.
    """

    entails: PairTest
    form: Form = labels.normalise

    def __call__(self, pairs: Sequence[Pair]) -> list[bool]:
        """Return for each pair whether its answers mean the same."""
        different = [self.form(pair.one) != self.form(pair.other) for pair in pairs]
        forward = [Pair(p.question, *sorted((p.one, p.other))) for p in pairs]
        back = [Pair(p.question, p.other, p.one) for p in forward]
        mutual = _ask_some(self.entails, back, _ask_some(self.entails, forward, different))
        return [yes or not differ for yes, differ in zip(mutual, different, strict=True)]


def form_of(equivalent: PairTest) -> Form:
    """Return the form in which answers are equal without a comparison."""
    return equivalent.form if isinstance(equivalent, MutualEntailment) else labels.normalise


def _ask_some(compare: PairTest, pairs: list[Pair], wanted: list[bool]) -> list[bool]:
    """Compare the wanted pairs; the result for others is False."""
    answers = iter(compare([pair for pair, ask in zip(pairs, wanted, strict=True) if ask]))
    return [ask and bool(next(answers)) for ask in wanted]


def group_answers(
    texts: Sequence[tuple[str, Sequence[str]]], equivalent: PairTest
) -> list[list[int]]:
    """Group each question's distinct answers: the connected components of `equivalent`.

    Connected answers are not compared again. Each round compares one answer of each
    question with one answer of every other group. Returned is a number per answer, equal for
    answers that mean the same. Groups of `identical` answers are not connected by a spelling
    that matches two different ones.
    """
    if equivalent is identical:
        return [labels.group_same_answers(answers) for _, answers in texts]
    groups, form = [], form_of(equivalent)
    for _, answers in texts:
        first: dict[str, int] = {}
        groups.append([first.setdefault(form(text), i) for i, text in enumerate(answers)])
    compared: list[set[tuple[int, int]]] = [set() for _ in texts]
    while open_pairs := [
        (number, i, j)
        for number, group in enumerate(groups)
        for i, j in _next_pairs(group, compared[number])
    ]:
        pairs = [Pair(texts[n][0], texts[n][1][i], texts[n][1][j]) for n, i, j in open_pairs]
        for (n, i, j), same in zip(open_pairs, equivalent(pairs), strict=True):
            compared[n].add((i, j))
            if same:
                kept, gone = groups[n][i], groups[n][j]
                groups[n] = [kept if group == gone else group for group in groups[n]]
    return groups


def _next_pairs(group: list[int], compared: set[tuple[int, int]]) -> list[tuple[int, int]]:
    """Pair the first incompletely compared answer with one answer of each other group."""
    for i in range(len(group)):
        pairs: dict[int, tuple[int, int]] = {}
        for j in range(i + 1, len(group)):
            if group[j] != group[i] and (i, j) not in compared:
                pairs.setdefault(group[j], (i, j))
        if pairs:
            return list(pairs.values())
    return []


# The files of an entailment model besides its weights.
MODEL_FILES = ["*.json", "*.txt", "*.model"]
