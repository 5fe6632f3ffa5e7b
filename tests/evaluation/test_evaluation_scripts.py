"""The scripts around evaluation: one estimator at a time, and where there is nothing."""

import logging

import pandas as pd
import pytest
from compare_estimators import compare_estimators
from compute_metrics import compute_metrics
from count_contrast_sets import count_contrast_sets
from resample_metrics import resample_metrics
from synthetic_predictions import CHECKPOINTS, make_predictions

from persistcal import artifacts
from persistcal.evaluation.replicates import UnpairedError, from_table
from persistcal.evaluation.significance import compare_blocks, replicate_metrics

PLACE = {"model": "m", "dataset": "quiz"}
HOW = {"min_contrast": 5, "n_replicates": 20, "seed": 3, "pairs": "all"}


def resample(predictions, folder, name, **changes):
    artifacts.write(predictions, folder / f"{name}.parquet", artifacts.PREDICTIONS)
    settings = {"checkpoints": CHECKPOINTS, "conditioning": ["odds"], **PLACE, **HOW, **changes}
    paths = [folder / f"{kind}_{name}.parquet" for kind in ("replicates", "intervals")]
    resample_metrics(folder / f"{name}.parquet", *paths, **settings)
    return paths[0]


def test_estimators_resampled_one_by_one_are_tested_as_if_together(tmp_path):
    predictions = make_predictions(90, absent=[4, 11])
    names = ["coarse", "learnt", "own"]
    paths = [resample(predictions[predictions["estimator"] == n], tmp_path, n) for n in names]
    block = [["quiz", name] for name in names]
    compare_estimators(
        paths,
        tmp_path / "significance.parquet",
        replicated=[("m", "quiz", name) for name in names],
        comparisons=[("m", "quiz", [block, [["quiz", "elsewhere"], ["quiz", "own"]]])],
    )
    tests = artifacts.read(tmp_path / "significance.parquet", artifacts.SIGNIFICANCE)
    together = replicate_metrics(predictions, CHECKPOINTS, conditionings=["odds"], **HOW)
    expected = compare_blocks(together, {"coarse+learnt+own": [tuple(row) for row in block]})
    assert len(expected) == 10 * 2  # metrics, and estimators that are not the best
    pd.testing.assert_frame_equal(tests[expected.columns], expected, check_dtype=False)


@pytest.mark.parametrize(
    "change", [{"seed": 4}, {"n_replicates": 21}, {"min_contrast": 6}, {"pairs": "first"}]
)
def test_what_was_not_drawn_alike_is_not_compared(tmp_path, change):
    predictions = make_predictions(90)
    one = predictions[predictions["estimator"] == "own"]
    paths = [resample(one, tmp_path, "own"), resample(one, tmp_path, "other", **change)]
    tables = pd.concat(artifacts.read(path, artifacts.REPLICATES) for path in paths)
    with pytest.raises(UnpairedError, match="run resample_metrics again"):
        from_table(tables)


def test_other_answers_are_not_compared(tmp_path):
    predictions = make_predictions(90)
    own = predictions[predictions["estimator"] == "own"]
    coarse = predictions[(predictions["estimator"] == "coarse")]
    coarse = coarse[coarse["question_id"] != "q0003"]
    paths = [resample(own, tmp_path, "own"), resample(coarse, tmp_path, "coarse")]
    with pytest.raises(UnpairedError, match=r"'own'.*'coarse'|'coarse'.*'own'"):
        compare_estimators(
            paths,
            tmp_path / "s.parquet",
            replicated=[("m", "quiz", "own"), ("m", "quiz", "coarse")],
            comparisons=[("m", "quiz", [[["quiz", "own"], ["quiz", "coarse"]]])],
        )


def test_contrast_sets_from_answers(tmp_path):
    answers = {"a": {"q1": True, "q2": False, "q3": True}, "b": {"q1": False, "q2": True}}
    for name, correct in answers.items():
        frame = pd.DataFrame({"question_id": list(correct), "correct": list(correct.values())})
        train = frame.iloc[:1].assign(question_id="t1", split="train")
        frame = pd.concat([frame.assign(split="test"), train])
        frame = frame.assign(answer="x", probability=0.5)[artifacts.ANSWERS.schema.names]
        artifacts.write(frame, tmp_path / f"{name}.parquet", artifacts.ANSWERS)
    count_contrast_sets(
        [tmp_path / "a.parquet", tmp_path / "b.parquet"],
        tmp_path / "sets.parquet",
        checkpoints=["a", "b"],
        min_contrast=3,
        pairs="all",
        **PLACE,
    )
    # q1 is lost and q2 gained; q3 was not answered at b
    sets = artifacts.read(tmp_path / "sets.parquet", artifacts.CONTRAST_SETS)
    assert sets.to_dict("records") == [
        {
            **PLACE,
            "earlier": "a",
            "later": "b",
            "size": 2,
            "improvement": 1,
            "regression": 1,
            "kept": False,
        }
    ]


def test_without_predictions_there_are_empty_tables_and_warnings(tmp_path, caplog):
    empty = artifacts.empty(artifacts.PREDICTIONS)
    with caplog.at_level(logging.WARNING):
        replicates = resample(empty, tmp_path, "none")
        compute_metrics(
            tmp_path / "none.parquet",
            tmp_path / "m.parquet",
            checkpoints=["a", "b"],
            min_contrast=1,
            pairs="all",
            **PLACE,
        )
        compare_estimators(
            [replicates],
            tmp_path / "s.parquet",
            replicated=[("m", "quiz", "none")],
            comparisons=[("m", "quiz", [[["quiz", "oracle"], ["quiz", "own"]]])],
        )
    for name, table in [
        ("m", artifacts.METRICS),
        ("s", artifacts.SIGNIFICANCE),
        ("intervals_none", artifacts.INTERVALS),
    ]:
        assert artifacts.read(tmp_path / f"{name}.parquet", table).empty
    assert len(caplog.records) == 3
