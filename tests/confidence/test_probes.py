"""Linear probes on hidden states, and ratings by another checkpoint, on tiny models."""

from functools import cache

import numpy as np
import pandas as pd
import pytest
import torch
from answer_tables import clusters_table, questions_table
from estimation import answers_of, ask_tiny_models, of_each, predictions
from records import write_record
from scipy.optimize import minimize
from tiny_models import save_tiny, tiny_model, tiny_tokenizer
from workflow_runs import ROOT

from persistcal.answers.decode import Search, generate_beams
from persistcal.confidence.estimators.probes import (
    PENALTY,
    best_split,
    choose_layer,
    fit_probe,
    probe_confidence,
)
from persistcal.models.load import load_model, load_tokenizer
from persistcal.models.prompts import FewShot
from persistcal.store import artifacts

torch.set_num_threads(1)


def test_a_probe_minimises_the_penalised_loss():
    """A slow minimiser on standardised states finds the same optimum."""
    rng = np.random.default_rng(0)
    states = rng.normal(3, 2, (200, 4)) * [1, 10, 0.1, 1]
    correct = (states[:, 0] + rng.normal(0, 1, 200) > 3).astype(int)
    standard = (states - states.mean(0)) / states.std(0)

    def loss(parameters):
        logit = standard @ parameters[:4] + parameters[4]
        fit = np.logaddexp(0, np.where(correct, -logit, logit)).sum()
        return fit + PENALTY / 2 * (parameters[:4] ** 2).sum()

    best = minimize(loss, np.zeros(5), tol=1e-10).x
    expected = 1 / (1 + np.exp(-(standard @ best[:4] + best[4])))
    confidence = probe_confidence(fit_probe(states, correct), states)
    np.testing.assert_allclose(confidence, expected, atol=1e-3)
    assert np.ptp(confidence) > 0.2


@pytest.mark.parametrize("label", [0, 1])
def test_a_probe_trained_on_one_label_always_predicts_it(label):
    assert set(probe_confidence(fit_probe(np.eye(3), [label] * 3), np.eye(3))) == {label}


def test_the_best_layer_is_chosen_on_every_fifth_question():
    """Questions are held out with all their answers."""
    rng = np.random.default_rng(1)
    questions = rng.permutation(np.repeat([f"q{i}" for i in range(60)], 2))
    label = rng.random(120) < 0.5
    states = rng.normal(0, 1, (3, 120, 4))
    states[1, :, 0] += 3 * label  # the second layer predicts well, the third one a little
    states[2, :, 0] += label
    order = list(dict.fromkeys(questions))
    held_out = np.array([order.index(name) % 5 == 4 for name in questions])
    errors = []
    for layer in states:
        probe = fit_probe(layer[~held_out], label[~held_out])
        errors.append(
            ((probe_confidence(probe, layer[held_out]) - label[held_out]) ** 2).mean()
        )
    assert choose_layer(states, label, questions) == np.argmin(errors) == 1
    # With wrong labels of the held-out questions 4, 9, …, the second layer is not the best.
    assert choose_layer(states, label ^ held_out, questions) != 1


def reference(seed, layer, train, tested, *, answered=True):
    """Return confidences of a probe on the states that transformers returns for single texts.

    `train` maps pairs (seed of a model, number of a question) to labels.
    """
    states = [states_of_text(*pair, answered)[layer] for pair in train]
    probe = fit_probe(states, list(train.values()))
    return probe_confidence(probe, [states_of_text(seed, i, answered)[layer] for i in tested])


@cache
def states_of_text(seed, i, answered):
    """Return the states after a question, or after its answer, of each layer of a model."""
    model = tiny_model(seed=seed)
    question = questions_table()["question"][i]
    text = f"Prompt: {question}\nAnswer:" + f" Norway{seed}" * answered
    ids = torch.tensor([tiny_tokenizer()(text)["input_ids"]], device=model.device)
    with torch.inference_mode():
        states = model(ids, output_hidden_states=True).hidden_states
    return [state[0, -1].cpu().numpy() for state in states]


ANSWERS = {"first": "Norway0", "second": "Norway1", "late": "Norway2"}
TEST_QUESTIONS = [18, 19, 21, 22, 23]
TRAIN = {(seed, i): i % (seed + 2) == 0 for seed in (0, 1) for i in range(18)}


def correct_questions(seed):
    return [f"q{i}" for i in range(0, 24, seed + 2)]


def test_a_linear_probe_reads_states_after_the_answer(tmp_path):
    rows = ask_tiny_models(tmp_path, "linear_probe", ANSWERS, correct_questions)
    assert rows["question_id"].tolist() == [f"q{i}" for i in TEST_QUESTIONS]
    # Rounding errors of the states change the iteration that stops the fit.
    expected = reference(2, 1, TRAIN, TEST_QUESTIONS)
    np.testing.assert_allclose(rows["confidence"], expected, atol=1e-4)


@pytest.mark.parametrize("layer", [1, 2, "best"])
def test_a_question_probe_reads_the_states_after_the_question(tmp_path, layer):
    """Layer 2 is the last layer, after the final norm."""
    rows = ask_tiny_models(tmp_path, "question_probe", ANSWERS, correct_questions, layer=layer)
    expected = [reference(2, n, TRAIN, TEST_QUESTIONS, answered=False) for n in (1, 2)]
    is_close = [np.allclose(rows["confidence"], values, atol=1e-4) for values in expected]
    assert is_close[layer - 1] if layer != "best" else sum(is_close) == 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"layer": 3}, r"estimators\.mine\.layer is 3, but .* layers 1 to"),
        ({"models": {"late": {"hidden": 64}}}, "first has 32 hidden units and late has 64; l"),
        (
            {"models": {"second": {"layers": 4}}, "layer": "best"},
            "first has 2 layers and second has 4; leave one",
        ),
    ],
)
def test_a_layer_that_some_model_lacks_is_refused(tmp_path, changes, message):
    with pytest.raises(ValueError, match=message):
        ask_tiny_models(tmp_path, "linear_probe", ANSWERS, correct_questions, **changes)


@pytest.mark.parametrize("function", ["linear_probe", "question_probe"])
def test_a_probe_whose_training_answers_are_all_wrong_is_refused(tmp_path, function):
    with pytest.raises(ValueError, match=r"estimators\.mine has nothing to learn: all 36"):
        ask_tiny_models(tmp_path, function, ANSWERS, lambda _: [])


@pytest.mark.parametrize("seed", range(3))
def test_the_best_split_minimises_the_squared_error(seed):
    """The grid of Kossen et al. contains no better split."""
    values = np.random.default_rng(seed).choice([0.0, 0.3, 0.5, 0.8, 1.1, 2.0], 40)

    def error(is_low):
        return sum(
            ((v - v.mean()) ** 2).sum() for v in (values[is_low], values[~is_low]) if len(v)
        )

    least = error(values <= best_split(values))
    assert least == pytest.approx(min(error(values <= value) for value in values))
    assert least <= min(error(values < x) for x in np.linspace(1e-10, 2, 100)) + 1e-9


def several_answers(seed):
    """Return two answers per question, with entropies that differ between questions."""
    ids = questions_table()["question_id"]
    gap = np.random.default_rng(seed).choice([0.1, 0.3, 4.0, 6.0], len(ids))
    first = pd.DataFrame({"question_id": ids, "beam": 0, "logprob": -1.0})
    first["text"] = f" Norway{seed}"
    second = first.assign(beam=1, text=" Peru", logprob=-1.0 - gap)
    beams = pd.concat([first, second]).sort_values(["question_id", "beam"])
    beams = beams.reindex(columns=artifacts.BEAMS.schema.names)
    # The odds of the two answers are exp(gap) to 1.
    p = 1 / (1 + np.exp(gap))
    entropy = -p * np.log(p) - (1 - p) * np.log(1 - p)
    return beams, clusters_table((f"Norway{seed}", "Peru")), entropy


@pytest.mark.parametrize("fit_at", ["training", "each"])
def test_an_entropy_probe_learns_which_train_questions_have_low_entropy(tmp_path, fit_at):
    """It is trained at the earlier checkpoints or at the evaluated one.

    At layer 2, because the window of layer 1 contains the answer only, which is constant.
    """
    tables_of = {name: several_answers(seed) for seed, name in enumerate(ANSWERS)}
    beams = {name: (beams, clusters) for name, (beams, clusters, _) in tables_of.items()}
    rows = ask_tiny_models(
        tmp_path, "entropy_probe", ANSWERS, lambda _: [], beams=beams, fit_at=fit_at, layer=2
    )
    names, seeds = list(ANSWERS), (0, 1) if fit_at == "training" else (2,)
    entropies = {(seed, i): tables_of[names[seed]][2][i] for seed in seeds for i in range(18)}
    threshold = best_split(list(entropies.values()))
    is_low = {pair: entropy <= threshold for pair, entropy in entropies.items()}
    expected = reference(2, 2, is_low, TEST_QUESTIONS)
    np.testing.assert_allclose(rows["confidence"], expected, atol=1e-4)
    assert np.ptp(expected) > 0.05


# A rater --------------------------------------------------------------------------------

EXAMPLES = pd.DataFrame({"question": ["Is it Oslo?"], "references": [["Norway"]]})
PREFIX = "Prompt: Is it Oslo?\nAnswer: Norway\n\n"


def rated(questions, records, beams, rater):
    """Return the rater's confidences in the best answers of the second checkpoint."""
    clusters = beams[beams["beam"] == 0].assign(cluster=0, probability=1.0)
    clusters["answer"] = clusters["text"].str.strip()
    clusters["members"] = [[answer] for answer in clusters["answer"]]
    names = artifacts.CLUSTERS.schema.names
    answers = answers_of(questions, clusters[names], [])
    example = questions.iloc[:1].assign(split="few_shot", question_id="shown")
    asked = pd.concat([questions, example.assign(**EXAMPLES)], ignore_index=True)
    tables = (asked, *(of_each({"b": t}) for t in (beams, clusters[names], answers)))
    setup = {"function": "base_probability", "earlier": [], "evaluation": ["b"], "rater": rater}
    rows = predictions(tables, "b", "b", records=records, few_shot=FewShot(1), **setup)
    return dict(zip(rows["question_id"], rows["confidence"], strict=True))


def test_another_checkpoint_rates_an_answer_by_the_mean_of_its_token_probabilities(tmp_path):
    """Expected: a forward pass per token. The last answer was cut off before its end token."""
    records = []
    for seed, name in enumerate("ba"):
        save_tiny(tmp_path / name, seed=seed)
        records.append(write_record(tmp_path / name, tmp_path / f"{name}.json"))
    questions, tokenizer, model = questions_table(0, 3), tiny_tokenizer(), tiny_model(seed=1)
    texts = [" Norway", "Sweden", " the kingdom of Norway"]
    n_tokens = [len(tokenizer(text)["input_ids"]) + (i < 2) for i, text in enumerate(texts)]
    beams = questions[["question_id"]].assign(beam=0, text=texts, logprob=-1.0)
    beams = beams.assign(n_tokens=n_tokens).reindex(columns=artifacts.BEAMS.schema.names)
    expected = {}
    ends = [tokenizer.eos_token_id]
    ends += [i for i in range(len(tokenizer)) if "\n" in tokenizer.decode([i])]
    for row in beams.itertuples():
        question = questions["question"][row.Index]
        ids = tokenizer(f"{PREFIX}Prompt: {question}\nAnswer:")["input_ids"]
        logprobs = []
        for token in [*tokenizer(row.text)["input_ids"], None]:
            with torch.inference_mode():
                logits = model(torch.tensor([ids], device=model.device)).logits[0, -1]
            p = logits.double().log_softmax(-1)
            logprobs.append((p[ends].max() if token is None else p[token]).item())
            ids = [*ids, token]
        expected[row.question_id] = np.exp(np.mean(logprobs[: row.n_tokens]))
    assert rated(questions, records, beams, "a") == pytest.approx(expected, rel=1e-4)


def test_a_checkpoint_rates_its_own_answers_by_their_perplexity(tmp_path):
    shipped = str(ROOT / "resources/atlas/p100")
    asked = [f"Which country is {city} in?" for city in ("Lima", "Oslo", "Kyoto", "Lagos")]
    questions = questions_table(0, 4).assign(question=asked)
    suffixes = [f"Prompt: {text}\nAnswer:" for text in asked]
    model, tokenizer = load_model(shipped, device="cpu"), load_tokenizer(shipped)
    decoded = generate_beams(model, tokenizer, PREFIX, suffixes, Search(3, 16))
    rows = [
        (name, number, *beam[:7])
        for name, answer_beams in zip(questions["question_id"], decoded, strict=True)
        for number, beam in enumerate(answer_beams)
    ]
    names = artifacts.BEAMS.schema.names
    beams = pd.DataFrame(rows, columns=names[:9]).reindex(columns=names)
    best = beams[beams["beam"] == 0].set_index("question_id")
    perplexity = np.exp(best["logprob"] / best["n_tokens"]).to_dict()
    records = [write_record(shipped, tmp_path / "b.json")]
    assert rated(questions, records, beams, "b") == pytest.approx(perplexity, rel=1e-4)
