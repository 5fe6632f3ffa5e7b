"""Each estimator on the earlier checkpoint k and the evaluated m and n, by hand."""

import numpy as np
import pandas as pd
import polygraph
import pytest
import torch
from answer_tables import questions_table
from estimate_confidences import estimate_confidences
from estimation import PROMPT, answers_of, ask_tiny_models, of_each, predictions, with_splits
from gather_confidences import gather_confidences
from join_labels import join_labels
from rate_at_checkpoint import rate_at_checkpoint
from tiny_models import logits_alone, tiny_model, tiny_tokenizer
from workflow_runs import ROOT

from persistcal.confidence import uncertainty
from persistcal.confidence.estimate import AnswerTables, Estimation
from persistcal.confidence.verbalised import word_probability, word_token
from persistcal.store import artifacts
from persistcal.store.jobs import Job, execute

torch.set_num_threads(1)

NUMBERS = range(1, 6)
QUESTIONS = questions_table(0, 5).assign(
    question_id=[f"q{i}" for i in NUMBERS],
    question=[f"Text of q{i}?" for i in NUMBERS],
    split=["test"] * 3 + ["train", "test"],
    excluded=[False] * 4 + [True],
)
CLUSTERS = {
    "k": [
        ("q1", 0, "Mount Everest", 0.5, ["Mount Everest", "Everest"]),
        ("q1", 1, "K2", 0.3, ["K2"]),
        ("q2", 0, "Oslo", 0.9, ["Oslo"]),
        ("q4", 0, "Rome", 0.8, ["Rome"]),
        ("q5", 0, "Bern", 0.8, ["Bern"]),
    ],
    "m": [
        ("q1", 0, "everest.", 0.7, ["everest."]),
        ("q1", 1, "K2", 0.3, ["K2"]),
        ("q2", 0, "Bergen", 0.6, ["Bergen"]),
        ("q3", 0, "Lima", 0.4, ["Lima"]),
        ("q4", 0, "Rome", 1.0, ["Rome"]),
        ("q5", 0, "Bern", 0.8, ["Bern"]),
    ],
    # Sums of beams' probabilities can exceed 1 by rounding errors.
    "n": [("q1", 0, "k2", 1 + 1e-12, ["k2"]), ("q2", 0, "OSLO", 0.2, ["OSLO"])],
}
BEAMS = {
    "k": [("q1", 0, " x", -1.0)],
    "m": [
        ("q1", 0, " K2", -0.5),
        ("q1", 1, " everest.", -1.0),
        ("q1", 2, " Everest", -1.2),
        ("q2", 0, "", -0.1),  # no answer
        ("q2", 1, " Bergen", -2.0),
        ("q2", 2, "Bergen ", -1.5),  # the same answer from better tokens
        ("q3", 0, " Lima", 1e-9),
    ],
    "n": [("q1", 0, "k2", -0.2), ("q2", 0, "OSLO", -0.3)],
}
RIGHT = {"k": ["q4"], "m": ["q1", "q3"], "n": ["q2"]}
EVALUATED = [("m", "q1"), ("m", "q2"), ("m", "q3"), ("n", "q1"), ("n", "q2")]
VERIFIED = pd.DataFrame(
    [(c, q, 0.1 * i) for i, (c, q) in enumerate(EVALUATED)] + [("k", "q4", 0.9)],
    columns=artifacts.VERIFIED.schema.names,
)


def clusters_of(rows):
    return pd.DataFrame(rows, columns=artifacts.CLUSTERS.schema.names)


def beams_of(rows):
    beams = pd.DataFrame(rows, columns=artifacts.BEAMS.schema.names[:4])
    beams = beams.assign(n_tokens=beams["beam"] + 2, entropy=beams["beam"] / 10 + 0.5)
    certainty = beams["beam"] + 1.0
    measures = {"self_certainty": certainty, "margin": 1 / (certainty + 1)}
    return beams.assign(**measures, min_logprob=beams["logprob"] / 2)


CLUSTER_TABLES = {name: clusters_of(rows) for name, rows in CLUSTERS.items()}
TABLES = (
    QUESTIONS,
    of_each({name: beams_of(rows) for name, rows in BEAMS.items()}),
    of_each(CLUSTER_TABLES),
    of_each({name: answers_of(QUESTIONS, CLUSTER_TABLES[name], RIGHT[name]) for name in "kmn"}),
)


def estimated(function, judged="mn", **settings):
    """Return an estimator's confidences by checkpoint and question."""
    settings = {"earlier": ["j", "k"], "evaluation": ["m", "n"], **settings}
    rows = predictions(TABLES, "kmn", judged, function=str(function), **settings)
    assert set(rows["estimator"]) == {"mine"}
    assert set(rows["train_dataset"]) == {"quiz"}
    correct = {("m", "q1"), ("m", "q3"), ("n", "q2")}
    keys = list(zip(rows["checkpoint"], rows["question_id"], strict=True))
    assert {key for key, hit in zip(keys, rows["correct"], strict=True) if hit} == correct
    assert sorted(keys) == EVALUATED  # without train and excluded questions
    return dict(zip(keys, rows["confidence"], strict=True))


# The best beam of each prediction: beam 1 of everest., beam 2 of Bergen, else beam 0
LOGPROBS = np.array([-1.0, -1.5, 0.0, -0.2, -0.3])
PLACES = np.array([1, 2, 0, 0, 0])
POSTHOC = {"judged": "kmn", "posthoc": "isotonic"}


@pytest.mark.parametrize(
    ("function", "settings", "expected"),
    [
        ("end_correct", {}, [0, 0, 0, 1, 1]),
        ("self_consistency", {}, [0.7, 0.6, 0.4, 1.0, 0.2]),  # 1 + 1e-12 is 1
        ("self_consistency_copy", {}, [0.5, 0.9, 0.0, 0.5, 0.9]),  # k has no answer to q3
        # k: everest matches Mount Everest, Bergen matches no answer, q3 has no answer
        ("self_consistency_surrogate", {"compares_answers": True}, [0.5, 0.0, 0.0, 0.3, 0.9]),
        ("sequence_probability", {}, np.exp(LOGPROBS)),
        ("perplexity", {}, np.exp(LOGPROBS / (PLACES + 2))),
        ("mean_token_entropy", {}, np.exp(-(PLACES / 10 + 0.5))),
        ("min_token_probability", {}, np.exp(LOGPROBS / 2)),
        ("self_certainty", {}, (PLACES + 1) / (PLACES + 2)),
        ("probability_margin", {}, 1 / (PLACES + 2)),
        # probabilities of the predictions' clusters: 0.7, 0.6, 0.4, 1, 0.2
        ("cocoa", {}, np.exp(LOGPROBS * (1 - np.array([0.7, 0.6, 0.4, 1, 0.2])))),
        ("verifier", {"verified": VERIFIED}, [0, 0.1, 0.2, 0.3, 0.4]),
        # Fitted on one labelled answer: k's Rome, correct, at 0.8. Knots (0, 0), (0.8, 1),
        # (1, 1): 0.7 / 0.8, 0.6 / 0.8, 0.4 / 0.8, 1, 0.2 / 0.8
        ("self_consistency", POSTHOC, [0.875, 0.75, 0.5, 1.0, 0.25]),
        # k's answer is verified at 0.9: knots (0, 0), (0.9, 1), (1, 1)
        ("verifier", {"verified": VERIFIED, **POSTHOC}, [0, 1 / 9, 2 / 9, 3 / 9, 4 / 9]),
    ],
)
def test_estimators_equal_values_by_hand(function, settings, expected):
    confidences = estimated(function, **settings)
    np.testing.assert_allclose([confidences[key] for key in EVALUATED], expected, atol=1e-9)


USER_FILE = """
import numpy as np
import pandas as pd
def brevity(answers, evidence):
    assert "correct" not in answers
    assert evidence.evaluation == ("m", "n")
    return {value}
"""


@pytest.fixture
def write_estimator(tmp_path):
    """Return a function that writes a user's estimator, which returns `value`."""

    def write(value, text=USER_FILE):
        (tmp_path / "brevity.py").write_text(text.format(value=value))
        return tmp_path / "brevity.py"

    return write


# Each expression rates an answer by 1 / length, in another order or type.
ALIGNED = [
    '1 / answers["answer"].str.len()',
    'answers.sort_values("answer")["answer"].str.len().rdiv(1)',
    'pd.concat([1 / g["answer"].str.len() for _, g in answers.groupby("question_id")])',
    '(answers.sort_values("answer", inplace=True), 1 / answers["answer"].str.len())[1]',
    '[1 / len(answer) for answer in answers["answer"]]',
    "(evidence.labelled.drop(evidence.labelled.index, inplace=True), "
    '1 / answers["answer"].str.len())[1]',
]
REFUSED = [
    ("[0.5]", "returned values of shape \\(1,\\) for 5 answers"),
    ("[0.5, 0.5, 1.5, 0.5, 2]", "2 answers .* 'q3' at checkpoint 'm': 1.5"),
    ("[0.5, float('nan'), 0.5, 0.5, 0]", "1 answers .* 'q2' at checkpoint 'm': nan"),
    ('answers.sort_values("answer", ignore_index=True)["probability"]', "without the index"),
    ('answers["probability"].set_axis([5] * 5)', "without the index"),
    (
        '(answers.sort_values("answer", inplace=True), answers["probability"].to_numpy())[1]',
        "moved the rows",
    ),
    ('np.ma.masked_less(answers["answer"].str.len().rdiv(1), 0.2)', "masked array"),
    ('["much"] * len(answers)', "not an array of numbers .*much"),
]


@pytest.mark.parametrize("value", ALIGNED)
def test_confidences_of_a_users_estimator_are_matched_by_index(write_estimator, value):
    answers = {("m", "q1"): "everest.", ("m", "q2"): "Bergen", ("m", "q3"): "Lima"}
    answers |= {("n", "q1"): "k2", ("n", "q2"): "OSLO"}
    rated = estimated(write_estimator(value))
    assert rated == pytest.approx({key: 1 / len(text) for key, text in answers.items()})


@pytest.mark.parametrize(("value", "message"), REFUSED)
def test_a_users_estimator_rates_each_answer(write_estimator, value, message):
    with pytest.raises(ValueError, match=message):
        estimated(write_estimator(value))


def test_an_estimator_cannot_change_the_labels_for_posthoc_calibration(write_estimator):
    change = 'evidence.labelled.__setitem__("correct", False)'
    file = write_estimator(f'({change}, answers["probability"].clip(0, 1))[1]')
    assert estimated(file, **POSTHOC) == estimated("self_consistency", **POSTHOC)


def test_jobs_per_checkpoint_give_the_same_predictions_as_one_job(write_estimator):
    value = '1 / answers["answer"].str.len()'
    text = USER_FILE.replace('("m", "n")', "(answers.checkpoint.iloc[0],)")
    function, scores = str(write_estimator(value, text)), []
    for name in "kmn":
        settings = {"read": [name], "earlier": [], "evaluation": [name], "equivalence": {}}
        split = "train" if name == "k" else "test"
        beams, clusters = (table[table["checkpoint"] == name] for table in TABLES[1:3])
        estimation = Estimation("mine", function, "quiz", **settings, split=split)
        rated = rate_at_checkpoint(
            AnswerTables(QUESTIONS, beams, clusters, with_splits(clusters, QUESTIONS)),
            estimation=estimation,
            threads=1,
        )
        scores.append(rated.assign(checkpoint=name, answers="train" if name == "k" else "own"))
    use = {"split": "test", "answers": "own"}
    uses = [{**use, "checkpoint": c, "scored_at": c, "answers_of": c} for c in "mn"]
    answers = TABLES[3]
    is_earlier = answers["checkpoint"] == "k"
    labelled = answers[is_earlier]
    evaluated = answers[~is_earlier & (answers["split"] == "test")]
    gathered = gather_confidences(
        pd.concat(scores), labelled, estimator="mine", uses=uses, posthoc="isotonic"
    )
    joined = join_labels(
        artifacts.QUESTIONS.fill(QUESTIONS),
        gathered,
        evaluated,
        estimator="mine",
        copies=False,
        splits=["test"],
    )
    shared = {"evaluation": ["m", "n"], "posthoc": "isotonic"}
    expected = predictions(
        TABLES, "kmn", "kmn", function=str(write_estimator(value)), earlier=["k"], **shared
    )
    pd.testing.assert_frame_equal(joined, expected)


def test_the_estimators_script_reads_the_inputs_of_its_rule(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    inputs = {"questions": "questions.parquet"}
    place = {"model": "tiny", "dataset": "quiz"}
    artifacts.write(QUESTIONS, inputs["questions"], artifacts.QUESTIONS, values=place)
    for kind, table in ((artifacts.BEAMS, TABLES[1]), (artifacts.CLUSTERS, TABLES[2])):
        inputs[kind.name] = [f"{kind.name}/{name}.parquet" for name in "kmn"]
        for name, path in zip("kmn", inputs[kind.name], strict=True):
            rows = table[table["checkpoint"] == name]
            if "split" in table:
                rows = rows[rows["split"] == "test"]
            rows = rows.reindex(columns=kind.schema.names)
            artifacts.write(
                rows, path, kind, values={**place, "checkpoint": name, "split": "test"}
            )
    estimation = {"estimator": "mine", "function": "self_consistency", "dataset": "quiz"}
    estimation |= {"family": "meaning", "needs": ["several_answers"], "read": list("kmn")}
    estimation |= {"earlier": ["k"], "evaluation": ["m", "n"]}
    inputs["rated"] = inputs["clusters"][1:]
    settings = {**place, "estimator": "mine", "estimation": {**estimation, "equivalence": {}}}
    outputs = {"confidences": "rated"}
    execute(estimate_confidences, Job(inputs, outputs, settings, 1))
    rows = artifacts.read_files("rated", artifacts.CONFIDENCES)
    assert rows["confidence"].tolist() == [0.7, 0.6, 0.4, 1.0, 0.2]


def test_a_failed_posthoc_calibration_names_the_estimator():
    expected = r"estimators.mine, posthoc platt: This calibrator is fitted to right and wrong"
    with pytest.raises(ValueError, match=expected):
        estimated("self_consistency", judged="kmn", posthoc="platt")


def test_a_users_file_without_the_function_is_refused(write_estimator):
    with pytest.raises(ValueError, match="define a function brevity"):
        estimated(write_estimator("", "def other(): ...\n"))


# Samples ---------------------------------------------------------------------------------

# Five samples for one question, each of weight 1/5. Groups: Everest three times (two
# spellings), K2 once, an empty answer once.
SAMPLES = [" Mount Everest", " mount everest.", " K2", "", " Mount Everest"]
SAMPLE_LOGPROBS = np.log([0.3, 0.1, 0.2, 0.05, 0.3])
SHARES = np.array([3, 1, 1]) / 5
# Words: {mount, everest} twice, {mount, everest.}, {k2}, {}. Jaccard of the first two sets: 1/3
SIMILAR = np.eye(5)
SIMILAR[0, 4] = SIMILAR[4, 0] = 1
for _i, _j in ((0, 1), (1, 4)):
    SIMILAR[_i, _j] = SIMILAR[_j, _i] = 1 / 3
BY_HAND = {
    "self_consistency": 3 / 5,
    "semantic_sets": 1 / 3,
    "semantic_entropy": np.exp(np.sum(SHARES * np.log(SHARES))),
    "sequence_entropy": np.exp(SAMPLE_LOGPROBS.mean()),
    # p(Everest) = 0.3 + 0.1, drawn three times
    "semantic_sequence_entropy": np.exp((3 * np.log(0.4) + np.log(0.2) + np.log(0.05)) / 5),
    "degree_matrix": SIMILAR.mean(),
    # ROUGE-L ignores punctuation: 1 for the 3 pairs of Everest, 0 for the other 7
    "lexical_similarity": 3 / 10,
    "eccentricity": np.exp(-uncertainty.graph_eccentricity(SIMILAR, np.full(5, 0.2))),
    "laplacian_eigenvalues": 1 / uncertainty.laplacian_sum(SIMILAR, np.full(5, 0.2)),
}


def rate_samples(function, stated=None, **settings):
    """Return the confidences of m and n, which give the same answer to one test question."""
    stated = stated or dict.fromkeys("mn", [None] * len(SAMPLES))
    rows = [("q1", i, text, float(SAMPLE_LOGPROBS[i])) for i, text in enumerate(SAMPLES)]
    everest = ("q1", 0, "Mount Everest", 0.6, ["Mount Everest", "mount everest."])
    clusters = clusters_of([everest, ("q1", 1, "K2", 0.2, ["K2"])])
    beams = {name: beams_of(rows).assign(stated=values) for name, values in stated.items()}
    kinds = clusters, answers_of(QUESTIONS, clusters, [])
    tables = of_each(beams), *(of_each(dict.fromkeys(stated, frame)) for frame in kinds)
    settings = {"earlier": [], "evaluation": [*stated], "sampled": True, **settings}
    rows = predictions(
        (QUESTIONS, *tables), [*stated], [*stated], function=function, **settings
    )
    return rows["confidence"].tolist()


@pytest.mark.parametrize("function", BY_HAND)
def test_estimators_of_samples_equal_values_by_hand(function):
    assert rate_samples(function) == pytest.approx([BY_HAND[function]] * 2)


def test_beams_are_weighed_by_probability():
    """The five beams add up to 0.95, and their clusters to 0.7, 0.2 and 0.05."""
    shares = np.array([0.7, 0.2, 0.05]) / 0.95
    confidences = rate_samples("semantic_entropy", sampled=False)
    assert confidences == pytest.approx([np.exp(np.sum(shares * np.log(shares)))] * 2)


# Models ----------------------------------------------------------------------------------


def asked_text(row):
    return PROMPT.format(question=row.question, answer=row.answer)


# Questions that "first" answers correctly, and the examples shown: correct and wrong in turn.
CORRECT_IDS = ["q1", "q4", "q20"]
SHOWN = [("q1", "9"), ("q0", "0"), ("q4", "9"), ("q2", "0"), ("q3", "0")]


@pytest.mark.parametrize("function", ["verbalised", "p_true", "p_true_few_shot"])
def test_verbalised_and_p_true_equal_softmaxes_of_single_prompts(tmp_path, function):
    """Verbalised: over the digits. P(True): over the whole vocabulary."""
    words = None if function == "verbalised" else ["9", "0"]
    answers = {"first": "Norway", "late": "Norway"}
    rows = ask_tiny_models(tmp_path, function, answers, lambda seed: CORRECT_IDS, words=words)
    questions = questions_table().assign(answer="Norway").set_index("question_id", drop=False)
    shown = "".join(f"{asked_text(questions.loc[name])}{word}\n\n" for name, word in SHOWN)
    shown = shown if function == "p_true_few_shot" else ""
    texts = [shown + asked_text(row) for row in questions.loc[rows["question_id"]].itertuples()]
    assert len(texts) == 5
    digits = [tiny_tokenizer().encode(digit)[0] for digit in "0123456789"]
    p = logits_alone(tiny_model(seed=1), tiny_tokenizer()(texts)["input_ids"]).softmax(-1).cpu()
    expected, rounding = p[:, digits[9]], 1e-5
    if function == "verbalised":
        p = p[:, digits]
        expected, rounding = p @ torch.arange(10.0) / 9 / p.sum(1), 1e-4
    assert rows["confidence"].tolist() == pytest.approx(expected.tolist(), abs=rounding)


def test_p_true_equals_lm_polygraph_except_for_the_end_token():
    """lm-polygraph forbids the end token first, and renormalises the other probabilities."""
    model, tokenizer = tiny_model(seed=1).eval(), tiny_tokenizer()
    model.generation_config.eos_token_id = tokenizer.eos_token_id
    text = (ROOT / "config/prompts/p_true.txt").read_text(encoding="utf-8")
    filled = text.format(question="Where is Oslo?", answer="Norway")
    assert filled == (
        "Question: Where is Oslo?\n Possible answer:Norway\n "
        "Is the possible answer:\n (A) True\n (B) False\n The possible answer is:"
    )
    ids = tokenizer(filled)["input_ids"]
    probability = word_probability(
        model, [ids], word_token(tokenizer, "9"), batch_size=1
    ).item()
    end = logits_alone(model, [ids])[0].double().softmax(-1)[tokenizer.eos_token_id].item()
    peer = np.exp(-polygraph.p_true(model, tokenizer, "Where is Oslo?", "Norway", "9"))
    assert peer == pytest.approx(probability / (1 - end), rel=1e-5)
    assert peer != pytest.approx(probability, rel=1e-5)


# Confidences from a file of answers -------------------------------------------------------

# Everest (two spellings) has .9 and .6, and once no confidence. Other answers are ignored.
STATED = ['{"mine": 0.9, "other": 0.2}', '{"mine": 0.6}', '{"mine": 0.1}', None, None]


def test_a_stated_confidence_is_the_mean_over_the_predictions_cluster():
    assert rate_samples("stated", {"m": STATED}) == pytest.approx([0.75])  # (0.9 + 0.6) / 2
    assert rate_samples("stated", {"m": STATED}, estimator="other") == pytest.approx([0.2])
    # Only K2 has a confidence at n, and it is not the prediction.
    silent = [None, None, '{"mine": 0.1}', None, None]
    with pytest.raises(ValueError, match="none of the 1 answers of checkpoint 'n'"):
        rate_samples("stated", {"m": STATED, "n": silent})
