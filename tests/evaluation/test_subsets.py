"""Metrics on parts of the questions: by margin, and by what training shares."""

import numpy as np
import pandas as pd
import pytest
from measure_subsets import measure_subsets
from synthetic_predictions import CHECKPOINTS, make_predictions, table

from persistcal.evaluation.evaluate import evaluate
from persistcal.evaluation.predictions import PredictionsError
from persistcal.evaluation.settings import EvaluationSettings
from persistcal.evaluation.subsets import margins, metrics_of_subsets, thirds
from persistcal.report.analysis_tables import by_part
from persistcal.store import artifacts

ESTIMATORS = ["coarse", "learnt"]


def test_margins_by_hand():
    rows = [("q1", 0, 0.5), ("q1", 1, 0.3), ("q1", 2, 0.2), ("q2", 0, 0.9)]
    clusters = pd.DataFrame(rows, columns=["question_id", "cluster", "probability"])
    # 0.5 - 0.3; a single candidate has nothing beside it
    assert margins(clusters).to_dict() == {"q1": pytest.approx(0.2), "q2": 0.9}
    assert margins(clusters[clusters["cluster"] == 0]).to_dict() == {"q1": 0.5, "q2": 0.9}


def test_thirds_by_hand():
    # 0.1 to 0.7: a third of the way is 0.3, two thirds is 0.5; equal ones stay together
    levels, called = thirds(np.array([[0.1, 0.2, 0.3], [0.4, 0.5, np.nan], [0.6, 0.7, np.nan]]))
    assert levels[0].tolist() == [0, 0, 0]
    assert levels[1, :2].tolist() == [1, 1] and levels[2, :2].tolist() == [2, 2]
    assert called == {0: "low: up to 0.300", 1: "middle: up to 0.500", 2: "high"}
    same, _ = thirds(np.full((2, 5), 0.4))
    assert (same == 0).all()


def means_of(predictions, checkpoints):
    made = evaluate(
        predictions, checkpoints, EvaluationSettings(min_contrast=1, conditionings=["odds"])
    )
    return made[made["seed"] == "mean"].set_index(["scope", "estimator", "metric"])["value"]


def test_each_subset_is_evaluated_as_if_it_were_all_there_is():
    """Slowly: rows are left out, and each pair of checkpoints is a study of its own."""
    predictions = make_predictions(150, absent=[4, 11])
    predictions = predictions[predictions["estimator"].isin(ESTIMATORS)]
    rng = np.random.default_rng(2)
    ids = predictions["question_id"].unique()
    margin = {c: pd.Series(rng.random(len(ids)).round(2), ids) for c in CHECKPOINTS}
    shared = set(ids[::3])
    named = {q: "in training" if q in shared else "not in training" for q in ids}
    settings = EvaluationSettings(min_contrast=30, pairs="adjacent")
    groups = {"margin": margin, "by_question": {"reference answer": named}}
    found = metrics_of_subsets(predictions, CHECKPOINTS, settings, **groups)
    assert list(found["by"].unique()) == ["all", "margin", "reference answer"]
    answered = predictions[predictions["estimator"] == "coarse"]
    every = [margin[row.checkpoint][row.question_id] for row in answered.itertuples()]
    low, high = np.quantile(every, [1 / 3, 2 / 3])

    def level(by, checkpoint, question):
        if by == "margin":
            here = margin[checkpoint][question]
            return 0 if here <= low else 1 if here <= high else 2
        return int(by == "reference answer" and question not in shared)

    for (by, group), rows in found.groupby(["by", "group"], sort=False):
        called = list(found.loc[found["by"] == by, "group"].unique()).index(group)
        at = [level(by, c, q) for c, q in predictions[["checkpoint", "question_id"]].to_numpy()]
        mine = predictions[np.array(at) == called]
        full = means_of(mine, CHECKPOINTS)["full"]
        one = mine[mine["estimator"] == "coarse"]
        assert (rows["n_answers"] == len(one)).all()
        assert np.allclose(rows["accuracy"], one["correct"].mean(), atol=1e-12)
        contrast, n_contrast, n_both = [], 0, 0
        for pair in [("a", "b"), ("b", "c")]:
            both = answered[answered["checkpoint"].isin(pair)]
            right = both.pivot(index="question_id", columns="checkpoint", values="correct")
            right = right.dropna()
            flipped = right[right[pair[0]] != right[pair[1]]].index
            if len(flipped) < 30:
                continue
            ours = [q for q in right.index if min(level(by, c, q) for c in pair) == called]
            ours_flipped = flipped.intersection(ours)
            n_both, n_contrast = n_both + len(ours), n_contrast + len(ours_flipped)
            part = predictions[predictions["checkpoint"].isin(pair)]
            part = part[part["question_id"].isin(ours_flipped)]
            contrast.append(means_of(part, pair)["contrast"])
        assert (rows["n_contrast"] == n_contrast).all()
        assert np.allclose(rows["flips"], n_contrast / n_both)
        expected = {"full": full, "contrast": pd.concat(contrast, axis=1).mean(axis=1)}
        for row in rows.itertuples():
            of = expected[row.scope][row.estimator, row.metric]
            assert row.value == pytest.approx(of, abs=1e-9)


QUESTIONS = pd.DataFrame(
    [
        ("t1", "train", ["Paris", "Lutetia"], False),
        ("t2", "train", ["Rome"], True),  # was not asked
        ("q1", "test", ["The Paris!"], False),
        ("q2", "test", ["Rome"], False),
        ("q3", "test", ["Oslo", "Lutetia"], False),
    ],
    columns=["question_id", "split", "references", "excluded"],
).assign(dataset="quiz")


def of_script(questions=QUESTIONS, clusters=None, texts=None, min_contrast=1, **changes):
    rows = [
        ("a", "q1", 0.2, False), ("b", "q1", 0.6, True),
        ("a", "q2", 0.9, True), ("b", "q2", 0.1, False),
        ("a", "q3", 0.5, True), ("b", "q3", 0.4, True),
    ]  # fmt: skip
    frame = table(rows, estimator="oracle", seed=1)
    if clusters is None:
        clusters = frame[["checkpoint", "question_id"]].assign(cluster=0, probability=0.5)
    answer = texts or clusters["checkpoint"] + clusters["question_id"]  # all differ
    clusters = clusters.assign(members=[[]] * len(clusters), answer=answer)
    settings = EvaluationSettings(min_contrast=min_contrast)
    how = {"checkpoints": ["a", "b"], "settings": settings, **changes}
    return measure_subsets(frame, clusters, questions, dataset="quiz", **how)


def printed(rows, **how):
    labels = {"models": {}, "datasets": {}, "estimators": {}}
    rows = rows.assign(model="m", dataset="quiz")
    return by_part(rows, only=[], labels=labels, caption="C", label="l", **how).tex


@pytest.mark.parametrize(
    ("by", "first", "second"),
    [
        # Paris and Lutetia, the references of q1 and q3, were trained on; Rome would have been
        ("reference answer", "in training", "not in training"),
        ("category", "edited", "(none)"),
    ],
)
def test_groups_of_questions_by_hand(by, first, second):
    named = {"q1": "edited", "q2": "", "q3": "edited"}
    questions = QUESTIONS.assign(category=QUESTIONS["question_id"].map(named).fillna("other"))
    made = of_script(questions, by_category=True)
    rows = made.drop_duplicates(["by", "group"]).set_index(["by", "group"])
    assert list(rows.loc[by].index) == sorted([first, second])
    counts = ["n_answers", "accuracy", "n_contrast", "flips"]
    # q1 and q3 at two checkpoints: 3 of 4 are correct; of the two only q1 flips
    assert rows.loc[(by, first), counts].tolist() == [4, 0.75, 1, 0.5]
    assert rows.loc[(by, second), counts].tolist() == [2, 0.5, 1, 1]
    value = made.set_index(["by", "group", "scope", "metric"])["value"]
    # confidence rises with q1, which was gained, and falls with q2, which was lost
    assert value[by, first, "contrast", "delta0"] == 1
    assert np.isnan(value[by, first, "contrast", "delta0_balanced"])
    assert value["all", "all", "contrast", "delta0_balanced"] == 1
    # correct .6 .5 .4, incorrect .2: all three above
    assert value[by, first, "full", "auc"] == 1
    # every margin is 0.5, so all are of the lowest third
    assert rows.loc["margin"].index.tolist() == ["low: up to 0.500"]
    how = {"by": {"group": "Group"}, "columns": [("full", "auc")]}
    tex = printed(made[made["by"] == by], **how)
    assert rf"{first} & oracle & 1.000 \\" in tex
    assert "category" not in set(of_script(questions)["by"])


def test_without_training_questions_nothing_is_said_about_them():
    untrained = of_script(QUESTIONS[QUESTIONS["split"] == "test"])
    assert set(untrained["by"]) == {"all", "margin", "answer length", "answer popularity"}


def test_strata_of_an_answer_baseline_by_hand():
    # Paris is a reference of one training question, so that rarity is 1/2, and 1 of all others:
    # it rises with q1, which is gained, and stays with q2, which is lost
    made = of_script(texts=["Paris", "Bern", "Bern", "Oslo", "Ulm", "Ulm"])
    rows = made[made["by"] == "answer rarity"].drop_duplicates("group").set_index("group")
    counts = rows[["n_contrast", "improvement", "regression"]]
    by_move = {move: counts.loc[move].tolist() for move in counts.index}
    assert by_move == {"falls": [0, 0, 0], "stays": [1, 0, 1], "rises": [1, 1, 0]}
    of = made.set_index(["by", "group", "scope", "metric"])["value"]["answer rarity"]
    assert of["rises", "contrast", "delta0"] == of["stays", "contrast", "delta0"] == 1
    assert np.isnan(of["rises", "contrast", "delta0_balanced"])
    assert np.isnan(of["falls", "contrast", "auc"])
    assert set(of.index.get_level_values("scope")) == {"contrast"}
    # Bern is given once by each checkpoint, and so is each other answer
    popular = made[made["by"] == "answer popularity"].drop_duplicates("group")
    n_contrast = popular.set_index("group")["n_contrast"].to_dict()
    assert n_contrast == {"falls": 0, "stays": 2, "rises": 0}


def test_without_a_kept_pair_there_are_no_flips_and_it_is_printed():
    rows = of_script(min_contrast=9)
    assert rows["flips"].isna().all()
    assert rows.query("scope == 'contrast'")["value"].isna().all()
    by = {"by": "By", "group": "Group", "flips": "Flips"}
    tex = printed(rows, by=by, columns=[("contrast", "auc"), ("full", "auc")])
    # correct .6 .9 .5 .4 and incorrect .2 .1: all eight pairs in order
    assert r"all & all & -- & oracle & -- & 1.000 \\" in tex


def test_contrast_sets_without_answers_that_mean_the_same():
    """Both answer q2 by "Rome": that one was right is the judge's contradiction."""
    assert "answers" not in set(of_script()["by"])
    said = ["Lyon", "Paris", "Rome", "ROME.", "Oslo", "Oslo"]
    rows = of_script(texts=said).set_index(["by", "group", "scope", "metric"]).sort_index()
    counts = ["n_answers", "n_contrast"]
    assert rows.loc[("all", "all", "contrast", "auc"), counts].tolist() == [6, 2]
    group = "answers", "that differ"
    assert rows.loc[(*group, "contrast", "auc"), counts].tolist() == [6, 1]
    # q1 rises from .2 to .6 as it is learnt; q2, which fell as it was forgotten, is left out
    assert rows.loc[(*group, "contrast", "delta0"), "value"] == 1
    of_all, of_part = (rows.loc[key, "value"] for key in (("all", "all"), group))
    assert of_part["full"].equals(of_all["full"])


def test_answers_without_candidates_are_refused():
    lacking = pd.DataFrame({"checkpoint": ["a", "b"], "question_id": "q1"})
    with pytest.raises(PredictionsError, match="a answered question 'q2', but no candidate"):
        of_script(clusters=lacking.assign(cluster=0, probability=1.0))


def test_without_predictions_there_is_an_empty_table(caplog):
    none = artifacts.empty(artifacts.PREDICTIONS)
    how = {"dataset": "quiz", "checkpoints": [], "settings": EvaluationSettings()}
    made = measure_subsets(none, none, QUESTIONS, **how)
    assert made.empty and "nothing to measure" in caplog.text
