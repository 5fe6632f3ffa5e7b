"""The first sentences of a page: changed answers, following confidence, calibration."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from measuring import arrange_part, members
from synthetic_study import replicates_of

from persistcal.evaluation.claims import METRICS
from persistcal.evaluation.findings import about_update, find_update, read_finding
from persistcal.evaluation.knowledge import STATISTICS
from persistcal.evaluation.metrics.registry import MetricKey
from persistcal.evaluation.predictions import Series
from persistcal.evaluation.settings import EvaluationSettings
from persistcal.report.page.about import lede
from persistcal.report.page.contents import Stage, Subject
from persistcal.report.page.sentences import (
    MOST,
    best_estimators,
    calibration_texts,
    compare,
    follow_texts,
)
from persistcal.report.phrases import accuracy_sentence
from persistcal.store import artifacts

LABELS = {"a": "Version 1", "b": "Version 2", "c": "Version 3"}
# Nine questions: five gained, two lost, one right at both and one wrong at both.
RIGHT = {"a": [0, 0, 0, 0, 0, 1, 1, 1, 0], "b": [1, 1, 1, 1, 1, 0, 0, 1, 0]}
# Gained: up, up, up, equal up to rounding errors, down. Lost: down, up.
CONFIDENCE = {
    "a": [0.2, 0.2, 0.2, 0.3, 0.5, 0.7, 0.7, 0.5, 0.5],
    "b": [0.3, 0.4, 0.5, 0.1 + 0.2, 0.4, 0.6, 0.8, 0.5, 0.5],
}

USUAL = (0.75, 0.6, 0.9)  # value and ends of a statistic above chance
NUMBERS = {  # other columns of CLAIMS
    **{"n_compared": 1, "n_seeds": 0, "halvings": 1, "improvement": 5, "regression": 2},
    **{"other_improvement": None, "other_regression": None, "left_out": 0, "repeated": 0},
    **{"flipped": 0, "alike": np.nan, "alike_between": np.nan, "by_chance": np.nan},
}


def claim_rows(word, basis="one ask", *, estimator="own", lacking="", **given):
    """Return the rows of an estimator with a word.

    `given` are statistics, above chance by default, `counts` of gained and lost questions of
    both asks, and other columns of `NUMBERS`.
    """
    counts = dict(zip(list(NUMBERS)[3:7], given.pop("counts", (5, 2, None, None)), strict=True))
    numbers = NUMBERS | counts
    numbers |= {name: given.pop(name) for name in NUMBERS.keys() & given.keys()}
    rows = []
    for metric in (*METRICS, *STATISTICS):
        value, low, high = given.get(metric, USUAL)
        place = ["quiz", estimator, "one ask", metric, value, low, high, low, high]
        rows.append([*place, *numbers.values(), basis, word, lacking])
    return pd.DataFrame(rows, columns=artifacts.CLAIMS.but("model", "dataset"))


def part_of(right, confidence, *, pairs="all", seeds=(0,)):
    rows = [
        {"checkpoint": c, "question_id": f"q{i:03d}", "correct": bool(answer), "seed": seed}
        | {"confidence": confidence[c][i], "train_dataset": "quiz", "estimator": "own"}
        for c, labels in right.items()
        for i, answer in enumerate(labels)
        if answer is not None
        for seed in seeds
    ]
    subject = Subject(
        "m", "quiz", [], [*right], EvaluationSettings(min_contrast=1, pairs=pairs)
    )
    return arrange_part(pd.DataFrame(rows), subject)


def part_of_all(names):
    """Return a part in which several estimators have the same confidence."""
    part = part_of(RIGHT, CONFIDENCE)
    [run] = part.answers.confidence.values()
    confidence = {Series("quiz", name, 0): run for name in names}
    return part._replace(answers=part.answers._replace(confidence=confidence))


def bootstrap(names, *, delta, change_auc, fewest=(5, 2)):
    """Return replicates of Δ₀ᵇ and the change AUC, with a row per estimator."""
    measures = {"delta0_balanced": delta, "change_auc": change_auc}
    claims = {
        MetricKey("odds", "contrast", m): np.array(rows, float) for m, rows in measures.items()
    }
    drawn = {key: np.nan_to_num(rows, nan=0.75) for key, rows in claims.items()}
    members = [("quiz", name) for name in names]
    return replicates_of(members, claims, probes=drawn, fewest=fewest)


def findings(part, claims=None, tested=()):
    """Return what is found about accuracy, and by question and estimator, and the names."""
    answers, sets, settings = part.answers, part.pairs, part.subject.settings
    update = find_update(answers, sets, settings)
    claims = artifacts.empty(artifacts.CLAIMS) if claims is None else claims
    about = {"metric": "accuracy", "other_model": ""}
    states = pd.DataFrame([row | about for row in tested], columns=artifacts.STATES.but())
    of_pair = [states, artifacts.empty(artifacts.THRESHOLDS)]
    rows = about_update(answers, sets, update, settings, claims, of_pair)
    found = {"following": {}, "calibration": {}}
    for row in rows[1:]:
        one = read_finding(row)
        found[row["question"]][row["estimator"]] = one, row["estimator"].title()
    return read_finding(rows[0]), found, [LABELS[answers.checkpoints[k]] for k in update]


def best_of(replicates):
    return best_estimators(compare(replicates, members(replicates), EvaluationSettings()))


def follow(part, claims, replicates=None):
    """Return the sentences about the best estimators."""
    accuracy, found, ends = findings(part, claims)
    best = best_of(
        replicates or bootstrap(["own"], delta=[[0.4] * 301], change_auc=[[0.6] * 301])
    )
    return follow_texts(best, found["following"], accuracy, ends, "predictions")


def calibration(part):
    """Return the texts for the only estimator of a part."""
    replicates = bootstrap(["own"], delta=[[0.4] * 301], change_auc=[[0.6] * 301])
    _, found, ends = findings(part)
    return calibration_texts(best_of(replicates), found["calibration"], ends, "predictions")


def change_text(part, tested=()):
    accuracy, _, ends = findings(part, tested=tested)
    return accuracy_sentence(accuracy, *ends)


def test_changes_are_counted_on_questions_that_both_checkpoints_answered():
    part = part_of({**RIGHT, "b": [*RIGHT["b"][:-1], None]}, CONFIDENCE)
    # 3 of 8 right, then 6 of 8. McNemar: 2 P[Bin(7, 1/2) ≤ 2] = 2 (1 + 7 + 21) / 128 = .453
    text = change_text(part)
    assert text.startswith(
        "From Version 1 to Version 2, 7 of 8 answers changed between right and wrong: 5 "
        "questions gained, 2 lost. Accuracy goes from .375 to .750; the difference of .375 ["
    )
    assert text.endswith("] can be chance (McNemar's test, p = .453).")


def test_a_listed_pair_without_changes_is_not_the_update():
    right, confidence = ({**values, "c": values["a"]} for values in (RIGHT, CONFIDENCE))
    part = part_of(right, confidence, pairs=[("a", "b"), ("a", "c")])
    assert findings(part)[2][1] == "Version 2"


def test_the_text_on_accuracy_follows_mcnemars_test():
    # 10 of 10 changed questions are gained: p = 2 / 1024
    half, whole = [0] * 10 + [1] * 10, [1] * 20

    def text(earlier, later):
        part = part_of({"a": earlier, "b": later}, dict.fromkeys("ab", [0.5] * 20))
        return change_text(part)

    rises = "10 questions gained, 0 lost. Accuracy rises from .500 to 1.000, by .500 ["
    assert rises in text(half, whole)
    falls = "0 questions gained, 10 lost. Accuracy falls from 1.000 to .500, by .500 ["
    assert falls in text(whole, half)


def test_the_text_on_accuracy_names_the_test_of_groups():
    part = part_of(RIGHT, CONFIDENCE)
    groups = np.arange(len(part.answers.questions)) // 2
    grouped = part._replace(answers=part.answers._replace(groups=groups))
    tested = {"lower_2_5pct": -0.3, "upper_97_5pct": 0.9, "p_value": 0.3}
    text = change_text(grouped, [tested])
    assert "[−.300, .900] can be chance (bootstrap of groups, p = .300)" in text


MOVES = (
    "from Version 1 to Version 2 its confidence moved the right way in 3 of 5 gains and 1 of 2 "
    "losses, and stayed equal in 1"
)
SURE = ".750 [.600, .900]"


@pytest.mark.parametrize(
    ("word", "basis", "start", "end"),
    [
        ("followed", "one ask", "Own followed (one ask): ", ""),
        (
            "moved with the labels",
            "samples",
            "Own moved with the labels: ",
            " These 7 flips may be chance: ask twice, give samples, name a control, or say "
            "that the answers are greedy.",
        ),
        (
            "followed, if no answer flips by itself (declared)",
            "declared",
            "Own followed, if no answer flips by itself (declared): ",
            " Servers and batches can change greedy answers: a second ask of some questions "
            "(--again) would show how often.",
        ),
    ],
)
def test_a_claim_names_its_statistics_and_the_moves_by_direction(word, basis, start, end):
    [text] = follow(part_of(RIGHT, CONFIDENCE), claim_rows(word, basis))
    assert text == (
        f"{start}moved {SURE}, knew {SURE} and {SURE}, knows {SURE} and {SURE} (.5 is chance); "
        f"{MOVES}.{end}"
    )


def test_moves_are_means_over_seeds():
    part = part_of(RIGHT, CONFIDENCE, seeds=(1, 2))
    [text] = follow(part, claim_rows("followed", n_seeds=2))
    assert "1 of 2 losses, and stayed equal in 1 (means of 2 seeds)" in text
    assert text.endswith("The interval is over 2 seeds and the questions.")


@pytest.mark.parametrize(
    ("word", "lacking", "reason"),
    [
        ("not shown", "knows", "is not shown to have followed: knows .500 [.480, .520], moved"),
        ("moved against", "moved", "moved against the changes: moved .500 [.480, .520] ("),
        ("did not move", "moved", "did not move: moved .500 [.480, .520] ("),
        ("lost its knowledge", "knows", "lost its knowledge: knows .500 [.480, .520], moved"),
        (
            "not shown",
            "placebo: same scale",
            "is not shown to have followed: a placebo (same scale) earns the word, too; moved",
        ),
    ],
)
def test_a_word_beside_a_failed_test_names_this_test(word, lacking, reason):
    failed = {lacking: (0.5, 0.48, 0.52)} if " " not in lacking else {}
    claims = claim_rows(word, "cross", lacking=lacking, counts=(5, 2, 5, 2), **failed)
    assert follow(part_of(RIGHT, CONFIDENCE), claims)[0].startswith(f"Own {reason}")


@pytest.mark.parametrize(("kind", "other"), [("gained", "lost"), ("lost", "gained")])
def test_a_sentence_names_the_direction_if_only_one_holds(kind, other):
    claims = claim_rows("followed", **{f"moved_{other}": (0.5, 0.4, 0.6)})
    [text] = follow(part_of(RIGHT, CONFIDENCE), claims)
    assert text.startswith(f"Own followed (one ask), in {kind} answers only: moved {SURE}")


def test_a_shift_of_all_confidences_is_reported_with_both_means():
    """Confidences fall by .1 in seven questions, and by .3 in the lost ones."""
    shifted = {"a": [0.9] * 9, "b": [0.8] * 5 + [0.6, 0.6, 0.8, 0.8]}
    [text] = follow(part_of(RIGHT, shifted), claim_rows("followed"))
    # Mean at b: (7 × .8 + 2 × .6) / 9 = .756
    assert text.endswith(
        "Nearly all confidences fell (mean .900 to .756), so old thresholds no longer fit."
    )
    raised = {"a": [0.6] * 9, "b": [0.9] * 5 + [0.7] * 4}
    # Mean at b: (5 × .9 + 4 × .7) / 9 = .811
    [text] = follow(part_of(RIGHT, raised), claim_rows("followed"))
    assert "Nearly all confidences rose (mean .600 to .811), so" in text


def test_a_claim_by_cross_asking_has_the_counts_of_both_asks():
    claims = claim_rows("followed", "cross", counts=(31, 12, 28, 14), left_out=3, halvings=20)
    [text] = follow(part_of(RIGHT, CONFIDENCE), claims)
    assert text.startswith(f"Own followed: moved {SURE}")
    assert text.endswith(
        "Asked twice: one ask decides which questions changed (gained and lost: 31 and 12; 28 "
        "and 14), the other one has the confidence, in 20 halvings. 3 answers have a label in "
        "one ask only and are left out."
    )


def test_a_claim_from_one_seed_is_about_what_was_given():
    [text] = follow(part_of(RIGHT, CONFIDENCE, seeds=(17,)), claim_rows("followed", n_seeds=1))
    assert text.startswith("These predictions of own (one seed) followed (one ask): moved")


def test_calibration_is_claimed_for_the_given_seeds():
    """Mean confidences of three adapters are .88, .9 and .92; the accuracy is .5."""
    right = {"a": [1, 0] * 50, "b": [0, 1] * 50}
    part = part_of(right, {"a": [0.5] * 100, "b": [0.5] * 100}, seeds=(17, 18, 19))
    levels = (0.88, 0.9, 0.92)
    runs = {
        series: np.stack([run[0], np.full(100, level)])
        for (series, run), level in zip(part.answers.confidence.items(), levels, strict=True)
    }
    [text] = calibration(part._replace(answers=part.answers._replace(confidence=runs)))
    assert text.startswith("The 3 seeds of Own are over-confident at Version 2: mean")


def test_too_few_lost_questions_give_no_claim_and_a_reason():
    undefined = dict.fromkeys(("moved", "moved_gained", "moved_lost"), (0.75, np.nan, np.nan))
    claims = claim_rows("too few changed questions", **undefined)
    assert follow(part_of(RIGHT, CONFIDENCE), claims) == [
        "Own has too little data to show whether it followed. An interval needs 5 questions, "
        "in different groups, of each kind in each pair: gained (5 in all), lost (2), still "
        "wrong and still right."
    ]


def test_the_last_sentence_says_that_intervals_hold_for_several_estimators():
    names = ["own", "other"]
    near = 0.4 + 0.3 * np.cos(np.arange(301)), 0.4 + 0.3 * np.sin(np.arange(301))
    drawn = bootstrap(names, delta=near, change_auc=[[0.6] * 301] * 2)
    claims = pd.concat(claim_rows("followed", estimator=n, n_compared=2) for n in names)
    texts = follow(part_of_all(names), claims, drawn)
    assert len(texts) == 2
    assert texts[1].endswith("The intervals of these claims hold for 2 estimators at once.")


def test_further_best_estimators_are_counted():
    names = [f"e{i}" for i in range(MOST + 2)]
    rng = np.random.default_rng(0)
    drawn = bootstrap(names, delta=rng.random((5, 99)), change_auc=rng.random((5, 99)))
    assert len(best_estimators(compare(drawn, members(drawn), EvaluationSettings()))) == 5
    claims = pd.concat(claim_rows("followed", estimator=name) for name in names)
    texts = follow(part_of_all(names), claims, drawn)
    assert len(texts) == MOST and "2 more cannot be distinguished" in texts[-1]


@pytest.mark.parametrize(
    ("pairs", "ends"),
    [("all", (0, 2)), ("adjacent", (0, 2)), ([["b", "c"]], (1, 2)), ([["a", "b"]], (0, 1))],
)
def test_the_update_is_from_the_first_to_the_last_checkpoint(pairs, ends):
    three = {**RIGHT, "c": RIGHT["a"]}
    part = part_of(three, {**CONFIDENCE, "c": CONFIDENCE["a"]}, pairs=pairs)
    assert find_update(part.answers, part.pairs, part.subject.settings) == ends
    one = part_of({"a": RIGHT["a"]}, CONFIDENCE)
    assert find_update(one.answers, one.pairs, one.subject.settings) is None


def test_over_and_under_confidence_of_the_later_checkpoint_are_reported():
    """At a, 50 of 100 answers with .5 are right. At b, 50 of 100 answers with .9 or .1."""
    right = {"a": [1, 0] * 50, "b": [0, 1] * 50}
    for stated, bias in ((0.9, "over-confident"), (0.1, "under-confident")):
        part = part_of(right, {"a": [0.5] * 100, "b": [stated] * 100})
        [text] = calibration(part)
        # SmoothECE of a constant confidence: |confidence − accuracy| = .4 at b, and 0 at a
        start = f"Own is {bias} at Version 2: mean confidence {str(stated)[1:]}00, accuracy "
        assert text.startswith(f"{start}.500 (SmoothECE .4"), text
        assert "; at Version 1 .000, noise floor " in text
    part = part_of(right, {"a": [0.9] * 100, "b": [0.5] * 100})
    assert calibration(part) == []
    # Higher confidence in wrong answers, with a mean equal to the accuracy.
    part = part_of(right, {"a": [0.5] * 100, "b": [0.9, 0.1] * 50})
    [text] = calibration(part)
    assert text.startswith("Own is not calibrated, with no shown bias on average, at Version 2")


@pytest.mark.parametrize(
    ("names", "tokens", "start"),
    [
        ("ab", 1e9, "Several training checkpoints of a model answered"),
        ("ab", None, "Several checkpoints of a model answered"),
        ("a", None, "One checkpoint of a model answered the questions, so no change"),
    ],
)
def test_the_page_mentions_training_only_if_the_config_has_tokens(names, tokens, start):
    part = part_of({name: RIGHT[name] for name in names}, CONFIDENCE)
    stages = {"m": {name: Stage(name, tokens) for name in names}}
    assert lede(SimpleNamespace(parts=[part], stages=stages)).startswith(start)
