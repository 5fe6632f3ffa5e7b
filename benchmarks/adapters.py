"""Speed of training adapters, against the obvious way.

Run from the root of the repository: ``python -m benchmarks.adapters``.

The obvious way loads the model again for every seed, runs a separate forward pass
for each candidate answer and computes the logits of the whole vocabulary at every
position. Times are processor times, which depend less on other jobs. Compare the
ratio, which is measured in one run.
"""

import random
import tempfile
import time

import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, Olmo3Config, Olmo3ForCausalLM

from benchmarks.results import Growth, Result, show
from persistcal.training.data import TrainingQuestion, learning_rate, question_batches
from persistcal.training.train import (
    Optimisation,
    Trainee,
    initialise,
    share_adapter,
    train_adapter,
)

N_QUESTIONS, BATCH_SIZE, LR = 64, 16, 1e-3
DIGITS = list(range(10, 20))
CONFIG = Olmo3Config(
    vocab_size=2048,
    hidden_size=128,
    intermediate_size=384,
    num_hidden_layers=4,
    num_attention_heads=4,
    num_key_value_heads=4,
    sliding_window=64,
    pad_token_id=0,
    bos_token_id=0,
    eos_token_id=0,
)


def make_data(n_questions, shared, n_own):
    """Questions with two answers: `shared` common tokens, about `n_own` of each answer."""
    draw = random.Random(17)
    tokens, questions = {}, {}
    for i in range(n_questions):
        beginning = [
            draw.randrange(20, 2048) for _ in range(draw.randint(shared - 5, shared + 5))
        ]
        prompts = (f"{i} a", f"{i} b")
        for prompt in prompts:
            ending = [
                draw.randrange(20, 2048) for _ in range(draw.randint(n_own - 4, n_own + 4))
            ]
            tokens[prompt] = beginning + ending
        questions[f"q{i}"] = TrainingQuestion(prompts, (0.7, 0.3), (1.0, 0.0))
    return tokens, questions


def train_obviously(folder, tokens, questions, seeds):
    """Return the last loss of each seed."""
    losses = []
    for seed in seeds:
        model = AutoModelForCausalLM.from_pretrained(folder)
        config = LoraConfig(r=8, lora_alpha=16, target_modules="all-linear")
        model = get_peft_model(model, config)
        parameters = {
            name.removeprefix("base_model.model.").removesuffix(".default.weight"): parameter
            for name, parameter in model.named_parameters()
            if parameter.requires_grad
        }
        initialise(parameters, seed)
        optimizer = torch.optim.AdamW(parameters.values(), lr=LR, weight_decay=0.01)
        batches = question_batches(
            list(questions), questions, seed=seed, epochs=1, batch_size=BATCH_SIZE
        )
        for step, ids in enumerate(batches):
            optimizer.param_groups[0]["lr"] = learning_rate(step, len(batches), LR)
            optimizer.zero_grad()
            total = 0.0
            for question in (questions[i] for i in ids):
                for prompt, weight, label in zip(*question, strict=True):
                    logits = model(torch.tensor([tokens[prompt]])).logits[0, -1, DIGITS]
                    confidence = logits.softmax(-1) @ torch.arange(10.0) / 9
                    loss = torch.nn.functional.binary_cross_entropy(
                        confidence, torch.tensor(label)
                    )
                    loss = loss * weight / BATCH_SIZE
                    loss.backward()
                    total += loss.item()
            torch.nn.utils.clip_grad_norm_(parameters.values(), 1.0)
            optimizer.step()
        losses.append(total)
    return losses


def train_ours(folder, tokens, questions, seeds):
    """Return the last loss of each seed."""
    models = {"checkpoint": AutoModelForCausalLM.from_pretrained(folder)}
    trainee = Trainee(models, share_adapter(models.values(), rank=8, alpha=16), tokens, DIGITS)
    losses = []
    for seed in seeds:
        history = train_adapter(
            trainee,
            {"checkpoint": questions},
            list(questions),
            Optimisation(lr=LR, epochs=1, batch_size=BATCH_SIZE, micro_batch=32),
            seed=seed,
        )
        losses.append(history["loss"].iloc[-1])
    return losses


def measure(quick):
    """Yield the ratio for short and long prompts, and how time grows with seeds."""
    torch.set_num_threads(1)
    torch.manual_seed(17)
    n_questions, seeds = (BATCH_SIZE, [17]) if quick else (N_QUESTIONS, [17, 18])

    def timed(train, tokens, questions, seeds):
        start = time.process_time()
        losses = train(folder, tokens, questions, seeds)
        return time.process_time() - start, losses

    with tempfile.TemporaryDirectory() as folder:
        Olmo3ForCausalLM(CONFIG).save_pretrained(folder)
        for name, shared, n_own in (("atlas, 22 tokens", 13, 9), ("paper, 60 tokens", 50, 10)):
            data = make_data(n_questions, shared, n_own)
            timed(train_ours, *data, seeds)  # warm up
            obvious, reference = timed(train_obviously, *data, seeds)
            adapters, losses = timed(train_ours, *data, seeds)
            yield Result(
                f"training, {name}",
                "the obvious way",
                adapters,
                obvious / adapters,
                max(abs(a - b) for a, b in zip(losses, reference, strict=True)),
                1e-4,
                how=f"{n_questions} questions of 2 candidates, {len(seeds)} seeds.",
            )
        numbers = [1, 2] if quick else [1, 2, 4, 8]
        spent = [timed(train_ours, *data, range(n))[0] for n in numbers]
        yield Growth("seeds", numbers, spent, "Training adapters.")


if __name__ == "__main__":
    show(measure)
