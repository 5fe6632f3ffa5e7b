"""Each estimator on checkpoints k (the last earlier one), m and n (evaluated), by hand."""

import numpy as np
import pandas as pd
import polygraph
import pytest
import torch
from answer_tables import clusters_table, questions_table
from estimate_confidences import estimate_confidences
from gather_confidences import gather_confidences
from records import write_record
from tiny_models import tiny_model, tiny_tokenizer
from workflow_runs import ROOT

from persistcal.answers.predictions import label_predictions, take_predictions
from persistcal.confidence.probe import fit_probe, probe_confidence
from persistcal.confidence.verifier import word_probability, word_token
from persistcal.store import artifacts

torch.set_num_threads(1)

QUESTIONS = pd.DataFrame(
    {"question_id": ["q1", "q2", "q3", "q4", "q5"], "split": ["test"] * 3 + ["train", "test"]}
).assign(
    index=range(5),
    question=[f"Text of q{i}?" for i in range(1, 6)],
    references=[["x"]] * 5,
    any_of=True,
    category="c",
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
    # the probabilities of one cluster's beams, summed
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
LABELS = {
    "k": {"q4": "correct"},
    "m": {"q1": "correct", "q3": "correct"},
    "n": {"q2": "correct"},
}
EVALUATED = [("m", "q1"), ("m", "q2"), ("m", "q3"), ("n", "q1"), ("n", "q2")]
VERIFIED = pd.DataFrame(
    [(c, q, 0.1 * i) for i, (c, q) in enumerate(EVALUATED)] + [("k", "q4", 0.9)],
    columns=artifacts.VERIFIED.schema.names,
)


@pytest.fixture
def paths(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    artifacts.write(QUESTIONS, "questions.parquet", artifacts.QUESTIONS)
    artifacts.write(VERIFIED, "verified.parquet", artifacts.VERIFIED)
    for name in "kmn":
        clusters = pd.DataFrame(CLUSTERS[name], columns=artifacts.CLUSTERS.schema.names)
        write_answers(name, QUESTIONS, clusters, LABELS[name])
        columns = artifacts.BEAMS.schema.names
        beams = pd.DataFrame(BEAMS[name], columns=columns[:4])
        beams = beams.assign(n_tokens=beams["beam"] + 2, entropy=beams["beam"] / 10 + 0.5)
        artifacts.write(beams, f"beams/{name}.parquet", artifacts.BEAMS)
    return tmp_path


def write_answers(name, questions, clusters, right):
    """CLUSTERS and ANSWERS of a checkpoint; `right` holds the labels that are no mistake."""
    artifacts.write(clusters, f"clusters/{name}.parquet", artifacts.CLUSTERS)
    labels = clusters[["question_id", "cluster"]].assign(
        label=clusters["question_id"].map(right).fillna("incorrect")
    )
    parts = [
        take_predictions(questions, clusters, split=split).assign(split=split)
        for split in ("train", "test")
    ]
    answers = label_predictions(pd.concat(parts), labels)[artifacts.ANSWERS.schema.names]
    artifacts.write(answers, f"answers/{name}.parquet", artifacts.ANSWERS)


def estimated(function, read="kmn", judged="kmn", **settings):
    """Return the script's confidences for an estimator, by checkpoint and question."""
    estimate_confidences(
        "questions.parquet",
        [f"beams/{name}.parquet" for name in read],
        [f"clusters/{name}.parquet" for name in read],
        [f"answers/{name}.parquet" for name in judged],
        "predictions.parquet",
        **{
            "dataset": "quiz",
            "estimator": "mine",
            "function": function,
            "checkpoints": list(read),
            "judged": list(judged),
            "earlier": ["j", "k"],
            "evaluation": ["m", "n"],
            "equivalence": {"backend": "lexical"},
            **settings,
        },
    )
    rows = artifacts.read("predictions.parquet", artifacts.PREDICTIONS)
    assert set(rows["estimator"]) == {"mine"}
    assert set(rows["train_dataset"]) == {"quiz"}
    right = {("m", "q1"), ("m", "q3"), ("n", "q2")}
    key = list(zip(rows["checkpoint"], rows["question_id"], strict=True))
    assert {k for k, correct in zip(key, rows["correct"], strict=True) if correct} == right
    assert sorted(key) == EVALUATED  # neither train nor excluded questions
    return dict(zip(key, rows["confidence"], strict=True))


def test_end_correct(paths):
    found = estimated("end_correct", judged="mn")
    assert {c: p for (c, _), p in found.items()} == {"m": 0.0, "n": 1.0}


def test_self_consistency(paths):
    expected = [0.7, 0.6, 0.4, 1.0, 0.2]  # 1 + 1e-12 is 1
    assert estimated("self_consistency", judged="mn") == dict(
        zip(EVALUATED, expected, strict=True)
    )


def test_self_consistency_copy(paths):
    # k has no answer to q3
    expected = [0.5, 0.9, 0.0, 0.5, 0.9]
    found = estimated("self_consistency_copy", judged="mn")
    assert found == dict(zip(EVALUATED, expected, strict=True))


def test_self_consistency_surrogate(paths):
    # everest is a member of Mount Everest; k did not say Bergen; nothing on q3
    expected = [0.5, 0.0, 0.0, 0.3, 0.9]
    found = estimated("self_consistency_surrogate", judged="mn", compares_answers=True)
    assert found == dict(zip(EVALUATED, expected, strict=True))


def test_sequence_probability(paths):
    expected = [np.exp(-1.0), np.exp(-1.5), 1.0, np.exp(-0.2), np.exp(-0.3)]
    found = estimated("sequence_probability", judged="mn")
    assert found == pytest.approx(dict(zip(EVALUATED, expected, strict=True)))


def test_verifier(paths):
    found = estimated("verifier", judged="mn", verified_path="verified.parquet")
    assert found == pytest.approx(dict(zip(EVALUATED, [0, 0.1, 0.2, 0.3, 0.4], strict=True)))


def test_posthoc_is_fitted_on_the_earlier_checkpoints_train_answers(paths):
    # One labelled answer: k's Rome, correct, at 0.8. Knots (0, 0), (0.8, 1), (1, 1):
    # 0.7 / 0.8, 0.6 / 0.8, 0.4 / 0.8, 1, 0.2 / 0.8
    found = estimated("self_consistency", posthoc="isotonic")
    expected = [0.875, 0.75, 0.5, 1.0, 0.25]
    assert found == pytest.approx(dict(zip(EVALUATED, expected, strict=True)))


def test_posthoc_of_a_verifier(paths):
    # k's answer is verified at 0.9: knots (0, 0), (0.9, 1), (1, 1)
    found = estimated("verifier", posthoc="isotonic", verified_path="verified.parquet")
    expected = [0, 1 / 9, 2 / 9, 3 / 9, 4 / 9]
    assert found == pytest.approx(dict(zip(EVALUATED, expected, strict=True)))


OWN = """
def brevity(answers, evidence):
    assert "correct" not in answers
    assert evidence.evaluation == ("m", "n")
    return {value}
"""


def test_ones_own_function(paths):
    (paths / "brevity.py").write_text(OWN.format(value='1 / answers["answer"].str.len()'))
    found = estimated("brevity.py", judged="mn")
    assert found["m", "q2"] == pytest.approx(1 / len("Bergen"))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("[0.5]", "returned values of shape \\(1,\\) for 5 answers"),
        ("[0.5, 0.5, 1.5, 0.5, 2]", "2 answers .* 'q3' at checkpoint 'm': 1.5"),
        ("[0.5, float('nan'), 0.5, 0.5, 0]", "1 answers .* 'q2' at checkpoint 'm': nan"),
    ],
)
def test_confidences_that_are_none_are_refused(paths, value, message):
    (paths / "brevity.py").write_text(OWN.format(value=value))
    with pytest.raises(ValueError, match=message):
        estimated("brevity.py", judged="mn")


# However an estimator goes about it, each answer gets one over its own length, or nothing does.
ALIGNED = [
    'answers.sort_values("answer")["answer"].str.len().rdiv(1)',
    'pd.concat([1 / g["answer"].str.len() for _, g in answers.groupby("question_id")])',
    '(answers.sort_values("answer", inplace=True), 1 / answers["answer"].str.len())[1]',
    '[1 / len(answer) for answer in answers["answer"]]',
    "(evidence.labelled.drop(evidence.labelled.index, inplace=True), "
    '1 / answers["answer"].str.len())[1]',
]
UNALIGNED = [
    ('answers.sort_values("answer", ignore_index=True)["probability"]', "without the index"),
    ('answers.set_index("question_id")["probability"]', "without the index"),
    ('answers["probability"].set_axis([5] * 5)', "without the index"),
    (
        '(answers.sort_values("answer", inplace=True), answers["probability"].to_numpy())[1]',
        "moved the rows",
    ),
    ('np.ma.masked_less(answers["answer"].str.len().rdiv(1), 0.2)', "masked array"),
    ('["much"] * len(answers)', "no array of numbers .*much"),
    ('answers["probability"].astype("Float64").mask([True] + [False] * 4)', "nan"),
]


@pytest.mark.parametrize("value", ALIGNED)
def test_a_series_is_taken_by_its_index(paths, value):
    (paths / "brevity.py").write_text("import pandas as pd\n" + OWN.format(value=value))
    said = {("m", "q1"): "everest.", ("m", "q2"): "Bergen", ("m", "q3"): "Lima"}
    said |= {("n", "q1"): "k2", ("n", "q2"): "OSLO"}
    found = estimated("brevity.py", judged="mn")
    assert found == pytest.approx({key: 1 / len(answer) for key, answer in said.items()})


@pytest.mark.parametrize(("value", "message"), UNALIGNED)
def test_confidences_of_which_nobody_knows_whose_they_are(paths, value, message):
    (paths / "brevity.py").write_text("import numpy as np\n" + OWN.format(value=value))
    with pytest.raises(ValueError, match=message):
        estimated("brevity.py", judged="mn")


def test_posthoc_is_fitted_on_the_labels_whatever_the_estimator_does_to_them(paths):
    plain = estimated("self_consistency", posthoc="isotonic")
    turned = 'evidence.labelled.__setitem__("correct", False)'
    value = f'({turned}, answers["probability"].clip(0, 1))[1]'
    (paths / "brevity.py").write_text(OWN.format(value=value))
    assert estimated("brevity.py", posthoc="isotonic") == plain


@pytest.mark.parametrize("posthoc", [None, "isotonic"])
def test_an_estimator_at_each_checkpoint_alone_says_the_same(paths, posthoc):
    own = OWN.format(value='1 / answers["answer"].str.len()')
    (paths / "brevity.py").write_text(
        own.replace('("m", "n")', "(answers.checkpoint.iloc[0],)")
    )
    judged = "kmn" if posthoc else "mn"
    scores_read = []
    for name in judged:
        split = "train" if name == "k" else "test"
        scores_read.append({"checkpoint": name, "answers": "train" if name == "k" else "own"})
        estimate_confidences(
            "questions.parquet",
            [f"beams/{name}.parquet"],
            [f"clusters/{name}.parquet"],
            [f"answers/{name}.parquet"],
            f"scores/{name}.parquet",
            dataset="quiz",
            estimator="mine",
            function="brevity.py",
            checkpoints=[name],
            judged=[name],
            earlier=[],
            evaluation=[name],
            equivalence={"backend": "lexical"},
            split=split,
        )
    gather_confidences(
        [f"scores/{name}.parquet" for name in judged],
        [f"answers/{name}.parquet" for name in judged],
        "gathered.parquet",
        estimator="mine",
        checkpoints=list(judged),
        evaluation=["m", "n"],
        scores_read=scores_read,
        uses=[
            {"checkpoint": c, "scored_at": c, "answers": "own", "answers_of": c} for c in "mn"
        ],
        copies=False,
        posthoc=posthoc,
    )
    (paths / "brevity.py").write_text(own)
    estimated("brevity.py", judged=judged, posthoc=posthoc)
    key = ["checkpoint", "question_id"]
    gathered, whole = (
        artifacts.read(path, artifacts.PREDICTIONS).sort_values(key, ignore_index=True)
        for path in ("gathered.parquet", "predictions.parquet")
    )
    pd.testing.assert_frame_equal(gathered, whole)


def test_a_posthoc_fit_that_fails_names_the_estimator(paths):
    expected = r"estimators.mine, posthoc platt: This calibrator is fitted to right and wrong"
    with pytest.raises(ValueError, match=expected):
        estimated("self_consistency", posthoc="platt")


def test_a_file_without_the_function_is_refused(paths):
    (paths / "brevity.py").write_text("def other(): ...\n")
    with pytest.raises(ValueError, match="define a function brevity"):
        estimated("brevity.py", judged="mn")


def test_linear_probe(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    questions = questions_table()
    artifacts.write(questions, "questions.parquet", artifacts.QUESTIONS)
    names = ["first", "second", "late"]
    for seed, name in enumerate(names):
        tiny_model(seed=seed).save_pretrained(name)
        tiny_tokenizer().save_pretrained(name)
        write_record(name, f"{name}.json")
        clusters = clusters_table((f"Norway{seed}", "Peru"))
        right = {f"q{i}": "correct" for i in range(24) if i % (seed + 2) == 0}
        write_answers(name, questions, clusters, right)
        artifacts.write(
            artifacts.empty(artifacts.BEAMS), f"beams/{name}.parquet", artifacts.BEAMS
        )
    estimate_confidences(
        "questions.parquet",
        [f"beams/{name}.parquet" for name in names],
        [f"clusters/{name}.parquet" for name in names],
        [f"answers/{name}.parquet" for name in names],
        "probe.parquet",
        dataset="atlas",
        estimator="linear_probe",
        function="linear_probe",
        checkpoints=names,
        judged=names,
        earlier=names[:2],
        evaluation=["late"],
        equivalence={"backend": "lexical"},
        checkpoint_paths=[f"{name}.json" for name in names],
    )
    predictions = artifacts.read("probe.parquet", artifacts.PREDICTIONS)

    def state(seed, question):
        """Of the first of two blocks, by the model's own list of hidden states."""
        ids = tiny_tokenizer()(f"Prompt: {question}\nAnswer: Norway{seed}")["input_ids"]
        with torch.inference_mode():
            model = tiny_model(seed=seed)
            ids = torch.tensor([ids], device=model.device)
            output = model(ids, output_hidden_states=True)
        return output.hidden_states[1][0, -1].cpu().numpy()

    asked = dict(questions[["question_id", "question"]].values)
    train = [(seed, i) for seed in (0, 1) for i in range(18)]
    probe = fit_probe(
        [state(seed, asked[f"q{i}"]) for seed, i in train],
        [i % (seed + 2) == 0 for seed, i in train],
    )
    tested = ["q18", "q19", "q21", "q22", "q23"]
    assert predictions["question_id"].tolist() == tested
    expected = probe_confidence(probe, [state(2, asked[name]) for name in tested])
    # Rounding of the states moves the place where the iterations of the fit stop.
    np.testing.assert_allclose(predictions["confidence"], expected, atol=1e-4)


# Of the prediction's best beam: everest. (-1, beam 1), Bergen (-1.5, beam 2), Lima (0, beam 0),
# k2 and OSLO (beam 0)
LOGPROBS = np.array([-1.0, -1.5, 0.0, -0.2, -0.3])
PLACES = np.array([1, 2, 0, 0, 0])


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        ("perplexity", np.exp(LOGPROBS / (PLACES + 2))),
        ("mean_token_entropy", np.exp(-(PLACES / 10 + 0.5))),
        # the predictions' clusters have 0.7, 0.6, 0.4, 1, 0.2
        ("cocoa", np.exp(LOGPROBS * (1 - np.array([0.7, 0.6, 0.4, 1, 0.2])))),
    ],
)
def test_estimators_of_the_predictions_own_tokens(paths, function, expected):
    found = estimated(function, judged="mn")
    assert list(found) == EVALUATED
    np.testing.assert_allclose(list(found.values()), expected)


# Samples of one question, and what each estimator makes of them by hand. Groups: Everest three
# times (two spellings), K2 once, and nothing once; each sample weighs 1/5.
SAMPLES = [" Mount Everest", " mount everest.", " K2", "", " Mount Everest"]
SAMPLE_LOGPROBS = np.log([0.3, 0.1, 0.2, 0.05, 0.3])
SHARES = np.array([3, 1, 1]) / 5
# Words: {mount, everest} twice, {mount, everest.}, {k2}, {}; of the first two 1/3 is common
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
    # ROUGE-L of the 10 pairs knows no punctuation: 1 between the three, else 0
    "lexical_similarity": 3 / 10,
}


@pytest.fixture
def samples(paths):
    """One test question, answered by m and n alike."""
    for name in "mn":
        rows = [
            ("q1", i, text, float(SAMPLE_LOGPROBS[i]), 2, 0.5) for i, text in enumerate(SAMPLES)
        ]
        beams = pd.DataFrame(rows, columns=artifacts.BEAMS.schema.names)
        artifacts.write(beams, f"beams/{name}.parquet", artifacts.BEAMS)
        clusters = [
            ("q1", 0, "Mount Everest", 0.6, ["Mount Everest", "mount everest."]),
            ("q1", 1, "K2", 0.2, ["K2"]),
        ]
        frame = pd.DataFrame(clusters, columns=artifacts.CLUSTERS.schema.names)
        write_answers(name, QUESTIONS, frame, {})


def of_samples(function, sampled=True, **settings):
    names = ["m", "n"]
    estimate_confidences(
        "questions.parquet",
        [f"beams/{name}.parquet" for name in names],
        [f"clusters/{name}.parquet" for name in names],
        [f"answers/{name}.parquet" for name in names],
        "predictions.parquet",
        dataset="quiz",
        estimator=function,
        function=function,
        checkpoints=names,
        judged=names,
        earlier=[],
        evaluation=names,
        equivalence={"backend": "lexical"},
        sampled=sampled,
        **settings,
    )
    return artifacts.read("predictions.parquet", artifacts.PREDICTIONS)["confidence"].tolist()


@pytest.mark.parametrize("function", BY_HAND)
def test_estimators_of_samples_by_hand(samples, function):
    assert of_samples(function) == pytest.approx([BY_HAND[function]] * 2)


def test_beams_weigh_by_their_probability(samples):
    """0.95 is the sum of the five; the clusters hold 0.7, 0.2 and 0.05 of it."""
    shares = np.array([0.7, 0.2, 0.05]) / 0.95
    found = of_samples("semantic_entropy", sampled=False)
    assert found == pytest.approx([np.exp(np.sum(shares * np.log(shares)))] * 2)


@pytest.mark.parametrize("function", ["eccentricity", "laplacian_eigenvalues"])
def test_estimators_of_graphs(samples, function):
    """By the plain normalised Laplacian of all five samples."""
    degree = SIMILAR.sum(axis=1)
    values, vectors = np.linalg.eigh(np.eye(5) - SIMILAR / np.sqrt(np.outer(degree, degree)))
    if function == "laplacian_eigenvalues":
        expected = 1 / np.clip(1 - values, 0, None).sum()
    else:
        kept = vectors[:, values < 0.9]
        expected = np.exp(-np.linalg.norm(kept - kept.mean(axis=0)))
    assert of_samples(function) == pytest.approx([expected] * 2)


PROMPT = "Prompt: {question}\nAnswer: {answer}\nTrue? "


def asked_text(row):
    return PROMPT.format(question=row.question, answer=row.answer)


def ask_tiny_models(function, right=(), **settings):
    """Confidences of `late`, and what the model says after each text, as a function."""
    questions, names = questions_table(), ["first", "late"]
    artifacts.write(questions, "questions.parquet", artifacts.QUESTIONS)
    for seed, name in enumerate(names):
        tiny_model(seed=seed).save_pretrained(name)
        tiny_tokenizer().save_pretrained(name)
        write_record(name, f"{name}.json")
        write_answers(name, questions, clusters_table(), {i: "correct" for i in right})
        empty = artifacts.empty(artifacts.BEAMS)
        artifacts.write(empty, f"beams/{name}.parquet", artifacts.BEAMS)
    estimate_confidences(
        "questions.parquet",
        *(
            [f"{kind}/{name}.parquet" for name in names]
            for kind in ("beams", "clusters", "answers")
        ),
        "asked.parquet",
        dataset="atlas",
        estimator=function,
        function=function,
        checkpoints=names,
        judged=names,
        earlier=["first"],
        evaluation=["late"],
        equivalence={"backend": "lexical"},
        checkpoint_paths=[f"{name}.json" for name in names],
        prompt=PROMPT,
        **settings,
    )
    found = artifacts.read("asked.parquet", artifacts.PREDICTIONS)
    rows = questions.assign(answer="Norway").set_index("question_id", drop=False)

    def probabilities(text):
        with torch.inference_mode():
            ids = tiny_tokenizer()(text)["input_ids"]
            model = tiny_model(seed=1)
            ids = torch.tensor([ids], device=model.device)
            return model(ids).logits[0, -1].softmax(-1).cpu()

    return found["confidence"].to_numpy(), rows.loc[found["question_id"]], rows, probabilities


def test_verbalised_without_an_adapter(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    confidence, asked, _, probabilities = ask_tiny_models("verbalised")
    digits = [tiny_tokenizer().encode(digit)[0] for digit in "0123456789"]
    for found, row in zip(confidence, asked.itertuples(), strict=True):
        p = probabilities(asked_text(row))[digits]
        assert found == pytest.approx((p @ torch.arange(10.0) / 9 / p.sum()).item(), abs=1e-4)


def test_p_true(tmp_path, monkeypatch):
    """The probability of the word, among the whole vocabulary."""
    monkeypatch.chdir(tmp_path)
    confidence, asked, _, probabilities = ask_tiny_models("p_true", words=["9", "0"])
    yes = tiny_tokenizer().encode("9")[0]
    for found, row in zip(confidence, asked.itertuples(), strict=True):
        assert found == pytest.approx(probabilities(asked_text(row))[yes].item(), abs=1e-5)


def test_p_true_after_examples(tmp_path, monkeypatch):
    """Right and wrong ones in turn, of the earlier checkpoint's answers to train questions."""
    monkeypatch.chdir(tmp_path)
    right = ["q1", "q4", "q20"]  # two train questions
    confidence, asked, rows, probabilities = ask_tiny_models(
        "p_true_few_shot", right, words=["9", "0"]
    )
    shown = [("q1", "9"), ("q0", "0"), ("q4", "9"), ("q2", "0"), ("q3", "0")]
    examples = "".join(f"{asked_text(rows.loc[name])}{word}\n\n" for name, word in shown)
    yes = tiny_tokenizer().encode("9")[0]
    for found, row in zip(confidence, asked.itertuples(), strict=True):
        expected = probabilities(examples + asked_text(row))[yes].item()
        assert found == pytest.approx(expected, abs=1e-5)


def test_the_prompt_of_p_true_is_that_of_lm_polygraph():
    text = (ROOT / "config/prompts/p_true.txt").read_text(encoding="utf-8")
    assert text.format(question="{q}", answer="{a}") == (
        "Question: {q}\n Possible answer:{a}\n "
        "Is the possible answer:\n (A) True\n (B) False\n The possible answer is:"
    )


def test_p_true_is_that_of_lm_polygraph_but_for_the_end_of_the_sequence():
    """lm-polygraph lets no answer end at once: its share goes to all other tokens."""
    model, tokenizer = tiny_model(seed=1).eval(), tiny_tokenizer()
    model.generation_config.eos_token_id = tokenizer.eos_token_id
    text = (ROOT / "config/prompts/p_true.txt").read_text(encoding="utf-8")
    said = text.format(question="Where is Oslo?", answer="Norway")
    ids = tokenizer(said)["input_ids"]
    ours = word_probability(model, [ids], word_token(tokenizer, "9"), batch_size=1).item()
    with torch.inference_mode():
        p = model(torch.tensor([ids], device=model.device)).logits[0, -1].double().softmax(-1)
    end = p[tokenizer.eos_token_id].item()
    theirs = np.exp(-polygraph.p_true(model, tokenizer, "Where is Oslo?", "Norway", "9"))
    assert theirs == pytest.approx(ours / (1 - end), rel=1e-5)
    assert theirs != pytest.approx(ours, rel=1e-5)
