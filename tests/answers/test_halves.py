"""Two halves of the samples of each question, as the workflow makes them."""

import pandas as pd
import pytest
from halve_samples import halve_samples

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
    first, second = (halve_samples(samples, split=half) for half in ("half1", "half2"))
    assert "split" not in first  # the file has the half's
    for half in (first, second):
        assert half.groupby("question_id")["beam"].apply(list).tolist() == [[0, 1], [0, 1]]
    both = pd.concat([first, second])
    assert both.query("question_id == 'q1'")["text"].is_unique
    counts = both.query("question_id == 'q2'")["text"].value_counts()
    assert (counts <= pd.Series({"a": 2, "b": 3})[counts.index]).all()


def test_a_file_with_three_samples_of_a_question_has_no_halves(samples):
    assert halve_samples(samples.drop(index=[0, 1]), split="half1").empty
