"""Second asks that are partly copies, or of a part of the answers, with known truth."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from benchmarks.asked_again import (
    CHANGED,
    FOLLOWER,
    SAME,
    UNCHANGED,
    ask_a_part,
    ask_twice,
    claim,
    rows_of,
)
from benchmarks.knew_moved_knows import STATES
from persistcal.evaluation.aligned import align
from persistcal.evaluation.cross_asking import Repeats, compare_asks, reached_by_chance
from persistcal.evaluation.predictions import Ask, asks_that_repeat, count_flips
from persistcal.evaluation.settings import EvaluationSettings

SETTINGS = EvaluationSettings(min_contrast=1, n_replicates=200, seed=1, paper_marks=False)


def test_partly_copied_answers_only_move_with_the_labels():
    rng = np.random.default_rng(0)
    honest, copied = (claim(ask_twice(CHANGED, rng, n=600, copied=s)) for s in (0.0, 0.6))
    assert (honest["word"], honest["basis"]) == ("followed", "cross")
    assert (copied["word"], copied["basis"]) == ("moved with the labels", "copies")
    assert copied["alike"] == pytest.approx(0.6, abs=0.05) and copied["alike_between"] < 0.01
    assert honest["alike"] < 0.01 and honest["repeated"] == 1200


@pytest.mark.parametrize("world", [UNCHANGED, CHANGED])
@pytest.mark.parametrize(
    ("noise", "digits"),
    [(0.5, 9), (0.0, 9), (0.5, 1)],
    ids=["noise", "a number per answer", "few values"],
)
def test_honest_second_asks_are_not_taken_for_copies(world, noise, digits):
    def repeats(number):
        rows = ask_twice(world, np.random.default_rng(number), n=300, noise=noise)
        rows["confidence"] = rows["confidence"].round(digits)
        return compare_asks(align(rows, STATES, SETTINGS).crossed, ("d", "e"))

    assert sum(repeats(number).is_copied for number in range(10)) <= 1


def test_copies_within_a_third_ask_are_found():
    rng = np.random.default_rng(3)
    rows = ask_twice(CHANGED, rng, n=300)
    third = rows[rows["ask"] == 0].assign(ask=2)
    half = rng.random(len(third)) < 0.5
    third.loc[half, "confidence"] = rng.random(half.sum())
    two = align(pd.concat([rows, third], ignore_index=True), STATES, SETTINGS).crossed
    assert compare_asks(two, ("d", "e")).is_copied
    assert not compare_asks(two._replace(further=()), ("d", "e")).is_copied


def test_asks_of_a_part_or_without_a_difference_are_counted_and_not_crossed():
    rng = np.random.default_rng(1)
    first = rows_of(rng.integers(0, 2, (2, 40)), rng.random((2, 40)))
    part = first.iloc[:10].assign(ask=1, correct=1 - first["correct"].iloc[:10])
    rows = pd.concat([first, part, first[::-1].assign(ask=2)], ignore_index=True)
    assert asks_that_repeat(rows) == [1, 2]
    assert count_flips(rows, [1]) == (10, 10) and count_flips(rows, [1, 2]) == (90, 10)
    data = align(rows, STATES, SETTINGS)
    assert data.crossed is None and data.flips == (90, 10)
    assert asks_that_repeat(rows.assign(ask=Ask.EXAMPLES)) == []


def test_flips_alone_reach_what_the_bound_of_their_rate_allows():
    """No answer of 100 flips: at most 2.95 %, of 200 questions 2.95 in each direction."""
    sizes = {"gained": 10, "lost": 20, "stayed_wrong": 80, "stayed_right": 90}
    pair = SimpleNamespace(**{name: range(n) for name, n in sizes.items()}, every=range(200))
    most = reached_by_chance([SimpleNamespace(pair=pair)], Repeats(100, 0))
    rate = 1 - 0.05 ** (1 / 100)
    gained, lost = 100 * rate / 10, 100 * rate / 20
    assert most["moved"] == pytest.approx(0.5 + (gained + lost) / 4)
    assert most["moved_gained"] == pytest.approx(0.5 + gained / 2)
    assert most["knows_changed"] == pytest.approx(1 - (1 - gained) * (1 - lost) / 2)


@pytest.mark.parametrize(("flips", "n_again"), [(0.0, 200), (0.05, 100), (0.3, 200)])
def test_a_version_that_flips_by_chance_has_not_followed_beside_a_second_ask(flips, n_again):
    def draw(world, number):
        rng = np.random.default_rng(number)
        rows = ask_a_part(world, rng, n=300, flips=flips, n_again=n_again)
        return claim(rows, determinism="declared")

    words = [draw(SAME, number)["word"] for number in range(10)]
    assert set(words) <= {"not shown", "too few changed questions"}
    claimed = draw(FOLLOWER, 0)
    assert (claimed["basis"], claimed["repeated"]) == ("control", n_again)
    assert claimed["by_chance"] > 0.5
    assert (claimed["word"] == "followed") == (flips < 0.3)
