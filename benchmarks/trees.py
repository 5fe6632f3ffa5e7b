"""Speed of training steps and scoring on trees of prompts.

Run from the root of the repository: ``python -m benchmarks.trees``. SmolLM2-135M, or a
random model of atlas' size where `reproduce.real_lab` does not find it, with an adapter
reads the paper's confidence prompt about cities on one thread, in three ways: each
candidate alone; packed with the other candidates to its question, as was done before
trees; and as trees over questions. Times are medians of turns one after the other, of the
processor.

The floor is the matrix products of the tokens that cannot be shared or left out, at the
rate of one large product.
"""

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from benchmarks.decoding import atlas_sized
from benchmarks.results import Result, show
from benchmarks.smollm2 import city_questions, product_rate
from persistcal.confidence.verbalised import confidence_of, digit_logits, digit_tokens
from persistcal.models.packing import make_tree
from persistcal.models.prompts import confidence_prompt
from persistcal.training.train import initialise, share_adapter
from reproduce.real_lab import is_installed, load_smollm2

N_SCORED, N_TRAINED, N_TURNS = 64, 16, 3
Prompts = Sequence[Sequence[int]]


def score_alone(model, digits, questions: Sequence[Prompts]) -> Tensor:
    """Return logits with a forward pass for each prompt, of the whole vocabulary."""
    prompts = [torch.tensor([p], device=model.device) for row in questions for p in row]
    return torch.stack([model(ids).logits[0, -1, digits] for ids in prompts])


def by_question(model, digits, questions: Sequence[Prompts]) -> Tensor:
    """Return logits with a row for each question, padded to the longest one."""
    trees = [make_tree(sorted(row)) for row in questions]
    length = max(len(tree.token_ids) for tree in trees)
    fill = [[0] * (length - len(tree.token_ids)) for tree in trees]
    until = torch.tensor(
        [t.until + [length] * len(f) for t, f in zip(trees, fill, strict=True)]
    )
    place = torch.arange(length)
    visible = (place <= place[:, None]) & (place[:, None] < until[:, None, :])
    hidden = model.get_decoder()(
        input_ids=torch.tensor([t.token_ids + f for t, f in zip(trees, fill, strict=True)]),
        position_ids=torch.tensor([t.positions + f for t, f in zip(trees, fill, strict=True)]),
        attention_mask=visible[:, None] if len(questions[0]) > 1 else None,
        use_cache=False,
    ).last_hidden_state
    pairs = zip(trees, questions, strict=True)
    ends = [tree.ends[sorted(row).index(prompt)] for tree, row in pairs for prompt in row]
    rows = [i for i, row in enumerate(questions) for _ in row]
    return hidden[rows, ends] @ model.get_output_embeddings().weight[digits].T


def as_trees(model, digits, questions: Sequence[Prompts]) -> Tensor:
    """Return logits as the library computes them."""
    return digit_logits(model, [prompt for row in questions for prompt in row], digits)


@torch.inference_mode()
def score(logits: Callable[[], Tensor]) -> list[Tensor]:
    """Return the confidences."""
    return [confidence_of(logits())]


def train(adapter, logits: Callable[[], Tensor]) -> list[Tensor]:
    """Return the loss of a step in which every answer is right, and its gradient."""
    for parameter in adapter.values():
        parameter.grad = None
    loss = -confidence_of(logits()).log().mean()
    loss.backward()
    return [loss.detach(), *(parameter.grad.clone() for parameter in adapter.values())]


def measure(quick: bool) -> Iterator[Result]:
    """Yield scoring and a training step against the other ways."""
    torch.set_num_threads(1)
    real = is_installed() and not quick
    model, tokenizer = load_smollm2() if real else atlas_sized(8, window=1024)[:2]
    template = Path("config/prompts/confidence.txt").read_text()
    digits = digit_tokens(tokenizer)
    questions = [
        [tokenizer(confidence_prompt(template, question, a))["input_ids"] for a in answers]
        for question, *answers in city_questions(8 if quick else N_SCORED)
    ]
    adapter = share_adapter([model], rank=8, alpha=16)
    initialise(adapter, 17)
    generator = torch.Generator().manual_seed(17)
    with torch.no_grad():
        for parameter in adapter.values():
            parameter += 0.01 * torch.randn(parameter.shape, generator=generator)
    one_each = sorted(([row[0]] for row in questions), key=lambda row: len(row[0]))
    weights = sum(p.numel() for p in model.get_decoder().layers.parameters())
    config = model.config
    rate = product_rate(512, config.hidden_size, config.intermediate_size)
    for name, run, batch, passes in (
        ("scoring", score, one_each, 1),
        # Backwards only activations have gradients, and the adapter's.
        ("training step", partial(train, adapter), questions[:N_TRAINED], 2),
    ):
        ways = {
            w: partial(w, model, digits, batch) for w in (score_alone, by_question, as_trees)
        }
        results = {way: run(call) for way, call in ways.items()}
        seconds: dict[Callable, list[float]] = {way: [] for way in ways}
        for _ in range(N_TURNS):
            for way, call in ways.items():
                start = time.process_time()
                run(call)
                seconds[way].append(time.process_time() - start)
        with_trees = statistics.median(seconds[as_trees])
        tokens = len(make_tree(sorted(p for row in batch for p in row)).token_ids)
        floor = passes * tokens * weights / rate
        for way in (score_alone, by_question):
            gaps = [
                ((a - b).abs().max() / max(1.0, b.abs().max())).item()
                for a, b in zip(results[as_trees], results[way], strict=True)
            ]
            yield Result(
                f"{name}, {'SmolLM2-135M' if real else 'a random model'}",
                {score_alone: "each prompt alone", by_question: "a row for each question"}[way],
                with_trees,
                statistics.median(seconds[way]) / with_trees,
                max(gaps),
                1e-5,
                with_trees / floor,
                f"{tokens} tokens are left of {sum(len(p) for row in batch for p in row)}.",
            )


if __name__ == "__main__":
    show(measure)
