"""Two halves of the samples of each question, as the workflow makes them."""

import numpy as np
import pandas as pd
import pytest
from halve_samples import halve_samples

from persistcal.answers.halves import halve_samples as split_in_halves
from persistcal.store import artifacts


@pytest.fixture
def samples():
    """Five samples of two questions in the columns of a file of answers."""
    rows = pd.DataFrame({"question_id": ["q1"] * 5 + ["q2"] * 5, "beam": [*range(5)] * 2})
    rows["text"] = [*"abcde", *"aabbb"]
    place = {"model": "m", "checkpoint": "c", "dataset": "quiz", "split": "test"}
    given = {name: None for name in artifacts.BEAMS.schema.names if name not in rows}
    return rows.assign(**place, **given)


def test_the_halves_of_five_samples_are_two_pairs_without_a_common_sample(samples):
    first, second = (halve_samples(samples, split=s, position=0) for s in ("half1", "half2"))
    assert "split" not in first  # the file has the half's
    for half in (first, second):
        assert half.groupby("question_id")["beam"].apply(list).tolist() == [[0, 1], [0, 1]]
    both = pd.concat([first, second])
    assert both.query("question_id == 'q1'")["text"].is_unique
    counts = both.query("question_id == 'q2'")["text"].value_counts()
    assert (counts <= pd.Series({"a": 2, "b": 3})[counts.index]).all()


def test_a_file_with_three_samples_of_a_question_has_no_halves(samples):
    assert halve_samples(samples.drop(index=[0, 1]), split="half1", position=0).empty


@pytest.fixture
def texts():
    """Ten samples of twenty questions at two checkpoints, with two to four answers each."""
    rng = np.random.default_rng(3)
    frames = [
        pd.DataFrame(
            {
                "checkpoint": checkpoint,
                "question_id": [f"q{number:02}" for number in np.repeat(np.arange(20), 10)],
                "beam": np.tile(np.arange(10), 20),
                "text": rng.choice(list("aaabcd"), 200),
            }
        )
        for checkpoint in ("v1", "v2")
    ]
    return pd.concat(frames, ignore_index=True)


def taken(samples, halves):
    """Return the texts of each half of each halving, in order."""
    rows = halves.merge(samples, on=["checkpoint", "question_id", "half"])
    by = ["checkpoint", "question_id", "halving", "side"]
    return rows.sort_values([*by, "beam"]).groupby(by)["text"].apply("".join)


def test_names_of_checkpoints_and_the_order_of_rows_change_no_half(texts):
    usual = taken(*split_in_halves(texts, {"v1": 0, "v2": 1}, n_halvings=3))
    renamed = texts.assign(checkpoint=texts["checkpoint"].map({"v1": "a", "v2": "late"}))
    shuffled = renamed.sample(frac=1, random_state=1)
    again = taken(*split_in_halves(shuffled, {"a": 0, "late": 1}, n_halvings=3))
    assert again.tolist() == usual.tolist()


def test_two_checkpoints_and_two_halvings_have_independent_permutations(texts):
    """Equal samples at both checkpoints are not divided in the same way."""
    equal = pd.concat([texts.query("checkpoint == 'v1'").assign(checkpoint=c) for c in "ab"])
    halves = taken(*split_in_halves(equal, {"a": 0, "b": 1}, n_halvings=2))
    by_checkpoint = halves.unstack("checkpoint")
    assert (by_checkpoint["a"] != by_checkpoint["b"]).mean() > 0.3
    by_halving = halves.unstack("halving")
    assert (by_halving[0] != by_halving[1]).mean() > 0.3


def test_the_first_halvings_do_not_depend_on_the_number_of_halvings(texts):
    positions = {"v1": 0, "v2": 1}
    few, many = (
        taken(*split_in_halves(texts, positions, n_halvings=number)) for number in (2, 20)
    )
    assert many[few.index].tolist() == few.tolist()


def test_halves_of_equal_content_are_rated_once_and_begin_with_a_most_frequent_answer(texts):
    samples, halves = split_in_halves(texts, {"v1": 0, "v2": 1}, n_halvings=20)
    distinct = samples.groupby(["checkpoint", "question_id", "half"])["text"].apply("".join)
    assert len(halves) == 2 * 20 * 40 and len(distinct) < len(halves) / 2
    assert all(half.count(half[0]) == max(map(half.count, half)) for half in distinct)
    assert (
        distinct.groupby(level=[0, 1]).nunique().eq(distinct.groupby(level=[0, 1]).size()).all()
    )
