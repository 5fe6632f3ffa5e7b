"""Metrics on subsets of questions: by margin, training overlap, category and answer."""

import numpy as np
import pandas as pd
import pytest
from measure_subsets import measure_subsets
from measuring import contrast_members, evaluate
from synthetic_predictions import CHECKPOINTS, make_predictions, table

from persistcal.evaluation.aligned import align
from persistcal.evaluation.predictions import PredictionsError
from persistcal.evaluation.settings import EvaluationSettings
from persistcal.evaluation.subsets import margins, metrics_of_subsets, thirds
from persistcal.report.analysis_tables import by_part
from persistcal.store import artifacts

ESTIMATORS = ["coarse", "learnt"]


def test_a_margin_is_the_difference_of_the_two_most_probable_answers():
    rows = [("q1", 0, 0.5), ("q1", 1, 0.3), ("q1", 2, 0.2), ("q2", 0, 0.9)]
    clusters = pd.DataFrame(rows, columns=["question_id", "cluster", "probability"])
    # q1: 0.5 - 0.3. q2 has a single candidate: 0.9 - 0.
    assert margins(clusters).to_dict() == {"q1": pytest.approx(0.2), "q2": 0.9}
    assert margins(clusters[clusters["cluster"] == 0]).to_dict() == {"q1": 0.5, "q2": 0.9}


def test_thirds_are_cut_at_quantiles_and_keep_equal_values_together():
    # Quantiles of 0.1, 0.2, … 0.7: 0.3 at one third, 0.5 at two thirds
    levels, labels = thirds(np.array([[0.1, 0.2, 0.3], [0.4, 0.5, np.nan], [0.6, 0.7, np.nan]]))
    assert levels[0].tolist() == [0, 0, 0]
    assert levels[1, :2].tolist() == [1, 1] and levels[2, :2].tolist() == [2, 2]
    assert labels == {0: "low: up to 0.300", 1: "middle: up to 0.500", 2: "high"}
    constant, _ = thirds(np.full((2, 5), 0.4))
    assert (constant == 0).all()


def means_over_seeds(predictions, checkpoints):
    table = evaluate(
        predictions, checkpoints, EvaluationSettings(min_contrast=1, conditionings=["odds"])
    )
    return table[table["seed"] == "mean"].set_index(["scope", "estimator", "metric"])["value"]


def test_metrics_of_a_subset_equal_an_evaluation_of_its_rows():
    """Each pair of checkpoints is evaluated separately, on the remaining rows."""
    predictions = make_predictions(150, absent=[4, 11])
    predictions = predictions[predictions["estimator"].isin(ESTIMATORS)]
    rng = np.random.default_rng(2)
    ids = predictions["question_id"].unique()
    margin = {c: pd.Series(rng.random(len(ids)).round(2), ids) for c in CHECKPOINTS}
    shared = set(ids[::3])
    group_names = {q: "in training" if q in shared else "not in training" for q in ids}
    settings = EvaluationSettings(min_contrast=30, pairs="adjacent")
    groups = {"margin": margin, "by_question": {"reference answer": group_names}}
    table = metrics_of_subsets(align(predictions, CHECKPOINTS, settings), **groups)
    assert list(table["by"].unique()) == ["all", "margin", "reference answer"]
    answered = predictions[predictions["estimator"] == "coarse"]
    margins_seen = [margin[row.checkpoint][row.question_id] for row in answered.itertuples()]
    low, high = np.quantile(margins_seen, [1 / 3, 2 / 3])

    def level(kind, checkpoint, question):
        if kind == "margin":
            value = margin[checkpoint][question]
            return 0 if value <= low else 1 if value <= high else 2
        return int(kind == "reference answer" and question not in shared)

    for (kind, group), rows in table.groupby(["by", "group"], sort=False):
        number = list(table.loc[table["by"] == kind, "group"].unique()).index(group)
        levels = [
            level(kind, c, q) for c, q in predictions[["checkpoint", "question_id"]].to_numpy()
        ]
        subset = predictions[np.array(levels) == number]
        full = means_over_seeds(subset, CHECKPOINTS)["full"]
        run = subset[subset["estimator"] == "coarse"]
        assert (rows["n_answers"] == len(run)).all()
        assert np.allclose(rows["accuracy"], run["correct"].mean(), atol=1e-12)
        contrast, n_contrast, n_questions = [], 0, 0
        for pair in [("a", "b"), ("b", "c")]:
            pair_rows = answered[answered["checkpoint"].isin(pair)]
            labels = pair_rows.pivot(
                index="question_id", columns="checkpoint", values="correct"
            )
            labels = labels.dropna()
            flipped = labels[labels[pair[0]] != labels[pair[1]]].index
            if len(flipped) < 30:
                continue
            questions = [
                q for q in labels.index if min(level(kind, c, q) for c in pair) == number
            ]
            flips = flipped.intersection(questions)
            n_questions += len(questions)
            n_contrast += len(flips)
            pair_rows = predictions[predictions["checkpoint"].isin(pair)]
            pair_rows = pair_rows[pair_rows["question_id"].isin(flips)]
            contrast.append(means_over_seeds(pair_rows, pair)["contrast"])
        assert (rows["n_contrast"] == n_contrast).all()
        assert np.allclose(rows["flips"], n_contrast / n_questions)
        expected = {"full": full, "contrast": pd.concat(contrast, axis=1).mean(axis=1)}
        for row in rows.itertuples():
            expected_value = expected[row.scope][row.estimator, row.metric]
            assert row.value == pytest.approx(expected_value, abs=1e-9)


QUESTIONS = pd.DataFrame(
    [
        ("t1", "train", ["Paris", "Lutetia"], False),
        ("t2", "train", ["Rome"], True),  # excluded
        ("q1", "test", ["The Paris!"], False),
        ("q2", "test", ["Rome"], False),
        ("q3", "test", ["Oslo", "Lutetia"], False),
    ],
    columns=["question_id", "split", "references", "excluded"],
).assign(dataset="quiz")


def measure_example(questions=QUESTIONS, clusters=None, texts=None, min_contrast=1, **changes):
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
    arguments = {"checkpoints": ["a", "b"], "settings": settings, **changes}
    sets = contrast_members(frame, ["a", "b"], settings)
    return measure_subsets(frame, sets, clusters, questions, dataset="quiz", **arguments)


def print_table(rows, **settings):
    labels = {"models": {}, "datasets": {}, "estimators": {}}
    rows = rows.assign(model="m", dataset="quiz")
    return by_part(rows, only=[], labels=labels, caption="C", label="l", **settings).tex


@pytest.mark.parametrize(
    ("attribute", "first", "second"),
    [
        # Train references are Paris and Lutetia, which q1 and q3 share. Rome is excluded.
        ("reference answer", "in training", "not in training"),
        ("category", "edited", "(none)"),
    ],
)
def test_metrics_by_training_overlap_or_category_equal_values_by_hand(attribute, first, second):
    categories = {"q1": "edited", "q2": "", "q3": "edited"}
    questions = QUESTIONS.assign(
        category=QUESTIONS["question_id"].map(categories).fillna("other")
    )
    table = measure_example(questions, by_category=True)
    rows = table.drop_duplicates(["by", "group"]).set_index(["by", "group"])
    assert list(rows.loc[attribute].index) == sorted([first, second])

    counts = ["n_answers", "accuracy", "n_contrast", "flips"]
    # q1 and q3 at two checkpoints: 3 of 4 answers are correct, and only q1 flips.
    assert rows.loc[(attribute, first), counts].tolist() == [4, 0.75, 1, 0.5]
    assert rows.loc[(attribute, second), counts].tolist() == [2, 0.5, 1, 1]

    value = table.set_index(["by", "group", "scope", "metric"])["value"]
    # Confidence rises for the gained q1 and falls for the lost q2.
    assert value[attribute, first, "contrast", "delta0"] == 1
    assert np.isnan(value[attribute, first, "contrast", "delta0_balanced"])
    assert value["all", "all", "contrast", "delta0_balanced"] == 1
    # Right answers .6 .5 .4, wrong answer .2: all three pairs are in order.
    assert value[attribute, first, "full", "auc"] == 1
    # Every margin is 0.5, so all are in the lowest third.
    assert rows.loc["margin"].index.tolist() == ["low: up to 0.500"]

    settings = {"by": {"group": "Group"}, "columns": [("full", "auc")]}
    tex = print_table(table[table["by"] == attribute], **settings)
    assert rf"{first} & oracle & 1.000 \\" in tex
    assert "category" not in set(measure_example(questions)["by"])


def test_without_training_questions_there_is_no_subset_of_training_overlap():
    untrained = measure_example(QUESTIONS[QUESTIONS["split"] == "test"])
    assert set(untrained["by"]) == {"all", "margin", "answer length", "answer popularity"}


def test_subsets_by_the_move_of_an_answer_baseline_equal_values_by_hand():
    # Paris is a reference of one train question, so its rarity is 1/2. Other answers have 1.
    # Rarity rises for the gained q1 and stays for the lost q2.
    table = measure_example(texts=["Paris", "Bern", "Bern", "Oslo", "Ulm", "Ulm"])
    rows = table[table["by"] == "answer rarity"].drop_duplicates("group").set_index("group")
    counts = rows[["n_contrast", "improvement", "regression"]]
    by_move = {move: counts.loc[move].tolist() for move in counts.index}
    assert by_move == {"falls": [0, 0, 0], "stays": [1, 0, 1], "rises": [1, 1, 0]}
    values = table.set_index(["by", "group", "scope", "metric"])["value"]["answer rarity"]
    assert values["rises", "contrast", "delta0"] == values["stays", "contrast", "delta0"] == 1
    assert np.isnan(values["rises", "contrast", "delta0_balanced"])
    assert np.isnan(values["falls", "contrast", "auc"])
    assert set(values.index.get_level_values("scope")) == {"contrast"}
    # Each checkpoint gives each answer once, so popularity stays.
    popular = table[table["by"] == "answer popularity"].drop_duplicates("group")
    n_contrast = popular.set_index("group")["n_contrast"].to_dict()
    assert n_contrast == {"falls": 0, "stays": 2, "rises": 0}


def test_subsets_without_a_kept_pair_are_printed_without_flips():
    rows = measure_example(min_contrast=9)
    assert rows["flips"].isna().all()
    assert rows.query("scope == 'contrast'")["value"].isna().all()
    headings = {"by": "By", "group": "Group", "flips": "Flips"}
    tex = print_table(rows, by=headings, columns=[("contrast", "auc"), ("full", "auc")])
    # Right answers .6 .9 .5 .4, wrong answers .2 .1: all eight pairs are in order.
    assert r"all & all & -- & oracle & -- & 1.000 \\" in tex


def test_flips_between_equivalent_answers_can_be_excluded():
    """Both checkpoints answer q2 with "Rome", so different labels contradict each other."""
    assert "answers" not in set(measure_example()["by"])
    texts = ["Lyon", "Paris", "Rome", "ROME.", "Oslo", "Oslo"]
    rows = (
        measure_example(texts=texts).set_index(["by", "group", "scope", "metric"]).sort_index()
    )
    counts = ["n_answers", "n_contrast"]
    assert rows.loc[("all", "all", "contrast", "auc"), counts].tolist() == [6, 2]
    group = "answers", "that differ"
    assert rows.loc[(*group, "contrast", "auc"), counts].tolist() == [6, 1]
    # q1 rises from .2 to .6 and is gained. q2 is left out.
    assert rows.loc[(*group, "contrast", "delta0"), "value"] == 1
    of_all, of_subset = (rows.loc[key, "value"] for key in (("all", "all"), group))
    assert of_subset["full"].equals(of_all["full"])


def test_answers_without_candidates_are_refused():
    lacking = pd.DataFrame({"checkpoint": ["a", "b"], "question_id": "q1"})
    with pytest.raises(PredictionsError, match="a answered question 'q2', but no candidate"):
        measure_example(clusters=lacking.assign(cluster=0, probability=1.0))


def test_subsets_without_predictions_are_an_empty_table(caplog):
    empty = artifacts.empty(artifacts.PREDICTIONS)
    settings = {"dataset": "quiz", "checkpoints": [], "settings": EvaluationSettings()}
    table = measure_subsets(empty, empty, empty, QUESTIONS, **settings)
    assert table.empty and "nothing to measure" in caplog.text
