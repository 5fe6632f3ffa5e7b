"""Texts and data of the page, without a browser."""

import base64
import gzip
import json
import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from measuring import arrange_part
from synthetic_study import NAMES, invent, replicates_of, study_tables, write_page

from persistcal.evaluation.contrast import ContrastSet
from persistcal.evaluation.findings import Finding
from persistcal.evaluation.metrics.registry import MetricKey
from persistcal.evaluation.samples import Sample
from persistcal.evaluation.settings import EvaluationSettings
from persistcal.evaluation.significance import Simultaneous
from persistcal.report.drawing import MATPLOTLIB_MARKERS, looks
from persistcal.report.grid import Cell, lay_out
from persistcal.report.latex import results_table
from persistcal.report.page.about import absent_analyses, jobs_of
from persistcal.report.page.charts import choose_questions, pack, threshold_curves
from persistcal.report.page.contents import Subject, Texts, Update, gather
from persistcal.report.page.sentences import (
    Standings,
    compare,
    count_questions,
    of_changes,
    of_controls,
    sentence,
)
from persistcal.report.page.tables import group_heads, plain_grid, plain_text, shown
from persistcal.report.page.verdict import Rated, Verdict, broken_answers
from persistcal.store import artifacts

LABELS = {
    "oracle": "Oracle training",
    "non_oracle": "Non-oracle training",
    "gcm": "GCM",
    "cocoa": "CoCoA",
}


def compare_estimators(names, **drawn):
    """Return standings of estimators by replicates of some measures; other measures are NaN."""
    members = [("quiz", name) for name in names]
    keys = {
        "delta": MetricKey("odds", "contrast", "delta0_balanced"),
        "auc": MetricKey("odds", "contrast", "auc"),
        "full": MetricKey("odds", "full", "auc"),
    }
    undefined = np.full((len(names), 3), np.nan)
    replicated = {key: np.array(drawn.get(name, undefined)) for name, key in keys.items()}
    made = replicates_of(members, replicated, probes=replicated)
    return compare(made, members, EvaluationSettings())


QUESTIONS = "220 gained and 38 lost questions"


def standings(**values):
    """Return estimators with these values of Δ₀ᵇ. All simultaneous intervals reach 0.02."""
    value = np.array(list(values.values()))
    difference = value[:, None] - value
    error = np.where(np.eye(len(value)), np.nan, 0.01)
    p = np.where(np.abs(difference) > 0.02, 0.01, 0.5)
    spread = np.linspace(-0.01, 0.01, 101)  # reversed for every second estimator
    samples = {
        name: Sample(v, v + spread * (-1) ** i, {0: 0.5})
        for i, (name, v) in enumerate(values.items())
    }
    intervals = Simultaneous(difference, error, 2.0, p)
    return Standings("contrast", "delta0_balanced", samples, intervals)


def with_seeds(estimators, by_seed):
    """Return standings with other values by seed."""
    samples = {
        name: sample._replace(by_seed=by_seed[name])
        for name, sample in estimators.samples.items()
    }
    return estimators._replace(samples=samples)


def test_a_difference_of_adapters_is_not_claimed_for_recipes_if_seeds_vary():
    estimators = standings(oracle=0.3, non_oracle=0.1)
    several = {"oracle": {17: 0.1, 18: 0.3, 19: 0.5}, "non_oracle": {17: 0.1, 18: 0.1, 19: 0.1}}
    text = sentence(with_seeds(estimators, several), LABELS)
    # Differences of seeds: 0, 0.2 and 0.4. Standard deviation of replicates: 0.0117.
    # 0.2 ± t √(0.04 / 3 + 0.0117²), with 2.04 degrees of freedom: t = 4.224
    assert text.endswith(
        "by .200 [.180, .220] in Δ₀ᵇ. This holds for these seeds. With other seeds, the "
        "difference can be zero: [−.290, .690] over 3 seeds and the questions."
    )
    text = sentence(with_seeds(estimators, {**several, "oracle": {17: 0.3}}), LABELS)
    assert text.endswith("One seed cannot show what training again would give.")


@pytest.mark.parametrize(
    ("values", "text"),
    [
        (  # 0.2 ± 2 · 0.01
            {"oracle": 0.3, "non_oracle": 0.1, "gcm": 0.5},
            "Oracle training (.300) is above non-oracle training (.100) by .200 [.180, .220] "
            f"in Δ₀ᵇ, on {QUESTIONS}; GCM (.500) is above both.",
        ),
        (  # −0.005 ± 0.02: at most 0.025 below and 0.015 above
            {"oracle": 0.1, "non_oracle": 0.105},
            "Oracle training (.100) cannot be distinguished from non-oracle training (.105) in "
            f"Δ₀ᵇ, on {QUESTIONS}: the data allow a difference of up to .025.",
        ),
        (  # the oracle is worse
            {"oracle": 0.1, "non_oracle": 0.2, "gcm": 0.15, "mine": 0.21, "low": 0.0},
            "Oracle training (.100) is below non-oracle training (.200) by .100 [.080, .120] "
            f"in Δ₀ᵇ, on {QUESTIONS}; mine (.210) cannot be distinguished from non-oracle "
            "training (.200) (difference of up to .030); GCM (.150) is between the two; low "
            "(.000) is below both.",
        ),
        (  # Without an oracle, the best two are compared.
            {"gcm": 0.1, "mine": 0.3, "other": 0.2, "third": 0.1},
            "mine (.300) is above other (.200) by .100 [.080, .120] in Δ₀ᵇ, on "
            f"{QUESTIONS}; GCM (.100) and third (.100) are below both.",
        ),
        (
            {"mine": 0.3, "other": 0.29, "third": 0.295, "cocoa": 0.3},
            "mine (.300) cannot be distinguished from CoCoA (.300) in Δ₀ᵇ, on "
            f"{QUESTIONS}: the data allow a difference of up to .020; third (.295) and other "
            "(.290) cannot be distinguished from either (difference of up to .025 and .030).",
        ),
        # 101 replicates from .1002 − .01 to .1002 + .01 in steps of .0002. The quantiles at
        # steps 2.5 and 97.5: .1002 − .01 + 2.5 · .0002 = .0907, and .1097
        ({"gcm": 0.1002}, f"The Δ₀ᵇ of GCM is .100 [.091, .110], on {QUESTIONS}."),
    ],
)
def test_a_sentence_compares_two_estimators_and_ranks_the_others(values, text):
    assert sentence(standings(**values), LABELS, QUESTIONS) == text


def test_estimators_with_equal_replicates_are_reported_to_rank_answers_identically():
    row = 0.5 + 0.1 * np.cos(np.arange(100))
    lower_row = 0.1 + 0.1 * np.sin(np.arange(100))
    estimators = compare_estimators(["gcm", "mine", "cocoa"], delta=[row, row, lower_row])
    text = sentence(estimators, LABELS)
    assert text.startswith("GCM (.500) is above CoCoA (.101) by .399 [")
    assert text.endswith("] in Δ₀ᵇ; mine (.500) ranks the answers as GCM (.500) does.")
    text_of_two = sentence(compare_estimators(["gcm", "mine"], delta=[row, row]), LABELS)
    assert text_of_two == "GCM (.500) and mine (.500) rank the answers identically: equal Δ₀ᵇ."
    text_of_constants = sentence(
        compare_estimators(["gcm", "mine"], delta=np.zeros((2, 100))), LABELS
    )
    assert text_of_constants == "GCM (.000) and mine (.000) have equal Δ₀ᵇ, for any questions."


def test_questions_are_counted_by_direction():
    none = np.arange(0)
    first = ContrastSet(0, 1, [np.arange(2), np.array([2]), none, none], True)
    assert count_questions([first]) == "2 gained and 1 lost question"
    two_sets = [first, ContrastSet(0, 2, [np.arange(1), np.arange(1, 3), none, none], True)]
    assert (
        count_questions(two_sets) == "3 gained and 3 lost questions in 2 pairs of checkpoints"
    )


def test_the_full_set_is_compared_if_no_contrast_metric_is_defined():
    estimators = compare_estimators(
        ["oracle", "gcm"], full=[[0.79, 0.8, 0.81], [0.69, 0.7, 0.71]]
    )
    assert estimators.scope == "full"
    assert "AUC over all questions" in sentence(estimators, LABELS)
    assert compare_estimators(["oracle", "gcm"]) is None


def test_estimators_of_a_family_share_colour_and_marker_but_all_differ():
    styles = looks([*NAMES, "oracle_1answer", "mine", "mine_scaled", "yours"])
    assert styles["non_oracle"].family == "non_oracle"  # and not oracle
    assert styles["oracle_1answer"][:4] == styles["oracle"][:4]
    assert styles["mine_scaled"].variant == 1
    kinds = {look.family: (look.light, look.marker) for look in styles.values()}
    assert len(set(kinds.values())) == len(kinds) == 6
    assert {look.marker for look in styles.values()} <= set(MATPLOTLIB_MARKERS)
    styles = looks([f"semantic_entropy_{i}" for i in range(20)] + NAMES)
    assert len({(*look[1:5], bool(look.variant)) for look in styles.values()}) == 25
    assert {look.light for name, look in styles.items() if "semantic" in name} == {"#2b3a8c"}


def test_methods_that_measure_the_same_quantity_are_a_family():
    names = ["perplexity", "sequence_probability", "cocoa", "semantic_entropy_beta"]
    styles = looks([*names, "verbalised", "mine"])
    families = ["sequence_probability"] * 2 + ["semantic_entropy"] * 2 + ["p_true", "mine"]
    assert [look.family for look in styles.values()] == families
    assert styles["sequence_probability"].variant == 0 and styles["perplexity"].variant == 1
    # These five are in the same figure.
    names = ["self_consistency", "sequence_probability", "verbalised", "non_oracle", "oracle"]
    assert len({look.marker for look in looks(names).values()}) == len(names)
    styles = looks(["oracle_1answer", "oracle"])  # the family's name is filled in any order
    assert (styles["oracle"].variant, styles["oracle_1answer"].variant) == (0, 1)


@pytest.mark.parametrize("side", ["light", "dark"])
def test_colours_contrast_with_the_background_in_both_themes(side):
    def luminance(colour):
        channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    background = luminance({"light": "#ffffff", "dark": "#1a1c20"}[side])
    for name, look in looks([*NAMES, "gcm", "linear_probe", *"abcdefg"]).items():
        darker, lighter = sorted([background, luminance(getattr(look, side))])
        assert (lighter + 0.05) / (darker + 0.05) >= 3, name  # WCAG 2.2, graphics


ESTIMATORS = ["gcm", "oracle"]


def random_part(n=40, n_checkpoints=3, texts=None, seed=0):
    rng = np.random.default_rng(seed)
    names = [f"c{k}" for k in range(n_checkpoints)]
    rows = [(c, f"q{i:03d}", bool(rng.integers(2))) for c in names for i in range(n)]
    frame = pd.DataFrame(rows, columns=["checkpoint", "question_id", "correct"])
    frame = frame.assign(train_dataset="quiz", seed=0)
    frames = [frame.assign(estimator=e, confidence=rng.random(len(frame))) for e in ESTIMATORS]
    place = Subject("m", "quiz", [], names, EvaluationSettings(min_contrast=1))
    return arrange_part(pd.concat(frames), place, texts=texts, order=ESTIMATORS[::-1])


def part_of(frame, *names):
    """Return a part with the answers of an estimator at some checkpoints."""
    subject = Subject("m", "quiz", [], names, EvaluationSettings(min_contrast=1))
    return arrange_part(frame.assign(train_dataset="quiz", estimator="a"), subject)


def test_a_large_study_shows_contrast_questions_and_a_seeded_sample():
    samples = choose_questions([random_part(), random_part(30)], seed=1)
    assert [len(sample) for sample in samples] == [40, 30]
    whole = random_part(400, n_checkpoints=2)
    contrast = set(whole.pairs[0].questions)
    assert 150 < len(contrast) < 250
    # 400 questions x 2 checkpoints x 2 estimators are 1,600 cells. 1,200 are 300 questions.
    (sample,) = choose_questions([whole], seed=1, most_cells=1200)
    assert len(sample) == len(set(sample)) == 300 and contrast < set(sample)
    assert (np.diff(sample) > 0).all()
    (repeated_sample,) = choose_questions([whole], seed=1, most_cells=1200)
    (other_seed,) = choose_questions([whole], seed=2, most_cells=1200)
    assert list(repeated_sample) == list(sample) != list(other_seed)
    (small_sample,) = choose_questions([whole], seed=1, most_cells=400)
    assert len(small_sample) == 100 and set(small_sample) < contrast


def test_a_threshold_curve_shows_precision_coverage_and_certified_thresholds():
    """38 of 40 answers at .9 are right, and 20 of 40 answers at .3."""
    ids = [f"q{i:02d}" for i in range(80)]
    rows = pd.DataFrame({"question_id": ids, "confidence": [0.9] * 40 + [0.3] * 40})
    rows["correct"] = [True] * 38 + [False] * 2 + [True] * 20 + [False] * 20
    frames = [rows.assign(checkpoint=name) for name in ("c1", "c2")]
    whole = part_of(pd.concat(frames).assign(seed=0), "c1", "c2")
    [curve] = threshold_curves(whole, (0, 1), 0.8)
    earlier_curve, later_curve = curve["curves"]
    assert earlier_curve == later_curve
    by_threshold = {row[0]: row[1:] for row in later_curve}
    assert by_threshold[0.3] == [0.725, 1.0]  # 58 of 80
    assert by_threshold[0.32] == by_threshold[0.9] == [0.95, 0.5]  # 38 of 40
    assert by_threshold[0.92] == [None, 0.0]
    # Two starts of the tests are at .9: P[Binomial(40, .2) ≤ 2] = .0079 is below .1 / 4, and
    # P[Binomial(80, .2) ≤ 22] = .97 at .3 is not.
    assert curve["certified"] == [(0.32, 0.9)]
    # P[Binomial(40, .14) ≤ 2] = .06
    [curve_of_high_target] = threshold_curves(whole, (0, 1), 0.86)
    assert curve_of_high_target["certified"] == []
    # With all 80 labels the precision at .9 is known.
    n_labels, certified, coverage = curve["labels"][-1]
    assert (n_labels, certified, coverage, curve["enough"]) == (80, 1.0, 0.5, 60)


def broken_of(earlier, later, cuts=(np.nan, np.nan)):
    """Return the confident answers that broke: confidences and thresholds are by seed."""
    frames = [
        pd.DataFrame({"question_id": [f"q{i}" for i in range(len(confidence))]}).assign(
            confidence=confidence, checkpoint=name, seed=seed, correct=name == "c1"
        )
        for name, runs in (("c1", earlier), ("c2", later))
        for seed, confidence in enumerate(runs)
    ]
    follows = Finding("following", "open", "not shown")
    evidence = {"seed": [0, 1], "threshold": cuts}
    threshold = Finding("threshold", "open", "kept", evidence=evidence)
    rated = [Rated(("quiz", "a"), "A", follows, threshold=threshold)]
    accuracy, update = Finding("accuracy", "no", "falls"), Update(0, 1, "v1", "v2")
    verdict = Verdict("", update, accuracy, rated, None, "")
    return broken_answers(part_of(pd.concat(frames), "c1", "c2"), verdict)


def test_confident_answers_that_became_wrong_are_listed_by_confidence():
    """q3 became wrong, too, but was not confident at the first checkpoint."""
    broken = broken_of([[0.9, 0.8, 0.95, 0.5]], [[0.8, 0.9, 0.85, 0.9]])
    assert broken["ids"] == ["q1", "q2", "q0"]
    assert broken["about"].startswith("A gave these answers a confidence of at least .800")


def test_confident_answers_are_above_the_threshold_of_their_own_seed():
    """The first seed has the threshold .9, the other none: only q1 is at .9 at both ends."""
    earlier = [[0.85, 0.95, 0.5], [0.9, 0.9, 0.9]]
    later = [[0.95, 0.9, 0.95], [0.9, 0.9, 0.9]]
    assert broken_of(earlier, later, (0.9, np.nan))["ids"] == ["q1"]


def test_questions_are_sorted_by_the_numbers_in_their_ids():
    ids = ["q10", "q9", "q1b2", "10", "9", "q1b", "q09", "q" + "9" * 5000, "²"]
    frame = pd.DataFrame({"question_id": ids, "checkpoint": "c", "confidence": 0.5})
    whole = part_of(frame.assign(seed=0, correct=True), "c")
    (positions,) = choose_questions([whole], seed=1)
    expected = ["9", "10", "q1b", "q1b2", "q09", "q9", "q10", "q" + "9" * 5000, "²"]
    assert list(whole.answers.questions[positions]) == expected


def test_packed_confidences_are_thousandths_by_checkpoint_and_question():
    whole = random_part(5)
    packed = pack(whole, np.array([1, 3]), {})
    assert packed["ids"] == ["q001", "q003"]
    oracle = whole.answers.confidence["quiz", "oracle", 0]
    assert packed["confidence"][0][2] == [round(1000 * c) for c in oracle[2, [1, 3]]]
    assert packed["correct"][1] == "".join(map(str, whole.correct[1, [1, 3]]))


def test_packed_clusters_keep_the_most_probable_answers_and_mark_queued_labels():
    questions = pd.DataFrame(
        {"question_id": ["q000", "q001"], "question": ["a?", "b?"], "category": "x"}
    ).assign(references=[["1"], ["2", "two"]], truths=None)
    rows = [("q000", c, f"said {c}", 0.5**c / 2, [""]) for c in range(7)]
    rows.append(("q001", 0, "2", 1.0, ["2"]))
    clusters = pd.DataFrame(rows, columns=artifacts.CLUSTERS.schema.names)
    judged = [("q000", 0, "not_attempted", "queue"), ("q000", 1, "incorrect", "human")]
    judged.append(("q001", 0, "correct", "gpt"))
    labels = pd.DataFrame(judged, columns=["question_id", "cluster", "label", "source"])
    texts = Texts(questions, {"c1": clusters}, {"c1": labels})
    words = {}
    packed = pack(random_part(2, texts=texts), np.array([0, 1]), words)
    assert packed["clusters"][0] is None and packed["clusters"][2] is None

    flat = packed["clusters"][1]
    assert flat["n"] == [5, 1] and flat["more"] == [2, 0]
    assert flat["label"] == [-2, 1, -1, -1, -1, 0]
    assert flat["probability"] == [500, 250, 125, 62, 31, 1000]

    texts = list(words)
    assert texts[flat["answer"][-1]] == "2"

    references = [[texts[i] for i in row] for row in packed["references"]]
    assert references == [["1"], ["2", "two"]]


def test_grids_have_the_marks_and_the_intervals_of_the_table():
    key = {"model": "m", "dataset": "quiz", "train_dataset": "quiz", "conditioning": "odds"}
    columns = ["estimator", "scope", "metric", "value", "bold", "underline"]
    cells = [
        ("oracle", "contrast", "auc", 0.8123, True, False),
        ("oracle", "full", "smece", float("nan"), False, False),
        ("gcm", "contrast", "auc", -0.05, False, True),
        ("gcm", "full", "smece", 0.1, True, True),
    ]
    rows = pd.DataFrame(cells, columns=columns).assign(**key, block=0)
    bounds = rows.head(1).assign(lower_2_5pct=0.7, upper_97_5pct=0.9)
    rows_shown = [{"estimator": "oracle", "label": "The oracle"}]
    rows_shown.append({"estimator": "gcm", "indent": True})
    table = {"layout": "models_as_blocks", "blocks": [{"title": "Main", "rows": rows_shown}]}
    labels = {"models": {"m": "Model"}, "datasets": {"quiz": "Quiz"}, "estimators": LABELS}
    (grid,) = lay_out(rows, table, labels=labels, intervals=bounds)
    assert grid.title == "Model · Quiz"
    assert group_heads(grid) == [("Contrast sets", 1), ("All questions", 1)]
    assert [c.measure.heading + c.measure.arrow for c in grid.columns] == ["AUC↑", "ECE↓"]

    (block,) = grid.blocks
    first, second = block.rows
    assert (block.title, first.label, second.label) == ("Main", "The oracle", "GCM")

    best, undefined = first.cells
    assert best == Cell(0.8123, best=True, lower=0.7, upper=0.9)
    assert shown(best)[1:] == ("best", "95 % interval .700 to .900")
    assert shown(undefined)[0] == "–"
    assert shown(second.cells[0]) == ("−.050", "near", "") and second.indent
    assert shown(second.cells[1])[1] == "best near"
    tex = results_table([grid], caption="C", label="t")
    assert r"GCM & \underline{$-$0.050} & \underline{\textbf{0.100}} \\" in tex
    assert plain_text(grid).splitlines() == [
        "Model · Quiz",
        "           Contrast sets All questions",
        "                    AUC           ECE",
        "The oracle         .812*            –",
        "  GCM             −.050~         .100*",
    ]


def test_a_long_table_is_cut_and_reports_the_number_of_omitted_rows():
    grid = plain_grid(pd.DataFrame({"layer": range(305), "rho": 0.5, "name": "x"}))
    assert grid["left_out"] == 5 and len(grid["rows"]) == 300
    assert [c["number"] for c in grid["columns"]] == [True, True, False]
    assert [cell["text"] for cell in grid["rows"][7]] == ["7", "0.500", "x"]


def test_times_of_jobs_are_added_by_rule():
    assert jobs_of([]) == []
    first, second = ({"s": [2.0], "max_rss": ["-"]}, {"s": [3.5], "max_rss": [90.0]})
    jobs = jobs_of([("train", pd.DataFrame(first)), ("train", pd.DataFrame(second))])
    assert jobs == [{"name": "train", "n": 2, "seconds": 5.5, "memory": 90.0}]


def test_only_configured_analyses_are_reported_as_missing():
    tables = study_tables(predictions=None, replicates=None, intervals=None)
    assert absent_analyses(tables, []) == []
    (line,) = absent_analyses(tables, ["transfer", "weight_similarity", "audit"])
    assert line.startswith("Analyses (transfer matrices, similarity of weights): ")
    assert absent_analyses(replace(tables, transfer=pd.DataFrame([1])), ["transfer"]) == []


def with_controls(study, *pairs):
    """Return a study with pairs of checkpoints of equal weights, asked differently."""
    return study | {"shown": replace(study["shown"], controls={"m": [list(p) for p in pairs]})}


def gathered(study):
    return gather(study["made"], study["shown"])


@pytest.fixture(scope="module")
def usual():
    return invent()


@pytest.fixture(scope="module")
def controlled_study(usual):
    """Return a study with equal weights of the last two checkpoints."""
    return with_controls(usual, ("c3", "c4"))


@pytest.fixture(scope="module")
def texts(controlled_study, tmp_path_factory):
    """Return the page and its summary."""
    return write_page(tmp_path_factory.mktemp("page"), controlled_study)


def page_data(page, name):
    packed = re.search(rf'id="{name}">([^<]*)<', page).group(1)
    return json.loads(gzip.decompress(base64.b64decode(packed)))


def test_the_page_contains_no_address_and_its_policy_forbids_requests(texts):
    page, _ = texts
    policy = re.search('http-equiv="Content-Security-Policy" content="([^"]*)"', page).group(1)
    assert policy.startswith("default-src &#39;none&#39;; ") and "unsafe" not in policy
    stripped = page.replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"https?://|//\w+\.\w+/|@import|url\(", stripped)


def test_the_page_contains_the_data_of_the_study(texts):
    study, explorer = (page_data(texts[0], name) for name in ("study-data", "explorer-data"))
    assert [p["estimator"] for p in study["parts"][0]["estimators"]] == NAMES
    assert len(explorer["parts"][0]["ids"]) == 60
    assert study["tables"]["main"]["tex"].startswith("% needs")
    (facet,) = study["hero"]
    assert len(facet["points"]) == len(NAMES)
    # Counts of changed answers agree with the packed labels.
    earlier, later = explorer["parts"][0]["correct"][:2]
    gained = [*zip(earlier, later, strict=True)].count(("0", "1"))
    assert study["parts"][0]["flows"][0]["gained"] == gained > 0
    assert "75% and 100% are the same weights, asked otherwise" in texts[0]


def test_the_same_study_makes_the_same_page(tmp_path, texts):
    second_page, _ = write_page(tmp_path, with_controls(invent(), ("c3", "c4")))
    for name in ("study-data", "explorer-data"):
        assert page_data(second_page, name) == page_data(texts[0], name)


def test_flips_between_checkpoints_of_equal_weights_are_reported(usual):
    assert list(of_controls(gathered(usual))) == []
    sentences = of_controls(gathered(with_controls(usual, ("c2", "c3"), ("c2", "c4"))))
    texts = [sentence.text for sentence in sentences]
    pairs = [text.split(" are the same weights")[0] for text in texts]
    assert pairs == ["50% and 75%", "50% and 100%"]
    labels = usual["made"].predictions.query("estimator == 'end_correct'")
    labels = labels.pivot(index="question_id", columns="checkpoint", values="correct")
    flips = (labels["c2"] != labels["c3"]).sum()
    assert f"the label of {flips} of 60 questions flips" in texts[0]


@pytest.mark.parametrize(
    ("lower", "words", "text"),
    [
        (
            (0.1, -0.1),
            ("followed", "not shown to have followed"),
            "Tuning, next to Same, where no knowledge changes: Oracle training (Δ_K .200 "
            "[.100, .500]) followed.",
        ),
        (
            (-0.2, -0.1),
            ("not shown to have followed", "moved against"),
            "Tuning, next to Same, where no knowledge changes: GCM moved against.",
        ),
        (
            (-0.2, -0.1),
            ("not shown to have followed", "not shown to have followed"),
            "Tuning, next to Same, where no knowledge changes: none of 2 estimators is shown",
        ),
        (
            (np.nan, np.nan),
            ("", ""),
            "Tuning cannot be compared with Same: one of the two has too few",
        ),
    ],
)
def test_a_change_is_compared_with_its_control_in_a_sentence(lower, words, text):
    rows = pd.DataFrame({"estimator": ["oracle", "gcm"], "beyond_lower_2_5pct": lower})
    rows = rows.assign(word=words, change="Tuning", control="Same")
    rows["of_knowledge"] = [0.2, np.nan]
    rows = rows.assign(of_knowledge_lower_2_5pct=0.1, of_knowledge_upper_97_5pct=0.5)
    control_row = rows.head(1).assign(change="Same", control="")
    rows = pd.concat([rows, control_row]).assign(model="m", dataset="d", train_dataset="d")
    study = SimpleNamespace(labels={"models": {}, "datasets": {}, "estimators": LABELS})
    [comparison] = of_changes(study, rows.assign(metric="delta0_balanced"))
    assert comparison.text.startswith(text)


@pytest.mark.parametrize(
    ("change", "notice"),
    [
        (
            lambda rows: rows[(rows["checkpoint"] != "c3") | (rows["question_id"] > "q00009")],
            "only 50 of 60 questions are at every checkpoint (c2 60, c3 50, c4 60)",
        ),
        (
            lambda rows: rows.assign(correct=rows["correct"] | (rows["checkpoint"] == "c4")),
            "Δ₀ᵇ and Δᵇ are means over 1 of 3 pairs: c2–c4, c3–c4 hold improvements or",
        ),
        (
            lambda rows: rows.assign(correct=rows["correct"] & (rows["checkpoint"] != "c3")),
            "No answer of 75% is correct; see",  # the label of c3
        ),
    ],
)
def test_page_and_summary_report_gaps(tmp_path, controlled_study, texts, change, notice):
    assert notice not in texts[0]
    rows = controlled_study["made"].predictions
    changed_rows = change(rows[rows["estimator"].isin(["end_correct", "self_consistency"])])
    no_questions = controlled_study["made"].questions.head(0)
    tables = replace(controlled_study["made"], predictions=changed_rows, questions=no_questions)
    for text in write_page(tmp_path, controlled_study | {"made": tables}):
        assert notice in " ".join(text.split())


def test_a_checkpoint_without_answers_has_no_clusters(controlled_study):
    tables = controlled_study["made"]
    lacking = {
        name: rows[rows["checkpoint"] != "c3"]
        for name, rows in (("clusters", tables.clusters), ("labels", tables.labels))
    }
    [whole] = gathered(controlled_study | {"made": replace(tables, **lacking)}).parts
    clusters = pack(whole, np.arange(60), {})["clusters"]
    assert [sum(entry["n"]) > 0 for entry in clusters] == [True, True, False, True]


def test_a_page_discusses_all_estimators_if_none_of_the_main_ones_is_there(controlled_study):
    assert gathered(controlled_study).main == NAMES
    for main, discussed in ((["another"], NAMES), (["oracle", "another"], ["oracle"])):
        shown = replace(controlled_study["shown"], main=main)
        assert gathered(controlled_study | {"shown": shown}).main == discussed


def test_the_summary_shows_the_pages_table_in_plain_text(texts):
    _, text = texts
    (heads,) = (line for line in text.splitlines() if "Brier" in line)
    assert heads.split() == ["Δ₀ᵇ", "AUC", "Brier", "AUC", "ECE"]
    cell = r"(−?[.\d]+[ *~]?|–)\s*"
    rows = [line for line in text.splitlines() if re.fullmatch(rf"\S.*?\s+({cell}){{5}}", line)]
    assert len(rows) == len(NAMES)
    assert sum("*" in row for row in rows) >= 1
    assert max(map(len, text.splitlines())) <= 100
