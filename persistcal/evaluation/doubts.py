"""Doubts about predictions that no single row raises: grades, a turned scale, copies, ids."""

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np
import pandas as pd

from persistcal.evaluation.contrast import ContrastSet
from persistcal.evaluation.influence import area_influence
from persistcal.evaluation.predictions import (
    ABSENT,
    AnswerArrays,
    Array,
    PredictionsError,
    natural_key,
)
from persistcal.evaluation.proportions import Z, binomial_cdf
from persistcal.evaluation.samples import LEVEL

SURE = 1e-6  # the largest probability of a chance that looks like a mistake
TURNED, INFORMED = 0.4, 0.6  # AUC that a confidence is surely below, or above
GRADE, LEAST_GRADES = 0.99, 40  # AUC of a grade, and answers of all checkpoints
UNRELATED = 0.15  # correlation of two checkpoints' confidences; real models have .3 and more
MOST = 20_000  # answers of a checkpoint that an AUC is computed from
SHARED = 0.05  # share of the questions that have one confidence without being copies
DIFFERENT = 0.1  # of the different labels that copies would have by chance, the most they have


def check_order(first: AnswerArrays, second: AnswerArrays) -> None:
    """Refuse a second ask with checkpoints in another order than the first one.

    A question that changes in both asks changes in the same direction with a probability of at
    least one half, also if every change is a chance flip. One question of each group counts.
    """
    for ends in combinations(range(len(first.checkpoints)), 2):
        labels = np.array([of_ask.correct[list(ends)] for of_ask in (first, second)], int)
        change = labels[:, 1] - labels[:, 0]
        changed = (labels != ABSENT).all(axis=(0, 1)) & (change != 0).all(axis=0)
        _, rows = np.unique(first.groups[changed], return_index=True)
        opposite = np.not_equal(*change[:, changed][:, rows])
        n, n_opposite = len(opposite), int(opposite.sum())
        if binomial_cdf(n - n_opposite, n, 0.5) < SURE:
            earlier, later = (first.checkpoints[k] for k in ends)
            raise PredictionsError(
                f"The second ask seems to have {earlier} and {later} in the reverse order: of "
                f"{n:,} questions that change in both asks, {n_opposite:,} change in opposite "
                "directions; give the files of the second ask in the order of the first one."
            )


def doubts(answers: AnswerArrays, sets: Sequence[ContrastSet]) -> Iterator[str]:
    """Yield a sentence for each doubt: order, copies, scale, grades, unrelated pairs.

    A scale seems turned if the confidence is surely lower in right answers. Two checkpoints
    seem to have other questions under equal ids if an estimator separates right from wrong
    answers at both, but labels and confidences of one tell nothing about the other.
    """
    names = answers.checkpoints
    by_number = sorted(names, key=natural_key)
    if [*names] == sorted(names) != by_number:
        yield (
            f"the checkpoints are in alphabetical order ({', '.join(names)}); if they are "
            f"versions, give them in the order of time (perhaps {', '.join(by_number)})."
        )
    if answers.confidence and (n_copies := _count_copies(answers)):
        yield (
            f"{n_copies:,} of {len(answers.questions):,} questions have the confidences and "
            "labels of another one at every checkpoint, as if each were there under several "
            "ids; keep one of them, or give them one `group`."
        )
    for (_, estimator), runs in answers.estimators.items():
        if any(np.array_equal(*of, equal_nan=True) for of in combinations(runs, 2)):
            yield (
                f"two seeds of {estimator} have equal confidences in all answers, as of one "
                "training that is there twice; keep one, or claims count a seed too many."
            )
    stated = {member: np.mean(runs, axis=0) for member, runs in answers.estimators.items()}
    areas = {member: _areas(mean, answers) for member, mean in stated.items()}
    for (_, estimator), ends in areas.items():
        turned = {names[k]: upper for k, (*_, upper) in ends.items() if upper < TURNED}
        if turned:
            yield (
                f"{estimator} is lower in right answers than in wrong ones at "
                f"{', '.join(turned)} (AUC at most {max(turned.values()):.2f}); if it is an "
                "uncertainty there, write 1 minus it, and check that 1 labels right answers."
            )
        n_answers = int((answers.correct[list(ends)] != ABSENT).sum())
        if n_answers >= LEAST_GRADES and min(area for _, area, _ in ends.values()) > GRADE:
            yield (
                f"{estimator} is higher in almost every right answer than in every wrong one: "
                "it looks like a grade of the answers, which is no confidence."
            )
    unrelated = []
    for pair in sets:
        ends_of_pair = [pair.earlier, pair.later]
        informed = [
            stated[member][ends_of_pair][:, pair.every]
            for member, ends in areas.items()
            if min(ends[k][0] if k in ends else 0.0 for k in ends_of_pair) > INFORMED
        ]
        sizes = [abs(float(np.corrcoef(both)[0, 1])) for both in informed if both.size]
        reach = Z / np.sqrt(max(1, len(pair.every)))
        if sizes and max(sizes) + reach < UNRELATED and not _are_alike(pair):
            unrelated.append(" and ".join(names[k] for k in ends_of_pair))
    if unrelated:
        others = f" (and {len(unrelated) - 1} further pairs)" if unrelated[1:] else ""
        yield (
            f"the answers of {unrelated[0]}{others} have nothing in common, neither labels nor "
            "confidences, as if equal ids named different questions; look up the questions of "
            "some ids, and number them in one way."
        )


def _count_copies(answers: AnswerArrays) -> int:
    """Return how many questions are surely copies of another one, 0 if none are.

    Questions with equal confidences everywhere have different labels as often as any two have,
    or somewhat less often. Copies have equal labels. A confidence of many questions, such as 1,
    and a group say nothing.
    """
    stated = pd.DataFrame(np.concatenate([*answers.confidence.values()]).T)
    rows = np.flatnonzero(stated.duplicated(keep=False))
    equal = stated.loc[rows].groupby([*stated], sort=False, dropna=False)
    most = max(2, SHARED * len(stated))
    place = equal.ngroup()[equal[0].transform("size") <= most]
    labels = answers.correct[:, place.index]
    _, kind = np.unique(labels, axis=1, return_inverse=True)
    groups = answers.groups[place.index]
    one = pd.DataFrame({"place": place, "kind": kind, "group": groups})
    one = one.drop_duplicates(["place", "group"])
    by_place = one.groupby("place")["kind"]
    n_different = int((by_place.transform("first") != one["kind"]).sum())
    n_pairs = len(one) - by_place.ngroups
    different = 1 - float((one["kind"].value_counts(normalize=True) ** 2).sum())
    if n_different > DIFFERENT * different * n_pairs:
        return 0
    return n_pairs if binomial_cdf(n_different, n_pairs, different) < SURE else 0


def _areas(confidence: Array, answers: AnswerArrays) -> dict[int, tuple[float, float, float]]:
    """Return lower end, value and upper end of the AUC at each checkpoint that has one."""
    areas = {}
    for k, labels in enumerate(answers.correct):
        rows = np.flatnonzero(labels != ABSENT)
        rows = rows[:: max(1, len(rows) // MOST)]
        right, wrong = rows[labels[rows] == 1], rows[labels[rows] == 0]
        n_right, n_wrong = (len(np.unique(answers.groups[of])) for of in (right, wrong))
        if min(n_right, n_wrong) > 1:  # a single group is no evidence
            stated = confidence[k, right], confidence[k, wrong]
            parts = area_influence(*stated, n_groups=(n_right, n_wrong))
            questions = np.concatenate([part.questions for part in parts])
            pseudo = np.concatenate([part.pseudo for part in parts])
            area = parts[0]._replace(questions=questions, pseudo=pseudo)
            lower = area.lower(answers.groups[np.concatenate([right, wrong])], LEVEL)
            areas[k] = lower, area.value, 2 * area.centre - lower
    return areas


def _are_alike(pair: ContrastSet) -> bool:
    """Return whether right answers of one checkpoint are surely more often right at the other.

    The interval is of the odds ratio of the labels.
    """
    gained, lost, wrong, right = counts = [max(1, len(rows)) for rows in pair.kinds]
    error = float(np.sqrt(np.sum(1 / np.array(counts))))
    return bool(np.log(right * wrong / gained / lost) > Z * error)
