"""The statistics of knowledge against a slow implementation, and their invariances."""

import numpy as np
import pytest

from benchmarks.knew_moved_knows import StateWorld, bootstrap_of, rated_sets, shares
from persistcal.evaluation.influence import change_of_ranks
from persistcal.evaluation.knowledge import (
    NEEDED,
    STATISTICS,
    STRATA,
    influence_of,
    placebo_shares,
    sample_knowledge,
)
from persistcal.evaluation.settings import EvaluationSettings

SETTINGS = EvaluationSettings(min_contrast=1, n_replicates=4000, seed=3)


@pytest.fixture
def study():
    """Return labels and confidences of two checkpoints, (2, 80), with ties."""
    rng = np.random.default_rng(5)
    return rng.integers(0, 2, (2, 80)), rng.integers(0, 6, (2, 80)) / 5


def measure(labels, confidences, groups=None, settings=SETTINGS):
    """Return the sample of each statistic, a mean over asks."""
    groups = np.arange(labels[0].shape[1]) if groups is None else groups
    by_statistic = sample_knowledge(
        rated_sets(labels, confidences), bootstrap_of(groups, settings)
    )
    return {name: next(iter(by_member.values())) for name, by_member in by_statistic.items()}


def values(labels, confidence):
    """Return the statistics of a single run."""
    settings = EvaluationSettings(min_contrast=1, n_replicates=2)
    samples = measure([labels], [confidence], settings=settings)
    return {name: sample.value for name, sample in samples.items()}


def slow_area(higher, lower):
    return np.mean([(x > y) + (x == y) / 2 for x in higher for y in lower])


def slow_change(earlier, later):
    """Return the differences of mid-ranks, 0 if each is in the range of the other's level."""
    changes = []
    for before, after in zip(earlier, later, strict=True):
        low, high = [], []
        for values, own in ((earlier, before), (later, after)):
            low.append(sum(x < own for x in values))
            high.append(sum(x <= own for x in values))
        middle = [(a + b) / 2 for a, b in zip(low, high, strict=True)]
        is_same = low[1] <= middle[0] <= high[1] and low[0] <= middle[1] <= high[0]
        changes.append(0 if is_same else middle[1] - middle[0])
    return changes


def test_the_statistics_equal_a_loop_over_pairs_of_questions(study):
    labels, (earlier, later) = study
    kind = [f"{before}{after}" for before, after in labels.T]
    change = slow_change(earlier, later)

    def area(confidence, higher, lower):
        area = [
            [c for c, k in zip(confidence, kind, strict=True) if k == e]
            for e in (higher, lower)
        ]
        return slow_area(*area)

    gained, lost, wrong, right = "01", "10", "00", "11"
    expected = {
        "knew": (area(earlier, right, gained) + area(earlier, lost, wrong)) / 2,
        "knew_changed": area(earlier, lost, gained),
        "moved": (area(change, gained, wrong) + area(change, right, lost)) / 2,
        "knows": (area(later, gained, wrong) + area(later, right, lost)) / 2,
        "knows_changed": area(later, gained, lost),
        "moved_gained": area(change, gained, wrong),
        "moved_lost": area(change, right, lost),
    }
    assert values(*study) == pytest.approx(expected)


def test_knows_is_knew_with_time_reversed(study):
    labels, confidence = study
    forwards, backwards = values(labels, confidence), values(labels[::-1], confidence[::-1])
    assert backwards["knew"] == pytest.approx(forwards["knows"])
    assert backwards["knew_changed"] == pytest.approx(forwards["knows_changed"])


def test_no_shift_or_scale_of_a_version_changes_a_statistic(study):
    labels, (earlier, later) = study
    rescaled = np.array([earlier**3, 0.2 + later / 10])
    assert values(labels, rescaled) == pytest.approx(values(labels, np.array([earlier, later])))


def test_influences_are_derivatives_of_the_statistics(study):
    """Repeating a question changes a statistic by its influence, but for terms of second order.

    Mid-ranks are fixed, so statistics of the change are left out.
    """
    labels, confidence = study
    [rated] = rated_sets([labels], [confidence])
    sizes = {name: len(getattr(rated.pair, name)) for name in STRATA}
    tiled = [np.tile(part, 40) for part in study]
    extra = [np.concatenate([part, part[:, :80][:, [7] * 4]], axis=1) for part in tiled]
    for name in ("knew", "knew_changed", "knows", "knows_changed"):
        change = values(*extra)[name] - values(*tiled)[name]
        ends = confidence[:, rated.pair.every]
        influence = influence_of(name, rated, sizes, np.arange(80), *ends)
        predicted = 4 / 40 * influence.questions[7]
        assert change == pytest.approx(predicted, abs=0.1 * abs(predicted) + 2e-4)


def test_copies_of_questions_in_a_group_leave_the_intervals_unchanged(study):
    labels, confidence = (np.repeat(part, 4, axis=1) for part in study)
    single = measure(*([part] for part in study))
    grouped = measure([labels], [confidence], np.repeat(np.arange(80), 4))
    for name in NEEDED:
        ends = [samples[name].interval() for samples in (single, grouped)]
        assert ends[0] == pytest.approx(ends[1], abs=0.02)


def test_a_stratum_with_a_single_group_has_no_statistics(study):
    labels, confidence = study
    one_lost = np.where((labels[0] == 1) & (labels[1] == 0) & (np.arange(80) > 3), 1, labels)
    moved = measure([one_lost], [confidence])["moved"]
    assert np.isnan(moved.value) and np.isnan(moved.draws).all()


def test_two_asks_are_averaged_before_they_are_replicated(study):
    labels, confidence = study
    averaged = measure([labels] * 2, [confidence, confidence[::-1]])
    single = [values(labels, part) for part in (confidence, confidence[::-1])]
    for name in STATISTICS:
        mean = (single[0][name] + single[1][name]) / 2
        assert averaged[name].value == pytest.approx(mean)


@pytest.mark.parametrize(
    ("world", "kept"),
    [
        (StateWorld("constant", later="constant"), False),
        (StateWorld("shuffled", later="shuffled"), False),
        (StateWorld("difficulty", earlier="difficulty", later="difficulty"), False),
        (StateWorld("wider", earlier="difficulty", later="difficulty", scale=(1, 2.5)), False),
        (StateWorld("copy", later="copy", noise=(1.0, 0.3)), False),
        (StateWorld("own state, then difficulty", later="difficulty"), False),
        (StateWorld("earlier random", earlier="random"), False),
        (StateWorld("follower", weight=2.0, shift=-3.0), True),
    ],
    ids=lambda value: value.name if isinstance(value, StateWorld) else "",
)
def test_only_a_confidence_that_knows_both_states_is_said_to_have_followed(world, kept):
    claimed = shares(world, 300, studies=25, replicates=200)
    assert claimed["followed"] >= 0.9 if kept else claimed["followed"] <= 0.08
    if world.name == "constant":
        assert claimed["before"] >= 0.9  # by the intervals of change AUC and Δ₀ᵇ


def test_placebos_of_a_follower_do_not_earn_its_word():
    rng = np.random.default_rng(0)
    state = rng.integers(0, 2, (2, 400))
    confidence = 0.3 * rng.random((2, 400)) + 0.6 * state
    answers = bootstrap_of(np.arange(400), SETTINGS).answers
    sets = rated_sets([state], [confidence])
    [earned] = placebo_shares(sets, answers, SETTINGS, 0.05).values()
    assert earned["mean rank"] == earned["same scale"] == 0
    assert earned["later shuffled"] <= 0.15 and earned["earlier shuffled"] <= 0.15


def test_ties_of_both_checkpoints_are_no_move_if_the_sizes_of_levels_differ_by_chance():
    """Half of all confidences are 1 at both checkpoints, 50 and then 49 of 100."""
    earlier = np.array([1.0] * 50 + list(np.linspace(0, 0.9, 50)))
    later = np.array([1.0] * 49 + [0.95] + list(np.linspace(0, 0.9, 50)))
    change = change_of_ranks(earlier, later)
    assert np.flatnonzero(change).tolist() == [49] and change[49] < 0
