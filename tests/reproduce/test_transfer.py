"""Transfer matrices, against a count over all pairs, and their figure."""

import numpy as np
import pandas as pd
import pytest
from measure_transfer import measure_transfer

from persistcal.store import artifacts
from reproduce.figures import transfer_figure
from reproduce.transfer import transfer_matrix

CHECKPOINTS = ["x", "y", "z"]
SETS = {
    "transfer": {"x": ["x"], "y": ["y"], "z": ["z"]},
    "transfer_random": {"x+y": ["x", "y"], "y+z": ["y", "z"]},
}
NAMES = {recipe: list(sets) for recipe, sets in SETS.items()}
LABELS = {
    "transfer_sets": {"m": SETS},
    "random_later": ["transfer_random"],
    "all_checkpoints": {"m": {"x": "10%", "y": "20%", "z": "100%"}},
    "models": {"m": "Model m"},
    "transfer_recipes": {"transfer": "One checkpoint", "transfer_random": "Later are random"},
}


def score_rows(checkpoint, values, recipe="transfer", trained_on="x", seed=17, **changes):
    ids = [f"q{i}" for i in range(len(values))]
    key = {"recipe": recipe, "trained_on": trained_on, "seed": seed}
    row = {"answers_of": checkpoint, "train_dataset": "quiz", **key, **changes}
    return pd.DataFrame({**row, "question_id": ids, "confidence": values})


def answers(correct):
    ids = [f"q{i}" for i in range(len(correct))]
    return pd.DataFrame({"question_id": ids, "correct": np.array(correct, bool)})


def test_transfer_is_the_mean_over_seeds_of_the_auc_on_a_checkpoints_own_answers():
    predicted = {"x": answers([1, 0, 1])}
    scores = [
        # Seed 17 ranks (q0, q1) and (q2, q1) right: 2/2. Seed 18: a tie and an error: 0.5/2.
        score_rows("x", [0.9, 0.1, 0.8]),
        score_rows("x", [0.5, 0.5, 0.4], seed=18),
        score_rows("y", [0.0, 0.9, 0.0]),  # answers of another checkpoint
        score_rows("x", [0.0, 0.9, 0.0], train_dataset="exam"),
    ]
    settings = {"sets": {"transfer": ["x"]}, "train_dataset": "quiz"}
    matrix = transfer_matrix(predicted, pd.concat(scores), **settings)
    assert matrix.to_dict("records") == [
        {"recipe": "transfer", "trained_on": "x", "checkpoint": "x", "auc": 0.625, "n": 3}
    ]


@pytest.mark.parametrize(
    ("n", "trained_on", "message"),
    [
        (3, "y", "No scores of adapter 'transfer' trained on 'y' at"),
        (2, "x", "1 answers of checkpoint 'x' have no score"),
    ],
)
def test_missing_scores_are_refused_with_their_adapter(n, trained_on, message):
    given = {"x": answers([1, 0, 1])}, score_rows("x", [0.1] * n)
    with pytest.raises(ValueError, match=message):
        transfer_matrix(*given, {"transfer": [trained_on]}, train_dataset="quiz")


def by_counting(confidence, correct):
    pairs = [(p, q) for p in confidence[correct] for q in confidence[~correct]]
    return sum((p > q) + (p == q) / 2 for p, q in pairs) / len(pairs)


def test_a_transfer_matrix_equals_a_count_over_all_pairs():
    rng = np.random.default_rng(0)
    n = 30
    expected, answered, scored = {}, [], []
    for checkpoint in CHECKPOINTS:
        correct = rng.random(n) < 0.5
        table = answers(correct).assign(split="test", answer="a", probability=0.5)
        table = table[table["question_id"] != "q3"]  # no answer, or excluded
        train = table.head(2).assign(question_id=["t1", "t2"], split="train")
        answered.append(pd.concat([table, train]).assign(checkpoint=checkpoint))
        for recipe, names in NAMES.items():
            for name in names:
                values = rng.random(n).round(1)
                scored.append(score_rows(checkpoint, values, recipe, name))
                asked = np.arange(n) != 3
                expected[recipe, name, checkpoint] = by_counting(values[asked], correct[asked])
    settings = {"dataset": "quiz", "checkpoints": CHECKPOINTS, "sets": NAMES}
    matrix = measure_transfer(pd.concat(answered), pd.concat(scored), **settings)
    assert set(matrix["n"]) == {n - 1}

    aucs = matrix.set_index(["recipe", "trained_on", "checkpoint"])["auc"].to_dict()
    assert aucs == pytest.approx(expected)


def test_the_transfer_figure_shows_each_auc_in_its_cell():
    rows = pd.DataFrame(
        [
            ("m", "quiz", recipe, name, checkpoint, 0.5 + 0.1 * i + 0.01 * j, 9)
            for recipe, names in NAMES.items()
            for i, name in enumerate(names)
            for j, checkpoint in enumerate(CHECKPOINTS)
        ],
        columns=artifacts.TRANSFER.schema.names,
    )
    rows.loc[0, "auc"] = np.nan
    single, random, _ = transfer_figure(rows, **LABELS).axes
    texts = {text.get_position(): text.get_text() for text in single.texts}
    assert texts[0, 0] == "–"
    assert texts[2, 1] == ".620"  # trained on y (second row), evaluated at z: 0.5 + 0.1 + 0.02
    assert [t.get_text() for t in single.get_xticklabels()] == ["10%", "20%", "100%"]
    assert [t.get_text() for t in random.get_yticklabels()] == ["10% + 20%", "20% + 100%"]
    frames = [(p.get_x(), p.get_y(), p.get_linestyle() == "solid") for p in random.patches]
    middle = [(round(x + 0.44), round(y + 0.44), solid) for x, y, solid in frames]
    assert middle == [(0, 0, True), (1, 0, False), (1, 1, True), (2, 1, False)]
    # The staircase separates transfer to earlier checkpoints from transfer to later ones.
    (line,) = single.lines
    assert line.get_xydata()[::2].tolist() == [[-0.5, -0.5], [0.5, 0.5], [1.5, 1.5]]

    # A study that is too small for any AUC still has a figure.
    single, *_ = transfer_figure(rows.assign(auc=np.nan), **LABELS).axes
    assert {text.get_text() for text in single.texts} == {"–"}
