"""Linear probes on hidden states, and a rater, on tiny models and against slow references."""

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
    """Against a slow minimiser, on standardised units."""
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
def test_a_probe_that_saw_one_label_knows_no_other(label):
    assert set(probe_confidence(fit_probe(np.eye(3), [label] * 3), np.eye(3))) == {label}


def test_the_layer_that_predicts_held_out_questions_best_is_chosen():
    """Slowly: every fifth question is held out, whatever the number of its answers."""
    rng = np.random.default_rng(1)
    questions = rng.permutation(np.repeat([f"q{i}" for i in range(60)], 2))
    label = rng.random(120) < 0.5
    states = rng.normal(0, 1, (3, 120, 4))
    states[1, :, 0] += 3 * label  # the second layer knows, the third one a little
    states[2, :, 0] += label
    met = list(dict.fromkeys(questions))
    held = np.array([met.index(name) % 5 == 4 for name in questions])
    errors = []
    for layer in states:
        probe = fit_probe(layer[~held], label[~held])
        errors.append(((probe_confidence(probe, layer[held]) - label[held]) ** 2).mean())
    assert choose_layer(states, label, questions) == np.argmin(errors) == 1
    # Questions 4, 9, … alone decide: where these labels are turned, noise is better.
    assert choose_layer(states, label ^ held, questions) != 1


def reference(seed, layer, train, tested, *, answered=True):
    """Confidences of a probe on states at the end of texts, by transformers' own list.

    `train` are pairs of a model's seed and a question's number, with their labels.
    """
    models = [tiny_model(seed=seed) for seed in range(3)]
    names = questions_table()["question"]

    def state(seed, i):
        model = models[seed]
        text = f"Prompt: {names[i]}\nAnswer:" + f" Norway{seed}" * answered
        ids = torch.tensor([tiny_tokenizer()(text)["input_ids"]], device=model.device)
        with torch.inference_mode():
            states = model(ids, output_hidden_states=True).hidden_states
        return states[layer][0, -1].cpu().numpy()

    probe = fit_probe([state(*pair) for pair in train], list(train.values()))
    return probe_confidence(probe, [state(seed, i) for i in tested])


SAID = {"first": "Norway0", "second": "Norway1", "late": "Norway2"}
TESTED = [18, 19, 21, 22, 23]
TRAIN = {(seed, i): i % (seed + 2) == 0 for seed in (0, 1) for i in range(18)}


def right(seed):
    return [f"q{i}" for i in range(0, 24, seed + 2)]


def test_linear_probe(tmp_path):
    """It reads the first of two blocks."""
    found = ask_tiny_models(tmp_path, "linear_probe", SAID, right)
    assert found["question_id"].tolist() == [f"q{i}" for i in TESTED]
    # Rounding of the states moves the place where the iterations of the fit stop.
    expected = reference(2, 1, TRAIN, TESTED)
    np.testing.assert_allclose(found["confidence"], expected, atol=1e-4)


@pytest.mark.parametrize("layer", [1, 2, "best"])
def test_question_probe(tmp_path, layer):
    """Layer 2 is the last one, after the final norm."""
    found = ask_tiny_models(tmp_path, "question_probe", SAID, right, layer=layer)
    expected = [reference(2, n, TRAIN, TESTED, answered=False) for n in (1, 2)]
    close = [np.allclose(found["confidence"], one, atol=1e-4) for one in expected]
    assert close[layer - 1] if layer != "best" else sum(close) == 1


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
def test_one_probe_reads_layers_of_one_width_that_all_models_have(tmp_path, changes, message):
    with pytest.raises(ValueError, match=message):
        ask_tiny_models(tmp_path, "linear_probe", SAID, right, **changes)


@pytest.mark.parametrize("function", ["linear_probe", "question_probe"])
def test_a_probe_of_one_label_is_refused(tmp_path, function):
    with pytest.raises(ValueError, match=r"estimators\.mine has nothing to learn: all 36"):
        ask_tiny_models(tmp_path, function, SAID, lambda _: [])


@pytest.mark.parametrize("seed", range(3))
def test_the_best_split_has_the_least_squared_error(seed):
    """Of all splits between different values, and no worse than the grid of Kossen et al."""
    values = np.random.default_rng(seed).choice([0.0, 0.3, 0.5, 0.8, 1.1, 2.0], 40)

    def error(low):
        return sum(((v - v.mean()) ** 2).sum() for v in (values[low], values[~low]) if len(v))

    found = error(values <= best_split(values))
    assert found == pytest.approx(min(error(values <= value) for value in values))
    assert found <= min(error(values < x) for x in np.linspace(1e-10, 2, 100)) + 1e-9


def several_answers(seed):
    """Two answers to each question: the entropy differs between questions."""
    ids = questions_table()["question_id"]
    gap = np.random.default_rng(seed).choice([0.1, 0.3, 4.0, 6.0], len(ids))
    first = pd.DataFrame({"question_id": ids, "beam": 0, "logprob": -1.0})
    first["text"] = f" Norway{seed}"
    other = first.assign(beam=1, text=" Peru", logprob=-1.0 - gap)
    beams = pd.concat([first, other]).sort_values(["question_id", "beam"])
    beams = beams.reindex(columns=artifacts.BEAMS.schema.names)
    # Of two answers, odds exp(gap) to 1
    p = 1 / (1 + np.exp(gap))
    entropy = -p * np.log(p) - (1 - p) * np.log(1 - p)
    return beams, clusters_table((f"Norway{seed}", "Peru")), entropy


@pytest.mark.parametrize("fit_at", ["training", "each"])
def test_entropy_probe(tmp_path, fit_at):
    """It learns which train questions have low entropy, here or at the earlier checkpoints.

    At layer 2: the window of layer 1 sees the answer alone, which is always the same.
    """
    made = {name: several_answers(seed) for seed, name in enumerate(SAID)}
    beams = {name: (beams, clusters) for name, (beams, clusters, _) in made.items()}
    found = ask_tiny_models(
        tmp_path, "entropy_probe", SAID, lambda _: [], beams=beams, fit_at=fit_at, layer=2
    )
    names, seeds = list(SAID), (0, 1) if fit_at == "training" else (2,)
    entropies = {(seed, i): made[names[seed]][2][i] for seed in seeds for i in range(18)}
    threshold = best_split(list(entropies.values()))
    low = {pair: entropy <= threshold for pair, entropy in entropies.items()}
    expected = reference(2, 2, low, TESTED)
    np.testing.assert_allclose(found["confidence"], expected, atol=1e-4)
    assert np.ptp(expected) > 0.05


# A rater --------------------------------------------------------------------------------

EXAMPLES = pd.DataFrame({"question": ["Is it Oslo?"], "references": [["Norway"]]})
PREFIX = "Prompt: Is it Oslo?\nAnswer: Norway\n\n"


def rated(questions, records, beams, rater):
    """Confidences of the second checkpoint's best answers, by the rater."""
    clusters = beams[beams["beam"] == 0].assign(cluster=0, probability=1.0)
    clusters["answer"] = clusters["text"].str.strip()
    clusters["members"] = [[answer] for answer in clusters["answer"]]
    names = artifacts.CLUSTERS.schema.names
    answers = answers_of(questions, clusters[names], [])
    example = questions.iloc[:1].assign(split="few_shot", question_id="shown")
    asked = pd.concat([questions, example.assign(**EXAMPLES)], ignore_index=True)
    tables = (asked, *(of_each({"b": t}) for t in (beams, clusters[names], answers)))
    how = {"function": "base_probability", "earlier": [], "evaluation": ["b"], "rater": rater}
    found = predictions(tables, "b", "b", records=records, few_shot=FewShot(1), **how)
    return dict(zip(found["question_id"], found["confidence"], strict=True))


def test_another_checkpoint_rates_an_answer_by_its_tokens(tmp_path):
    """One token at a time; the last answer was cut off after all its tokens."""
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


def test_a_checkpoint_that_rates_its_own_answers_gives_their_perplexity(tmp_path):
    shipped = str(ROOT / "resources/atlas/p100")
    asked = [f"Which country is {city} in?" for city in ("Lima", "Oslo", "Kyoto", "Lagos")]
    questions = questions_table(0, 4).assign(question=asked)
    suffixes = [f"Prompt: {text}\nAnswer:" for text in asked]
    model, tokenizer = load_model(shipped, device="cpu"), load_tokenizer(shipped)
    decoded = generate_beams(model, tokenizer, PREFIX, suffixes, Search(3, 16))
    rows = [
        (name, number, *beam)
        for name, found in zip(questions["question_id"], decoded, strict=True)
        for number, beam in enumerate(found)
    ]
    names = artifacts.BEAMS.schema.names
    beams = pd.DataFrame(rows, columns=names[:9]).reindex(columns=names)
    best = beams[beams["beam"] == 0].set_index("question_id")
    perplexity = np.exp(best["logprob"] / best["n_tokens"]).to_dict()
    records = [write_record(shipped, tmp_path / "b.json")]
    assert rated(questions, records, beams, "b") == pytest.approx(perplexity, rel=1e-4)
