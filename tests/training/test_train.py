"""Training of one adapter on several checkpoints, against slow and simple computations."""

import copy
import json
import math

import numpy as np
import pytest
import torch
from peft import LoraConfig, PeftModel, get_peft_model
from tiny_models import TEMPLATE, tiny_model, tiny_tokenizer

from persistcal.confidence.verbalised import (
    confidence_of,
    digit_logits,
    digit_tokens,
    score_answers,
)
from persistcal.models.prompts import confidence_prompt
from persistcal.training.data import TrainingQuestion
from persistcal.training.train import (
    Optimisation,
    accumulate_gradients,
    adapter_files,
    fitting_micro_batch,
    initialise,
    prepare,
    share_adapter,
    train_adapter,
)

pytestmark = pytest.mark.slow

torch.set_num_threads(1)
SIZE = {"rank": 4, "alpha": 8}
TOKENIZER = tiny_tokenizer()
DIGITS = digit_tokens(TOKENIZER)


def prepare_trainee(models, data, **settings):
    models = models if isinstance(models, dict) else {"a": models}
    return prepare(models, TOKENIZER, [data], **SIZE, **settings)


def files_of(trainee):
    return adapter_files(trainee.adapter, **SIZE, base_model="some/model")


def toy_data(n, seed=0):
    """Return questions of several lengths; the answer "yes" is correct."""
    rng = np.random.default_rng(seed)
    questions = {}
    for i in range(n):
        question = "Is it " + "so " * rng.integers(1, 9) + f"{i}?"
        answers = ["yes", "no indeed"] if rng.random() < 0.5 else ["no indeed", "yes"]
        weight = float(rng.uniform(0.5, 1))
        questions[f"q{i}"] = TrainingQuestion(
            tuple(confidence_prompt(TEMPLATE, question, answer) for answer in answers),
            (weight, 1 - weight),
            tuple(float(answer == "yes") for answer in answers),
        )
    return questions


def naive_confidence(model, prompt):
    ids = torch.tensor([TOKENIZER(prompt)["input_ids"]], device=model.device)
    exponents = model(ids).logits[0, -1][DIGITS].exp()
    return sum(d / 9 * e for d, e in enumerate(exponents)) / sum(exponents)


def naive_loss(model, questions):
    """Compute the loss by a forward pass over the whole vocabulary per candidate."""
    total = 0.0
    for question in questions:
        for prompt, weight, label in zip(*question, strict=True):
            p = naive_confidence(model, prompt)
            total = total - weight * (label * p.log() + (1 - label) * (1 - p).log())
    return total


def randomise_adapter(trainee, seed=5):
    """Add noise to an adapter, because A has no gradient while B is zero."""
    initialise(trainee.adapter, seed)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in trainee.adapter.values():
            noise = torch.randn(parameter.shape, generator=generator)
            parameter += 0.1 * noise.to(parameter.device)
    return {name: p.detach().clone() for name, p in trainee.adapter.items()}


def separate_gradient(model, questions, values):
    """Return loss and gradient of one checkpoint with a separate adapter by peft."""
    config = LoraConfig(r=4, lora_alpha=8, target_modules="all-linear", task_type="CAUSAL_LM")
    adapted = get_peft_model(copy.deepcopy(model), config)
    parameters = {
        name.removeprefix("base_model.model.").removesuffix(".default.weight"): parameter
        for name, parameter in adapted.named_parameters()
        if parameter.requires_grad
    }
    assert set(parameters) == set(values)
    for name, parameter in parameters.items():
        parameter.data.copy_(values[name])
    loss = naive_loss(adapted, questions)
    loss.backward()
    return loss.item(), {name: parameter.grad for name, parameter in parameters.items()}


@pytest.mark.parametrize("kind", ["olmo3", "llama"])
def test_the_gradient_is_the_sum_over_the_checkpoints(kind):
    names = ["early", "middle", "late"]
    models = {name: tiny_model(kind, seed) for seed, name in enumerate(names)}
    plain = copy.deepcopy(models)
    batch = {name: list(toy_data(3, seed).values()) for seed, name in enumerate(names)}
    source = {str((n, i)): q for n in names for i, q in enumerate(batch[n])}
    trainee = prepare_trainee(models, source)
    values = randomise_adapter(trainee)
    losses = accumulate_gradients(trainee, batch, divisor=48, micro_batch=32)
    separate = {name: separate_gradient(plain[name], batch[name], values) for name in names}
    for name, (loss, _) in separate.items():
        assert losses[name] == pytest.approx(loss / 48, rel=1e-5)
    for key, parameter in trainee.adapter.items():
        total = sum(gradients[key] for _, gradients in separate.values()) / 48
        torch.testing.assert_close(parameter.grad, total, rtol=1e-3, atol=1e-6)
    assert max(p.grad.abs().max() for p in trainee.adapter.values()) > 1e-3


@pytest.mark.parametrize("head", ["float32", "model"])
def test_the_loss_is_computed_from_the_logits_of_the_head(head):
    model, data = tiny_model(dtype=torch.bfloat16), toy_data(3)
    expected = 0.0
    trainee = prepare_trainee(model, data, head=head)
    for question in data.values():
        with torch.inference_mode():
            prompts = [trainee.tokens[prompt] for prompt in question.prompts]
            logits = digit_logits(model, prompts, DIGITS)
        if head == "model":  # the model's head rounds its logits
            logits = logits.bfloat16().float()
        p = confidence_of(logits).tolist()
        for confidence, weight, label in zip(p, *question[1:], strict=True):
            expected -= weight * math.log(confidence if label else 1 - confidence)
    batch = {"a": list(data.values())}
    losses = accumulate_gradients(trainee, batch, divisor=1, micro_batch=2)
    assert losses["a"] == pytest.approx(expected, rel=1e-3 if head == "model" else 1e-5)


def test_micro_batches_do_not_change_the_gradient():
    data, results = toy_data(7), []
    trainee = prepare_trainee(tiny_model(), data)
    randomise_adapter(trainee)
    batch = {"a": list(data.values())}
    for size in (8, 1, 3, 100):
        trainee.adapter.clear_gradients()
        losses = accumulate_gradients(trainee, batch, divisor=16, micro_batch=size)
        gradients = {k: p.grad.clone() for k, p in trainee.adapter.items()}
        results.append((losses["a"], gradients))
    for loss, gradients in results[1:]:
        assert results[0][0] == pytest.approx(loss, rel=1e-5)
        torch.testing.assert_close(results[0][1], gradients, rtol=1e-3, atol=1e-6)


def test_the_loss_is_a_mean_even_with_a_partial_batch_and_a_missing_answer():
    """A batch of 16 has only three questions, and checkpoint b has answered two of them."""
    data = toy_data(3)
    data_by_checkpoint = {"a": data, "b": {name: data[name] for name in ("q0", "q2")}}
    models = {"a": tiny_model(seed=1), "b": tiny_model(seed=2)}
    with torch.no_grad():
        expected = sum(  # B is zero at the first step, so this is the loss of the base models
            naive_loss(models[name], data_by_checkpoint[name].values()).item()
            for name in models
        )
    trainee = prepare_trainee(models, data)
    history = train(trainee, data_by_checkpoint, ids=["q0", "q1", "q2", "q3"], epochs=1)
    # The mean over two checkpoints and over the three questions with answers; q3 has none.
    assert history["loss"].tolist() == pytest.approx([expected / 2 / 3], rel=1e-5)


def train(trainee, data_by_checkpoint, *, ids=None, seed=17, epochs=2, lr=1e-2, micro_batch=32):
    ids = ids or list(next(iter(data_by_checkpoint.values())))
    optimisation = Optimisation(lr, epochs, batch_size=16, micro_batch=micro_batch)
    return train_adapter(trainee, data_by_checkpoint, ids, optimisation, seed=seed)


def test_on_a_cpu_auto_trains_as_with_32_candidates_at_once():
    data = toy_data(20)
    adapters = []
    for micro_batch in ("auto", 32):
        trainee = prepare_trainee(tiny_model(), data)
        assert fitting_micro_batch(trainee) == 32
        train(trainee, {"a": data}, epochs=1, micro_batch=micro_batch)
        adapters.append({name: p.detach().clone() for name, p in trainee.adapter.items()})
    torch.testing.assert_close(*adapters, rtol=0, atol=0)


def test_a_step_is_adamw_on_the_clipped_gradient():
    data = toy_data(20)
    model = tiny_model()
    with torch.no_grad():
        model.lm_head.weight *= 4  # makes gradients longer than 1
    trainee = prepare_trainee(model, data)
    order = np.random.default_rng(17).permutation(20)  # a step of 16 and a step of 4
    initialise(trainee.adapter, 17)
    moments = {name: (0.0, 0.0) for name in trainee.adapter}
    for step, chosen in enumerate((order[:16], order[16:])):
        for parameter in trainee.adapter.values():
            parameter.grad = None
        batch = {"a": [data[f"q{i}"] for i in chosen]}
        accumulate_gradients(trainee, batch, divisor=16, micro_batch=32)
        gradients = {name: p.grad for name, p in trainee.adapter.items()}
        norm = math.sqrt(sum(float(g.square().sum()) for g in gradients.values()))
        assert norm > 1 or step == 1
        lr = 1e-2  # the first ceil(0.8 * 2) = 2 steps are constant
        with torch.no_grad():
            for name, parameter in trainee.adapter.items():
                gradient = gradients[name] * min(1.0, 1 / (norm + 1e-6))
                first = 0.9 * moments[name][0] + 0.1 * gradient
                second = 0.999 * moments[name][1] + 0.001 * gradient**2
                moments[name] = first, second
                first = first / (1 - 0.9 ** (step + 1))
                second = second / (1 - 0.999 ** (step + 1))
                parameter.mul_(1 - lr * 0.01)
                parameter -= lr * first / (second.sqrt() + 1e-8)

    expected = {name: p.detach().clone() for name, p in trainee.adapter.items()}
    assert train(trainee, {"a": data}, epochs=1)["lr"].tolist() == [1e-2, 1e-2]
    trained = {name: p.detach() for name, p in trainee.adapter.items()}
    torch.testing.assert_close(trained, expected, rtol=1e-4, atol=1e-6)


def test_models_share_one_adapter_and_train_nothing_else():
    models = [tiny_model(seed=seed) for seed in range(3)]
    adapter = share_adapter(models, **SIZE)
    # 7 linear layers in each of 2 blocks, without the LM head
    assert len(adapter) == 2 * 7 * 2
    for model in models:
        trained = {id(p) for p in model.parameters() if p.requires_grad}
        assert trained == {id(p) for p in adapter.values()}
    assert not any("lm_head" in name or "embed" in name for name in adapter)


def test_models_of_different_depth_are_refused():
    models = [tiny_model(), tiny_model(layers=4)]
    with pytest.raises(ValueError, match=r"Checkpoint 2 .* linear layers"):
        share_adapter(models, **SIZE)


def test_the_initialisation_depends_only_on_the_seed():
    adapters = []
    for model_seeds in ([0], [1, 2]):
        adapter = share_adapter([tiny_model(seed=s) for s in model_seeds], **SIZE)
        torch.manual_seed(model_seeds[0])
        initialise(adapter, 17)
        adapters.append({name: p.detach().clone() for name, p in adapter.items()})
    torch.testing.assert_close(*adapters, rtol=0, atol=0)

    initialise(adapter, 18)
    for name, parameter in adapter.items():
        if name.endswith("lora_B"):
            assert not parameter.any()
            continue
        bound = 1 / math.sqrt(parameter.shape[1])
        assert not torch.equal(parameter, adapters[0][name])
        assert 0.8 * bound < parameter.abs().max() <= bound
        # A uniform distribution has the standard deviation bound / sqrt(3); 4 * 32 draws.
        assert parameter.std().item() == pytest.approx(bound / math.sqrt(3), rel=0.2)

    distinct = {tuple(p.flatten()[:4].tolist()) for n, p in adapter.items() if n.endswith("A")}
    assert len(distinct) == 14  # no two layers share their draws


@pytest.mark.parametrize(
    ("kind", "dtype"), [("llama", torch.float32), ("olmo3", torch.bfloat16)]
)
def test_training_lowers_the_loss_and_does_not_change_the_models(kind, dtype):
    models = {"a": tiny_model(kind, 1, dtype=dtype), "b": tiny_model(kind, 2, dtype=dtype)}
    original = {name: copy.deepcopy(model.state_dict()) for name, model in models.items()}
    data = toy_data(32)
    trainee = prepare_trainee(models, data)
    history = train(trainee, {"a": data, "b": data}, epochs=8, lr=1e-2)
    assert history["loss"].iloc[-3:].mean() < 0.3 * history["loss"].iloc[:3].mean()
    assert history["step"].tolist() == list(range(16))
    assert all(p.dtype == torch.float32 for p in trainee.adapter.values())
    for name, model in models.items():
        weights = {
            key.replace(".base_layer", ""): value
            for key, value in model.state_dict().items()
            if "lora_" not in key
        }
        assert set(weights) == set(original[name])
        assert all(torch.equal(weights[key], value) for key, value in original[name].items())


def test_training_repeats_exactly_and_differs_between_seeds():
    data = toy_data(20)
    files = []
    for state, seeds in ((1, [17]), (2, [18, 17])):
        torch.manual_seed(state)
        models = {"a": tiny_model(seed=1), "b": tiny_model(seed=2)}
        trainee = prepare_trainee(models, data)
        for seed in seeds:  # the first seed must not change the second
            train(trainee, {"a": data, "b": data}, seed=seed)
            files.append(files_of(trainee))
    assert files[0] == files[2]
    weights = "adapter_model.safetensors"
    assert files[0][weights] != files[1][weights]
    config = json.loads(files[0]["adapter_config.json"])
    assert config["base_model_name_or_path"] == "some/model"
    assert config["target_modules"] == sorted(config["target_modules"])


def test_a_saved_adapter_gives_the_same_confidences_in_peft(tmp_path):
    data = toy_data(16)
    trainee = prepare_trainee(tiny_model(), data)
    train(trainee, {"a": data})
    for name, content in files_of(trainee).items():
        (tmp_path / name).write_bytes(content)
    prompts = [prompt for question in data.values() for prompt in question.prompts]
    tokens = TOKENIZER(prompts)["input_ids"]
    confidences = score_answers(trainee.models["a"], tokens, DIGITS, batch_size=5)
    untrained = score_answers(tiny_model(), tokens, DIGITS, batch_size=5)
    loaded = PeftModel.from_pretrained(tiny_model(), tmp_path)
    with torch.inference_mode():
        expected = [naive_confidence(loaded, prompt).item() for prompt in prompts]
    np.testing.assert_allclose(confidences, expected, atol=1e-5)
    assert np.abs(untrained - confidences).max() > 0.05


def test_training_without_any_answer_is_refused():
    with pytest.raises(ValueError, match="No training question has an answer"):
        prepare_trainee(tiny_model(), {})
