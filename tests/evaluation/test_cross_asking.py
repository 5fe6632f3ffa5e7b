"""Cross-asking against hand-computed values, a slow implementation and known truth."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from measuring import cross_ask

from benchmarks.knew_moved_knows import Sampled, shares
from persistcal.evaluation.aligned import align, asks_to_cross
from persistcal.evaluation.claims import make_claims
from persistcal.evaluation.replicates import digest_of_draws, replicate
from persistcal.evaluation.settings import EvaluationSettings

SETTINGS = EvaluationSettings(min_contrast=1, min_direction=1, n_replicates=300, seed=3)
CHECKPOINTS = ["v1", "v2"]


def table(correct, confidence, *, asks=(101, 102), group=None):
    """Return predictions from arrays of shape (n_asks, n_checkpoints, n_questions)."""
    frames = [
        pd.DataFrame(
            {
                "checkpoint": checkpoint,
                "question_id": [f"q{number:03}" for number in range(len(labels))],
                "correct": labels,
                "confidence": stated,
                "ask": ask,
                "group": "" if group is None else group,
            }
        )
        for ask, of_ask, by_ask in zip(asks, correct, confidence, strict=True)
        for checkpoint, labels, stated in zip(CHECKPOINTS, of_ask, by_ask, strict=True)
    ]
    return pd.concat(frames).assign(train_dataset="quiz", estimator="e", seed=0)


@pytest.fixture
def random_asks():
    """Return labels and confidences of two asks at two checkpoints, with ties."""
    rng = np.random.default_rng(5)
    return rng.integers(0, 2, (2, 2, 60)), rng.integers(0, 6, (2, 2, 60)) / 5


def values(crossed):
    """Return the metrics of the only estimator."""
    return {name: of["quiz", "e"].value for name, of in crossed.samples.items()}


def draws(crossed):
    """Return the replicates of the only estimator's change AUC."""
    return crossed.samples["change_auc"]["quiz", "e"].draws


def test_each_ask_selects_questions_for_the_confidences_of_the_other():
    # Ask 1 gains q0 and q1 and loses q2; ask 2 gains q0 and loses q2.
    first, second = [[0, 0, 1, 1], [1, 1, 0, 1]], [[0, 1, 1, 1], [1, 1, 0, 1]]
    # Confidences of ask 1 rise in q0 and fall in q2; in ask 2 they rise in q0, q1 and q2.
    of_first = [[0.2, 0.5, 0.9, 0.5], [0.6, 0.5, 0.4, 0.5]]
    of_second = [[0.3, 0.3, 0.3, 0.5], [0.7, 0.9, 0.5, 0.5]]
    crossed = cross_ask(table([first, second], [of_first, of_second]), CHECKPOINTS, SETTINGS)
    # Questions of ask 1: signs +1, +1 in gains and −1 in the loss, (1 − 1) / 2 = 0.
    # Questions of ask 2: signs +1 in the gain and +1 in the loss, (1 + 1) / 2 = 1.
    assert values(crossed)["delta0_balanced"] == pytest.approx((0 + 1) / 2)
    # Questions of ask 1: changes .4 and .6 in gains above .2 in the loss, 1. Ask 2: .4 > −.5.
    assert values(crossed)["change_auc"] == pytest.approx(1.0)
    assert (crossed.gained, crossed.lost) == ((2, 1), (1, 1))


def test_cross_asking_equals_a_loop_over_questions_and_pairs(random_asks):
    correct, confidence = random_asks
    crossed = cross_ask(table(correct, confidence), CHECKPOINTS, SETTINGS)
    balances, areas = [], []
    for selecting, rating in ((0, 1), (1, 0)):
        changes = {"gained": [], "lost": []}
        for question in range(60):
            earlier_label, later_label = correct[selecting, :, question]
            change = round(confidence[rating, 1, question] - confidence[rating, 0, question], 9)
            if earlier_label != later_label:
                changes["gained" if later_label else "lost"].append(change)
        gained, lost = changes.values()
        balances.append((np.mean(np.sign(gained)) - np.mean(np.sign(lost))) / 2)
        areas.append(np.mean([(g > x) + (g == x) / 2 for g in gained for x in lost]))
    assert values(crossed)["delta0_balanced"] == pytest.approx(np.mean(balances))
    assert values(crossed)["change_auc"] == pytest.approx(np.mean(areas))


def test_exchanged_checkpoints_of_the_rating_ask_mirror_the_metrics(random_asks):
    """The null distribution is therefore symmetric for every selection of questions."""
    correct, confidence = random_asks
    crossed, mirrored = (
        values(cross_ask(table(correct, stated), CHECKPOINTS, SETTINGS))
        for stated in (confidence, confidence[:, ::-1])
    )
    assert mirrored["delta0_balanced"] == pytest.approx(-crossed["delta0_balanced"])
    assert mirrored["change_auc"] == pytest.approx(1 - crossed["change_auc"])


def test_copies_of_questions_in_a_group_leave_the_intervals_unchanged(random_asks):
    asks = [np.repeat(values, 4, axis=2) for values in random_asks]
    fact = [f"fact {number:03}" for number in np.repeat(np.arange(60), 4)]
    settings = replace(SETTINGS, n_replicates=3000)
    single, grouped, independent = (
        draws(cross_ask(predictions, CHECKPOINTS, settings))
        for predictions in (table(*random_asks), table(*asks, group=fact), table(*asks))
    )
    ends = np.quantile(single, [0.025, 0.975])
    assert np.quantile(grouped, [0.025, 0.975]) == pytest.approx(ends, abs=0.02)
    assert np.ptp(np.quantile(independent, [0.025, 0.975])) < 0.6 * np.ptp(ends)


def test_answers_with_a_label_in_one_ask_only_are_left_out(random_asks):
    predictions = table(*random_asks)
    is_lost = (predictions["ask"] == 102) & predictions["question_id"].isin(["q000", "q001"])
    crossed = cross_ask(predictions[~is_lost], CHECKPOINTS, SETTINGS)
    common = predictions[~predictions["question_id"].isin(["q000", "q001"])]
    expected = cross_ask(common, CHECKPOINTS, SETTINGS)
    assert crossed.n_left_out == 4  # two questions at two checkpoints of the first half
    assert values(crossed)["change_auc"] == values(expected)["change_auc"]


def test_too_few_changed_questions_in_an_ask_give_no_interval(random_asks):
    crossed = cross_ask(table(*random_asks), CHECKPOINTS, replace(SETTINGS, min_direction=40))
    assert np.isnan(draws(crossed)).all()
    assert not np.isnan(values(crossed)["change_auc"])


def test_estimators_with_one_and_two_asks_share_their_draws(random_asks):
    two_asks = table(*random_asks, asks=(0, 1))
    one_ask = two_asks[two_asks["ask"] == 0].drop(columns="ask")
    aligned = (align(rows, CHECKPOINTS, SETTINGS) for rows in (one_ask, two_asks))
    digests = {digest_of_draws(data, SETTINGS) for data in aligned}
    assert len(digests) == 1


@pytest.mark.parametrize(
    ("asks", "basis"), [((101, 102), "cross"), ((0, 1), "cross"), ((0, 90), "other examples")]
)
def test_the_basis_of_a_claim_names_the_kind_of_the_second_ask(random_asks, asks, basis):
    predictions = table(*random_asks, asks=asks)
    if asks == (101, 102):
        usual = predictions[predictions["ask"] == 101].assign(ask=0)
        predictions = pd.concat([predictions, usual])
    data = align(predictions, CHECKPOINTS, SETTINGS)
    claims, _ = make_claims(data, replicate(data, SETTINGS), SETTINGS, determinism="known")
    crossed = claims[claims["asks"] == "cross"]
    assert set(crossed["basis"]) == {basis} and crossed["word"].ne("").all()
    assert set(claims.loc[claims["asks"] == "one ask", "basis"]) == {""}


def test_a_single_ask_is_not_crossed():
    assert asks_to_cross(pd.DataFrame({"ask": [0, 0]})) == []


@pytest.mark.parametrize(("n_samples", "by_one_ask"), [(2, 0.95), (10, 0.0)])
def test_only_changed_knowledge_is_followed_between_two_asks(n_samples, by_one_ask):
    """Of a single sample with its probability, one ask would show that it followed."""

    def followed(changed, halvings):
        world = Sampled("", changed, n_samples=n_samples)
        few = {"studies": 20, "replicates": 200}
        return shares(world, 500, halvings=halvings, **few)["followed"]

    assert followed(0.0, 1) <= 0.1
    assert followed(0.3, 1) >= 0.9
    assert followed(0.0, 0) >= by_one_ask
