"""Flips by chance, by hand, by slow loops, and in simulated worlds that know or guess."""

import numpy as np
import pandas as pd
import pytest
from estimate_chance import estimate_chance
from know_or_guess import simulate
from synthetic_predictions import table

from persistcal.evaluation.arrange import AnswerArrays, Series
from persistcal.evaluation.chance import (
    WithGuesses,
    adjusted_metrics,
    flips_by_chance,
    lucky_per_wrong,
)
from persistcal.evaluation.conditioning import condition_by_odds
from persistcal.evaluation.contrast import contrast_sets
from persistcal.evaluation.draws import question_blocks
from persistcal.evaluation.evaluate import evaluate
from persistcal.report.plain_tables import chance_adjusted, chance_flips
from persistcal.store.artifacts import CHANCE_ADJUSTED, CHANCE_FLIPS, check

HOW = {"n_replicates": 300, "seed": 3}


def arrays(correct, confidence=None):
    correct = np.array(correct, np.int8)
    given = np.full(correct.shape, 0.5) if confidence is None else np.array(confidence)
    ids = np.array([f"q{i:06d}" for i in range(correct.shape[1])], object)
    return AnswerArrays(("a", "b"), ids, correct, {Series("quiz", "own", 0): given})


def test_flips_by_hand():
    # 8 questions that both know; then one regression, two improvements, four of which both get
    # wrong, and one that the first did not answer
    first = [1] * 8 + [1, 0, 0, 0, 0, 0, 0, -1]
    later = [1] * 8 + [0, 1, 1, 0, 0, 0, 0, 1]
    n_options = np.array([4] * 14 + [2, 4])
    answers = arrays([first, later])
    sets = contrast_sets(answers.correct, min_contrast=1)
    [row] = flips_by_chance(answers, sets, n_options, **HOW).to_dict("records")
    assert (row["earlier"], row["later"], row["questions"]) == ("a", "b", 15)
    counts = [row[n] for n in ("both_right", "both_wrong", "improvement", "regression")]
    assert counts == [8, 4, 2, 1]
    # Both wrong: three of four options, 1/3 each, and one of two: 1 + 1, in either direction
    assert row["chance"] == pytest.approx(4)
    assert row["share"] == pytest.approx(4 / 3)
    # Errors of the first, 2/k each: five of 2/4 and one of 2/2 = 3.5; of the later four and
    # one, 3. If all were guesses, 2 (1/k)(1 − 1/k) of them would flip: 14 of 0.375 and one
    # of 0.5, 5.75; 3.5 + 3 − 5.75 = 0.75
    assert (row["least"], row["most"]) == (pytest.approx(0.75), pytest.approx(3))


def test_a_replicate_counts_as_many_questions_as_both_answered():
    """Slowly: the questions of each replicate one by one; a third have no earlier answer."""
    world, n = simulate(np.random.default_rng(5), 90, [0.2, 0.2, 0.1, 0.5]), 90
    correct, k = world.answers.correct.copy(), world.n_options
    correct[0, ::3] = -1
    answers = arrays(correct)
    sets = contrast_sets(correct, min_contrast=1)
    drawn = []
    for number in range(50):
        taken = next(question_blocks(n, HOW["seed"], number))[:n]
        both = [q for q in taken if correct[0, q] >= 0]  # all have a later answer
        wrong = [q for q in both if correct[0, q] == correct[1, q] == 0]
        times = 60 / len(both)
        chance = sum(2 / (k[q] - 1) for q in wrong)
        flips = sum(correct[0, q] != correct[1, q] for q in both)
        errors = [times * sum(2 / k[q] for q in both if side[q] == 0) for side in correct]
        guessed = times * sum(2 / k[q] * (1 - 1 / k[q]) for q in both)
        least = min(max(0, sum(errors) - guessed), *errors)
        drawn.append([times * chance, chance / flips, least, *errors])
    low, high = np.quantile(drawn, [0.025, 0.975], axis=0)
    [row] = flips_by_chance(answers, sets, k, n_replicates=50, seed=HOW["seed"]).to_dict(
        "records"
    )
    ends = [row[name] for name in ("lower_2_5pct", "share_lower_2_5pct")]
    assert [*ends, row["accuracies_lower_2_5pct"]] == pytest.approx(low[:3].tolist())
    ends = [row[name] for name in ("upper_97_5pct", "share_upper_97_5pct")]
    assert [*ends, row["accuracies_upper_97_5pct"]] == pytest.approx([*high[:2], min(high[3:])])


def test_signs_by_hand():
    # Improvements of signs +, +, +, −; regressions whose right, earlier answer has the higher
    # confidence twice and an equal one once; both wrong: the confidence rises, rises, falls
    first = [0] * 4 + [1] * 3 + [0] * 3
    later = [1] * 4 + [0] * 3 + [0] * 3
    before = [0.2, 0.2, 0.2, 0.8, 0.9, 0.9, 0.5, 0.3, 0.3, 0.6]
    after = [0.6, 0.7, 0.9, 0.4, 0.1, 0.2, 0.5, 0.4, 0.6, 0.3]
    answers = arrays([first, later], [before, after])
    [pair] = contrast_sets(answers.correct, min_contrast=1)
    one = WithGuesses(answers, pair, lucky_per_wrong(np.full(10, 4)))
    # Of three questions of four options, 1/3 each: 1 improvement and 1 regression by chance,
    # whose signs sum to (1 + 1 − 1) / 3 = 1/3 and −1/3.
    # Improvements: (2 − 1/3) / (4 − 1) = 5/9. Regressions: (2 + 1/3) / (3 − 1) = 7/6.
    value, left = one.metrics_under(one.weight)["delta0_balanced"]
    assert (value[0, 0], left[0]) == (pytest.approx((5 / 9 + 7 / 6) / 2), pytest.approx(2))
    # With the checkpoints exchanged, what was gained is lost
    mirror = arrays([later, first], [after, before])
    [other] = contrast_sets(mirror.correct, min_contrast=1)
    back = WithGuesses(mirror, other, lucky_per_wrong(np.full(10, 4)))
    value, left = back.metrics_under(back.weight)["delta0_balanced"]
    assert (value[0, 0], left[0]) == (pytest.approx((5 / 9 + 7 / 6) / 2), pytest.approx(2))
    plain, _ = one.metrics_under((one.weight > 0).astype(float))["delta0_balanced"]
    assert plain[0, 0] == pytest.approx((2 / 4 + 2 / 3) / 2)
    # Two options: as many flips by chance as there are questions that both get wrong, three in
    # each direction, so no regression is left
    one = WithGuesses(answers, pair, lucky_per_wrong(np.full(10, 2)))
    value, left = one.metrics_under(one.weight)["delta0_balanced"]
    assert np.isnan(value[0, 0]) and left[0] == 0


def test_auc_is_that_of_all_pairs_of_weighted_answers():
    world = simulate(np.random.default_rng(0), 80, [0.2, 0.3, 0.2, 0.3])
    answers, k = world.answers, world.n_options
    [pair] = contrast_sets(answers.correct, min_contrast=1)
    one = WithGuesses(answers, pair, lucky_per_wrong(k))
    found, _ = one.metrics_under(one.weight)["auc"]
    first, later = answers.correct
    [run] = answers.confidence.values()
    early, late = condition_by_odds(*run)
    weighted = []  # of the confidence in the right answer: that in the wrong one is 1 minus it
    for q in range(80):
        if first[q] != later[q]:
            weighted.append((late[q] if later[q] else early[q], 1.0))
        elif not first[q]:
            weighted += [(late[q], -1 / (k[q] - 1)), (early[q], -1 / (k[q] - 1))]
    won = sum(
        v * w * (0.5 if abs(x + y - 1) < 1e-9 else x + y > 1)
        for x, v in weighted
        for y, w in weighted
    )
    assert found[0, 0] == pytest.approx(won / sum(w for _, w in weighted) ** 2, abs=1e-9)


def rows_of(answers):
    [run] = answers.confidence.values()
    rows = [
        (name, question, run[k, i], answers.correct[k, i] == 1)
        for k, name in enumerate(answers.checkpoints)
        for i, question in enumerate(answers.questions)
    ]
    return table(rows, estimator="own", model="m", dataset="quiz")


def test_without_options_metrics_are_those_of_the_contrast_set():
    world = simulate(np.random.default_rng(1), 500, [0.2, 0.3, 0.2, 0.3])
    answers = arrays(world.answers.correct, *world.answers.confidence.values())
    sets = contrast_sets(answers.correct, min_contrast=1)
    none = np.zeros(500, int)
    adjusted = adjusted_metrics(answers, sets, none, **HOW).set_index("metric")
    how = {"min_contrast": 1, "conditionings": ["odds"]}
    metrics = evaluate(rows_of(answers), answers.checkpoints, **how)
    chosen = (metrics["seed"] == "mean") & (metrics["scope"] == "contrast")
    usual = metrics[chosen].set_index("metric")["value"]
    for name in ("delta0_balanced", "auc"):
        assert adjusted.loc[name, "value"] == pytest.approx(usual[name], abs=1e-12)
        assert adjusted.loc[name, "unadjusted"] == adjusted.loc[name, "value"]
    [row] = flips_by_chance(answers, sets, none, **HOW).to_dict("records")
    assert row["chance"] == row["share"] == row["least"] == row["most"] == 0


def truth(shares):
    """The share of questions that flip by chance, and metrics of all flips but these."""
    world = simulate(np.random.default_rng(9), 400_000, shares)
    correct = world.answers.correct
    lucky = world.chance & (correct[0] != correct[1])
    genuine = arrays(np.where(lucky, -1, correct), *world.answers.confidence.values())
    sets = contrast_sets(genuine.correct, min_contrast=1)
    none = np.zeros(len(lucky), int)
    metrics = adjusted_metrics(genuine, sets, none, n_replicates=1, seed=0)
    return lucky.mean(), lucky.sum() / len(sets[0].questions), *metrics["unadjusted"]


def test_known_flips_are_recovered():
    n, worlds, shares = 800, 100, [0.3, 0.2, 0.1, 0.4]
    lucky, per_genuine, *genuine = truth(shares)
    share = per_genuine / (1 + per_genuine)
    held = np.zeros(5)
    values = []
    for number in range(worlds):
        world = simulate(np.random.default_rng([7, number]), n, shares)
        sets = contrast_sets(world.answers.correct, min_contrast=10)
        how = {"n_replicates": 150, "seed": number}
        [flips] = flips_by_chance(world.answers, sets, world.n_options, **how).to_dict(
            "records"
        )
        metrics = adjusted_metrics(world.answers, sets, world.n_options, **how)
        held += [
            flips["lower_2_5pct"] <= lucky * n <= flips["upper_97_5pct"],
            flips["share_lower_2_5pct"] <= share <= flips["share_upper_97_5pct"],
            flips["accuracies_lower_2_5pct"] <= lucky * n <= flips["accuracies_upper_97_5pct"],
            *metrics["lower_2_5pct"].le(genuine) & metrics["upper_97_5pct"].ge(genuine),
        ]
        values.append([flips["chance"] / n, flips["share"], *metrics["value"]])
    # 95 % of 100 worlds, give or take 2 %: 90 to 99 % of the time
    chance, of_flips, alone, *of_metrics = held / worlds
    assert (np.array([chance, of_flips, *of_metrics]) >= 0.9).all(), held / worlds
    assert (np.array([chance, of_flips, *of_metrics]) <= 0.995).all(), held / worlds
    assert alone >= 0.95  # a range, which is wide
    assert np.mean(values, axis=0) == pytest.approx([lucky, share, *genuine], abs=0.02)
    # the metric of all flips is another one
    assert metrics["unadjusted"].iloc[0] < genuine[0] - 0.1


def test_of_a_pure_guesser_nothing_is_known():
    worlds = 80
    told = covered = 0
    for number in range(worlds):
        world = simulate(np.random.default_rng([7, number]), 600, [0, 0, 0, 1])
        sets = contrast_sets(world.answers.correct, min_contrast=10)
        how = {"n_replicates": 150, "seed": number}
        [flips] = flips_by_chance(world.answers, sets, world.n_options, **how).to_dict(
            "records"
        )
        covered += flips["share_lower_2_5pct"] <= 1 <= flips["share_upper_97_5pct"]
        row = adjusted_metrics(world.answers, sets, world.n_options, **how).iloc[0]
        assert row["metric"] == "delta0_balanced"
        assert row["lower_2_5pct"] <= 0 <= row["upper_97_5pct"]
        if row["pairs"] == "0 of 1":
            assert np.isnan(row["value"]) and np.isnan(row["unadjusted"])
            assert (row["lower_2_5pct"], row["upper_97_5pct"]) == (-1, 1)
        told += row["pairs"] == "1 of 1"
    assert told / worlds <= 0.05 and 0.9 <= covered / worlds <= 0.995


def tables(options=None):
    world = simulate(np.random.default_rng(2), 400, [0.3, 0.3, 0.2, 0.2])
    answers = arrays(world.answers.correct, *world.answers.confidence.values())
    choices = [[str(i) for i in range(k)] for k in world.n_options]
    questions = pd.DataFrame({"dataset": "quiz", "question_id": answers.questions})
    questions["options"] = choices if options is None else options
    settings = {"checkpoints": {"m": ["a", "b"]}, "min_contrast": {"quiz": 5}, "pairs": "all"}
    return rows_of(answers), questions, settings | HOW


def test_script_and_tables():
    predictions, questions, settings = tables()
    flips, adjusted = estimate_chance(predictions, questions, **settings)
    check(flips, CHANCE_FLIPS, "flips")
    check(adjusted, CHANCE_ADJUSTED, "adjusted")
    labels = {"models": {"m": "M & N"}, "datasets": {}, "estimators": {"own": "Own"}}
    names = {"m": {"a": "10%", "b": "20%"}}
    printed = chance_flips(flips, checkpoints=names, labels=labels)
    row = flips.iloc[0]
    assert printed.rows is flips
    assert r"10\% $\to$ 20\% & " + str(row["improvement"] + row["regression"]) in printed.tex
    low, high = row["lower_2_5pct"], row["upper_97_5pct"]
    assert f"{row['chance']:.0f} [{low:.0f}, {high:.0f}]" in printed.tex
    text = chance_adjusted(adjusted, labels=labels).tex
    first = adjusted.iloc[0]
    assert rf"Own & {first['unadjusted']:.3f} & {first['value']:.3f} [" in text
    assert r"M \& N" in text and "(1/1)" in text


def test_free_text_is_refused():
    predictions, questions, settings = tables(options=[None] * 400)
    with pytest.raises(ValueError, match="no question of this study has options"):
        estimate_chance(predictions, questions, **settings)
    with pytest.raises(ValueError, match="has one option"):
        lucky_per_wrong(np.array([1, 4]))


def test_a_pair_without_a_common_question_has_no_flips():
    answers = arrays([[1, 0, -1, -1], [-1, -1, 0, 1]])
    sets = contrast_sets(answers.correct, min_contrast=1)
    [row] = flips_by_chance(answers, sets, np.full(4, 4), **HOW).to_dict("records")
    assert row["questions"] == row["chance"] == row["most"] == 0 and np.isnan(row["share"])
    assert set(adjusted_metrics(answers, sets, np.full(4, 4), **HOW)["pairs"]) == {"0 of 0"}
