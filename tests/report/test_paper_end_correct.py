"""The end-correct rows of the paper's main table, from its counts of labels.

The end-correct baseline states i/(m−1) at the i-th of m checkpoints, so its
metrics depend on nothing but the answers' correctness. The paper prints how
many answers are correct at each checkpoint and how many questions each pair
gets right only early or only late. Any labels with these counts will do: they
are a solution in integers for the number of questions per pattern of
correctness over the checkpoints.
"""

from itertools import combinations, product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from measuring import evaluate
from scipy.optimize import Bounds, LinearConstraint, milp

from persistcal.evaluation.contrast import contrast_sets, describe_sets
from persistcal.evaluation.predictions import arrange
from persistcal.evaluation.settings import EvaluationSettings

PAPER = Path(__file__).parents[2] / "resources" / "paper"
N_QUESTIONS = {"triviaqa": 4960, "jeopardy": 4998}
MIN_CONTRAST = 500
MODELS = ["Olmo 3 7B", "Marin 8B", "Olmo 3 32B"]
TITLES = {"triviaqa": "TriviaQA", "jeopardy": "Jeopardy"}


def printed_counts(model, dataset):
    """Return checkpoints in order, printed accuracies, and {(i, j): (size, improvements)}."""
    sizes = pd.read_csv(PAPER / "contrast_set_sizes.csv")
    sizes = sizes[(sizes["dataset"] == dataset) & (sizes["model"] == model)]
    names = list(dict.fromkeys(sizes["row_checkpoint"]))
    table = pd.read_csv(PAPER / "checkpoints.csv")
    table = table[table["model"] == model]
    name = table["short_name"].fillna(table["revision"])
    accuracy = [float(table.loc[name == n, f"accuracy_{dataset}"].iloc[0]) / 100 for n in names]
    pairs = {}
    for i, j in combinations(range(len(names)), 2):
        row = sizes[
            (sizes["row_checkpoint"] == names[i]) & (sizes["column_checkpoint"] == names[j])
        ].iloc[0]
        pairs[i, j] = (int(row["size"]), int(row["row_wrong_column_right"]))
    return names, accuracy, pairs


def labels_with(accuracy, pairs, n):
    """Return a 0/1 matrix (n, checkpoints) with these counts by pair and rounded accuracies."""
    patterns = np.array(list(product([0, 1], repeat=len(accuracy))))
    rows, low, high = [np.ones(len(patterns))], [n], [n]
    for k, share in enumerate(accuracy):  # printed to 0.1 %
        rows.append(patterns[:, k])
        low.append(np.ceil(n * (share - 0.0005)))
        high.append(np.floor(n * (share + 0.0005)))
    for (i, j), (size, improvements) in pairs.items():
        rows += [patterns[:, j] > patterns[:, i], patterns[:, i] > patterns[:, j]]
        low += [improvements, size - improvements]
        high += [improvements, size - improvements]
    solution = milp(
        np.zeros(len(patterns)),
        constraints=LinearConstraint(np.array(rows, float), low, high),
        integrality=np.ones(len(patterns)),
        bounds=Bounds(0, n),
    )
    assert solution.success, solution.message
    return np.repeat(patterns, np.round(solution.x).astype(int), axis=0)


@pytest.mark.parametrize("dataset", N_QUESTIONS)
@pytest.mark.parametrize("model", MODELS)
def test_end_correct_metrics_equal_the_papers(model, dataset):
    names, accuracy, pairs = printed_counts(model, dataset)
    labels = labels_with(accuracy, pairs, N_QUESTIONS[dataset])
    n, m = labels.shape
    predictions = pd.DataFrame(
        {
            "checkpoint": np.repeat(names, n),
            "question_id": np.tile([f"q{i}" for i in range(n)], m),
            "train_dataset": dataset,
            "estimator": "end_correct",
            "seed": 0,
            "confidence": np.repeat(np.arange(m) / (m - 1), n),
            "correct": labels.T.ravel() == 1,
        }
    )
    evaluated = evaluate(predictions, names, EvaluationSettings(min_contrast=MIN_CONTRAST))
    correct = arrange(predictions, names).correct
    sets = describe_sets(
        contrast_sets(correct, names, EvaluationSettings(min_contrast=MIN_CONTRAST)), names
    )

    kept = [size >= MIN_CONTRAST for size, _ in pairs.values()]
    assert sets["kept"].tolist() == kept
    assert sets["size"].tolist() == [size for size, _ in pairs.values()]

    metrics = evaluated.query("seed == 'mean' and conditioning == 'odds'")
    measured = metrics.set_index(["scope", "metric"])["value"]
    printed = pd.read_csv(PAPER / "results.csv").query(
        "table == 'oracle-vs-methods-unabridged' and method == 'End-correct baseline' "
        "and model == @model and eval_dataset == @TITLES[@dataset]"
    )
    paper = printed.set_index(["scope", "metric"])["value"]
    assert len(paper) == 10
    assert set(measured.index) == {*paper.index, ("contrast", "change_auc")}
    # All changes of a pair are equal, so each gain ties with each loss.
    assert measured["contrast", "change_auc"] == pytest.approx(0.5, abs=1e-12)
    pd.testing.assert_series_equal(
        measured[paper.index], paper, check_exact=False, rtol=0, atol=0.001, check_names=False
    )
