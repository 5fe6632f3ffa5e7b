"""Sentences on changed answers, whether confidence followed them, and later calibration.

An update is the pair of the first and the last checkpoint of a model on one dataset.
"""

from collections.abc import Mapping
from itertools import compress
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from persistcal.evaluation.evaluate import DECIMALS
from persistcal.evaluation.predictions import ABSENT
from persistcal.evaluation.proportions import compare_accuracies
from persistcal.evaluation.reliability import checkpoint_calibration
from persistcal.evaluation.replicates import Estimator, Replicates
from persistcal.report.change_views import LEVEL
from persistcal.report.page.contents import Part
from persistcal.report.page.sentences import Standings, explain_missing_interval
from persistcal.report.page.tables import short

MOST = 3  # estimators with sentences
KEY = ("odds", "contrast", "change_auc")


class Update(NamedTuple):
    """Two checkpoints by position and by display name."""

    earlier: int
    later: int
    earlier_name: str
    later_name: str


def choose_update(part: Part, labels: Mapping[str, str]) -> Update | None:
    """Return the first and the last checkpoint, or None if no pair is compared.

    If a study lists its pairs, return the first listed checkpoint and the last checkpoint in a
    pair with it. Pairs without changed questions are skipped if others are left.
    """
    if not part.pairs:
        return None
    names, earlier = part.answers.checkpoints, part.pairs[0].earlier
    later = len(names) - 1
    if not isinstance(part.subject.pairs, str):
        pairs = [pair for pair in part.pairs if pair.earlier == earlier]
        later = max(pair.later for pair in [p for p in pairs if len(p.questions)] or pairs)
    return Update(earlier, later, labels[names[earlier]], labels[names[later]])


def changed_positions(part: Part, update: Update) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the positions of the gained and of the lost questions."""
    earlier, later = part.answers.correct[[update.earlier, update.later]]
    gained, lost = (earlier == 0) & (later == 1), (earlier == 1) & (later == 0)
    return np.flatnonzero(gained), np.flatnonzero(lost)


def change_text(part: Part, update: Update, p_holm: float | None) -> str:
    """Return how many questions were gained and lost, and the accuracies.

    `p_holm` is McNemar's p-value, adjusted for all pairs of the model; without it the sentence
    rests on this pair's own p-value.
    """
    labels = part.answers.correct[[update.earlier, update.later]]
    labels = labels[:, (labels != ABSENT).all(axis=0)]
    if not labels.size:
        return f"{update.earlier_name} and {update.later_name} share no answered question."
    gained, lost = map(len, changed_positions(part, update))
    test = compare_accuracies(*labels)
    text = (
        f"From {update.earlier_name} to {update.later_name}, {gained + lost:,} of "
        f"{labels.shape[1]:,} answers changed between right and wrong: {gained:,} "
        f"question{'' if gained == 1 else 's'} gained, {lost:,} lost. "
    )
    values = f"from {short(test.earlier)} to {short(test.later)}"
    interval = f"[{short(test.lower)}, {short(test.upper)}]"
    p_value = test.p_value if p_holm is None else p_holm
    if p_value < LEVEL:
        way = "rises" if test.difference > 0 else "falls"
        return f"{text}Accuracy {way} {values}, by {short(abs(test.difference))} {interval}."
    adjusted = ", adjusted by Holm's method" if p_value > test.p_value else ""
    return (
        f"{text}Accuracy goes {values}; the difference of {short(test.difference)} {interval} "
        f"can be chance (McNemar's test, p = {short(p_value)}{adjusted})."
    )


def best_estimators(standings: Standings) -> list[str]:
    """Return the estimators that no other one is above in Δ₀ᵇ, the largest Δ₀ᵇ first."""
    best = compress(standings.value, standings.compared.in_best_set)
    is_balanced = standings.metric == "delta0_balanced"
    return sorted(best, key=lambda name: -standings.value[name]) if is_balanced else []


def follow_texts(
    standings: Standings,
    replicates: Replicates,
    part: Part,
    update: Update,
    chosen: Mapping[str, tuple[Estimator, str]],
) -> list[str]:
    """Return for each of the best estimators whether its confidence followed the changes.

    `chosen` contains each estimator and its label by name. An estimator followed if the
    interval of the change AUC is above .5. Bonferroni's method makes the intervals simultaneous
    for all estimators of `standings`, because the best ones are chosen from the same data.
    """
    names, n_compared = best_estimators(standings), len(standings.value)
    n_pairs = sum(pair.kept and pair.has_both_directions for pair in part.pairs)
    tail = LEVEL / 2 / n_compared
    texts = []
    for name in names[:MOST]:
        member, label = chosen[name]
        place = replicates.estimators.index(member)
        low, high = np.quantile(replicates.for_claims(KEY)[place], [tail, 1 - tail])
        value = f"change AUC {short(replicates.observed[KEY][place])}"
        if np.isnan(low):
            verdict = "has too little data to show whether it followed"
        else:
            value += f" [{short(low)}, {short(high)}]"
            verdict = "is not shown to have followed"
            if low > 0.5 or high < 0.5:
                verdict = "followed" if low > 0.5 else "moved against the changes"
        value += f" over {n_pairs} pairs of checkpoints" if n_pairs > 1 else ""
        counts = _count_moves(part.members[member], part, update)
        texts.append(f"{label} {verdict}: {counts} ({value}; .5 is chance).")
        if np.isnan(low):
            texts[-1] += f" {explain_missing_interval(standings).capitalize()}."
    if (more := len(names) - MOST) > 0:
        texts[-1] += f" {more} more cannot be distinguished from the best in Δ₀ᵇ."
    if n_compared > 1 and texts and not np.isnan(low):
        texts[-1] += (
            f" The intervals of the change AUC hold for {n_compared} estimators at once."
        )
    return texts


def _count_moves(seeds: list[NDArray[np.float64]], part: Part, update: Update) -> str:
    """Return in how many gains and losses the confidence moved the right way."""
    change = np.array([run[update.later] - run[update.earlier] for run in seeds])
    moved = np.sign(np.round(change, DECIMALS))
    gained, lost = changed_positions(part, update)
    right = (moved[:, gained] > 0).sum() / len(seeds), (moved[:, lost] < 0).sum() / len(seeds)
    equal = (moved[:, np.concatenate([gained, lost])] == 0).sum() / len(seeds)
    shares = f"{right[0]:,.0f} of {len(gained):,} gains and {right[1]:,.0f} of {len(lost):,}"
    return (
        f"from {update.earlier_name} to {update.later_name} its confidence moved the right way "
        f"in {shares} losses"
        + (f", and stayed equal in {equal:,.0f}" if equal else "")
        + (f" (means of {len(seeds)} seeds)" if len(seeds) > 1 else "")
    )


def calibration_texts(
    standings: Standings,
    part: Part,
    update: Update,
    chosen: Mapping[str, tuple[Estimator, str]],
    seed: int,
) -> list[str]:
    """Describe the best estimators that are not calibrated at the later checkpoint.

    Calibration is tested at a level of 5 %.
    """
    texts = []
    for member, label in (chosen[name] for name in best_estimators(standings)[:MOST]):
        earlier, later = (
            checkpoint_calibration(
                [run[k, correct != ABSENT] for run in part.members[member]],
                correct[correct != ABSENT] == 1,
                seed=seed,
            )
            for k, correct in ((k, part.answers.correct[k]) for k in update[:2])
        )
        if not later.p_calibrated < LEVEL:
            continue
        verdict = "not calibrated, with no shown bias on average,"
        if later.p_mean < LEVEL:
            verdict = (
                "over-confident" if later.confidence > later.accuracy else "under-confident"
            )
        texts.append(
            f"{label} is {verdict} at {update.later_name}: mean confidence "
            f"{short(later.confidence)}, accuracy {short(later.accuracy)} (SmoothECE "
            f"{short(later.value)}, noise floor {short(later.noise_floor)}; at "
            f"{update.earlier_name} {short(earlier.value)}, noise floor "
            f"{short(earlier.noise_floor)})."
        )
    return texts
