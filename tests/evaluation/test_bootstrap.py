import numpy as np
import pytest
from resampling import SEED, resampled_metrics, walk
from scipy.stats import chi2
from sklearn.metrics import roc_auc_score
from synthetic_predictions import CHECKPOINTS, make_predictions

from persistcal.evaluation.arrange import arrange
from persistcal.evaluation.contrast import contrast_sets
from persistcal.evaluation.draws import component, draw_sequences, reach, take
from persistcal.evaluation.evaluate import evaluate
from persistcal.evaluation.metrics import auc
from persistcal.evaluation.prepared import metrics_under, once, prepare

N = 90


@pytest.fixture(scope="module")
def answers():
    return arrange(make_predictions(N, absent=[4, 11, 30]), CHECKPOINTS)


@pytest.fixture(scope="module")
def pairs(answers):
    return contrast_sets(answers.correct, min_contrast=5)


@pytest.fixture(scope="module")
def parts(answers, pairs):
    data = prepare(answers, pairs, [])
    return [*data.full, *data.contrast]


def draw(parts, n_questions, n_replicates, seed, far=None):
    """The counts of each part, as is or with sequences that end too early for some."""
    far = reach(parts, n_questions) if far is None else far
    sequences = draw_sequences(n_questions, range(n_replicates), seed=seed, reach=far)
    return [take(part, sequences) for part in parts]


@pytest.fixture(scope="module")
def counts(parts):
    return draw(parts, N, 400, SEED)


def test_draws_are_those_of_the_walk(parts, counts):
    assert len(parts) == 6
    for replicate in range(40):
        for part, drawn in zip(parts, counts, strict=True):
            taken = walk(part, N, SEED, replicate)
            expected = [taken.count(question) for question in part.questions]
            assert drawn[:, replicate].tolist() == expected


def test_quotas_are_met_and_replicates_do_not_depend_on_their_number(parts, counts):
    for part, drawn in zip(parts, counts, strict=True):
        assert (drawn[: part.n_first].sum(axis=0) == part.n_first).all()
        assert (drawn[part.n_first :].sum(axis=0) == len(part.questions) - part.n_first).all()
    for few, drawn in zip(draw(parts, N, 3, SEED), counts, strict=True):
        assert (few == drawn[:, :3]).all()


@pytest.mark.parametrize("far", [0, 3, 12])
def test_draws_do_not_depend_on_how_much_of_a_sequence_is_kept(parts, counts, far):
    for near, drawn in zip(draw(parts, N, 60, SEED, far), counts, strict=True):
        assert (near == drawn[:, :60]).all()


@pytest.fixture(scope="module")
def two_parts():
    """Two checkpoints' answers to 40 questions, 30 of them of the same class at both."""
    first = np.arange(40) < 20
    second = first ^ (np.arange(40) % 4 == 0)
    return [component(np.arange(40), first), component(np.arange(40), second)]


def test_marginals_are_multinomial(two_parts):
    # n draws from a class of n = 20: mean 1, variance 1 - 1/n, covariance -1/n
    n, replicates = 20, 4000
    drawn = draw(two_parts, 40, replicates, seed=1)[0][:n].astype(float)
    totals = drawn.sum(axis=1)
    statistic = ((totals - replicates) ** 2 / replicates).sum()
    assert statistic < chi2.ppf(0.9999, n - 1)
    covariance = np.cov(drawn)
    assert np.diag(covariance).mean() == pytest.approx(1 - 1 / n, abs=0.03)
    off_diagonal = covariance[~np.eye(n, dtype=bool)]
    assert off_diagonal.mean() == pytest.approx(-1 / n, abs=0.005)
    # the share of questions that are never drawn: (1 - 1/n)^n
    assert (drawn == 0).mean() == pytest.approx((1 - 1 / n) ** n, abs=0.01)


def same_question_correlation(first, second, parts):
    back = [np.argsort(part.questions) for part in parts]
    a, b = first[back[0]].astype(float), second[back[1]].astype(float)
    return np.mean([np.corrcoef(x, y)[0, 1] for x, y in zip(a, b, strict=True)])


def test_components_depend_on_each_other_as_in_the_walk(two_parts):
    drawn = draw(two_parts, 40, 1500, seed=2)
    ours = same_question_correlation(*drawn, two_parts)
    walked = []
    for part in two_parts:
        taken = [walk(part, 40, 99, replicate) for replicate in range(1500)]
        walked.append(
            np.array([np.bincount(rows, minlength=40)[part.questions] for rows in taken]).T
        )
    slow = same_question_correlation(*walked, two_parts)
    assert ours == pytest.approx(slow, abs=0.02)
    assert 0.7 < ours < 0.99  # neither one draw for both nor independent draws
    other = draw(two_parts, 40, 1500, seed=3)
    assert abs(same_question_correlation(drawn[0], other[1], two_parts)) < 0.02


@pytest.fixture(scope="module")
def replicated(answers, pairs, counts):
    """Metrics per run and replicate, of the counts of the parts in order."""
    drawn = iter(counts)
    return metrics_under(lambda part: next(drawn), prepare(answers, pairs, ["odds", "fitted"]))


@pytest.mark.parametrize("conditioning", ["odds", "fitted"])
def test_metrics_equal_those_of_resampled_rows(answers, pairs, replicated, conditioning):
    runs = list(answers.confidence)
    for replicate in (0, 57, 399):
        expected = resampled_metrics(answers, pairs, conditioning, replicate)
        for estimator, metrics in expected.items():
            rows = [row for row, run in enumerate(runs) if run[:2] == estimator]
            for (scope, metric), value in metrics.items():
                key = ("odds" if scope == "full" else conditioning, scope, metric)
                mean = replicated[key][rows, replicate].mean()
                assert mean == pytest.approx(value, abs=1e-9), key


def test_metrics_of_the_data_are_those_of_evaluate(answers, pairs):
    plain = metrics_under(once, prepare(answers, pairs, ["odds", "fitted"]))
    metrics = evaluate(
        make_predictions(N, absent=[4, 11, 30]), CHECKPOINTS, min_contrast=5
    ).query("seed != 'mean'")
    expected = metrics.set_index(["conditioning", "scope", "metric", "estimator", "seed"])[
        "value"
    ]
    assert len(expected) == sum(len(rows) for rows in plain.values())
    for key, rows in plain.items():
        for run, value in zip(answers.confidence, rows[:, 0], strict=True):
            assert value == expected[(*key, run.estimator, str(run.seed))]


def test_auc_of_columns_with_ties_and_a_missing_class():
    confidence = np.array([0.1, 0.5, 0.5, 0.5, 0.9, 0.9, 0.95])
    correct = np.array([0, 0, 1, 0, 1, 1, 0], bool)
    counts = np.array(
        [[1, 2, 0], [1, 0, 0], [1, 3, 1], [1, 1, 0], [1, 0, 1], [1, 1, 2], [1, 2, 0]], np.uint8
    )
    area = auc(confidence, correct, weights=counts)
    for column in (0, 1):
        times = counts[:, column]
        expected = roc_auc_score(np.repeat(correct, times), np.repeat(confidence, times))
        assert area[column] == pytest.approx(expected)
    assert np.isnan(area[2])
