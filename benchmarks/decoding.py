"""How much faster beam search is when the few-shot prefix is shared.

A random Olmo-3 model of the atlas study's size answers questions with 10 beams of 10
tokens after a few-shot prefix of about 150 tokens, on one thread: transformers'
`generate` one by one, `generate` on padded batches, and `generate_beams`. Run
`python -m benchmarks.decoding` in the root of the repository; with `smollm2` after it,
SmolLM2-135M answers questions about cities instead (see `benchmarks.smollm2`).

The floor is what `generate_beams` must multiply: the tokens that went through the layers
and those whose successors the head ranked, times their weights, at the rate of one large
product.
"""

import sys
import time
from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from benchmarks.smollm2 import city_questions, load_smollm2, product_rate
from persistcal.answers.decode import generate_beams
from persistcal.confidence.prompts import few_shot_prefix, question_suffix
from persistcal.models.load import set_threads
from persistcal.models.pretraining import new_model
from persistcal.models.tokenization import train_tokenizer

BATCH_SIZE, N_BEAMS, N_TOKENS = 64, 10, 10


def made_up_questions(n: int) -> list[tuple[str, str]]:
    """Questions of 3 to 25 made-up words and their answers."""
    rng = np.random.default_rng(0)
    words = ["".join(rng.choice(list("aeioubdklmnprst"), size=5)) for _ in range(3000)]
    return [
        (" ".join(rng.choice(words, size=rng.integers(3, 25))) + "?", str(rng.choice(words)))
        for _ in range(n)
    ]


def generate(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, prompts: list[str]
) -> list[list[float]]:
    """Return the scores of each prompt's beams, by transformers."""
    encoded = tokenizer(prompts, return_tensors="pt", padding=True, padding_side="left")
    with torch.inference_mode():
        output = model.generate(
            input_ids=encoded["input_ids"],
            attention_mask=encoded["attention_mask"],
            num_beams=N_BEAMS,
            num_return_sequences=N_BEAMS,
            length_penalty=0.0,
            early_stopping=False,
            do_sample=False,
            stop_strings=["\n"],
            tokenizer=tokenizer,
            max_new_tokens=N_TOKENS,
            return_dict_in_generate=True,
            output_scores=True,
        )
    return output.sequences_scores.view(len(prompts), N_BEAMS).tolist()


def atlas_sized() -> tuple[PreTrainedModel, PreTrainedTokenizerBase, list[tuple[str, str]]]:
    """Return a random model, a tokenizer, and 5 + 128 questions with answers."""
    questions = made_up_questions(5 + 128)
    texts = [question_suffix(question) + f" {answer}\n\n" for question, answer in questions]
    tokenizer = train_tokenizer(texts * 4, vocab_size=2048)
    model = new_model(
        tokenizer,
        hidden_size=128,
        intermediate_size=512,
        n_layers=4,
        n_heads=4,
        sliding_window=64,
        max_length=1024,
        seed=0,
    )
    return model.eval(), tokenizer, questions


def smollm2() -> tuple[PreTrainedModel, PreTrainedTokenizerBase, list[tuple[str, str]]]:
    """Return SmolLM2-135M, its tokenizer, and 5 + 16 questions with answers."""
    return *load_smollm2(), [(question, right) for question, right, _ in city_questions(5 + 16)]


def n_products(model: PreTrainedModel, run: Callable[[], object]) -> int:
    """Return how many products of tokens and weights `run` takes."""
    counts = {model.get_decoder().layers: 0, model.get_output_embeddings(): 0}

    def count(part: torch.nn.Module, hidden: Tensor) -> None:
        counts[part] += hidden.shape[0] * hidden.shape[1]

    layers, head = counts
    hooks = [
        layers[0].register_forward_pre_hook(lambda _, inputs: count(layers, inputs[0])),
        head.register_forward_pre_hook(lambda _, inputs: count(head, inputs[0])),
    ]
    run()
    for hook in hooks:
        hook.remove()
    return sum(n * sum(p.numel() for p in part.parameters()) for part, n in counts.items())


def main() -> None:
    """Print seconds per question, ratios, how far scores differ, and the floor."""
    set_threads(1)
    model, tokenizer, questions = smollm2() if "smollm2" in sys.argv else atlas_sized()
    prefix = few_shot_prefix(questions[:5])
    suffixes = [question_suffix(question) for question, _ in questions[5:]]
    prompts = [prefix + suffix for suffix in suffixes]
    n_prefix = len(tokenizer(prefix)["input_ids"])
    print(f"{len(suffixes)} questions, {n_prefix} tokens before them")

    def here(batch_size: int = BATCH_SIZE) -> list[list[float]]:
        sizes = {"n_beams": N_BEAMS, "max_new_tokens": N_TOKENS, "batch_size": batch_size}
        answers = generate_beams(model, tokenizer, prefix, suffixes, **sizes)
        return [[beam.logprob for beam in beams] for beams in answers]

    def generated(batch_size: int) -> list[list[float]]:
        starts = range(0, len(prompts), batch_size)
        batches = [prompts[start : start + batch_size] for start in starts]
        return [scores for batch in batches for scores in generate(model, tokenizer, batch)]

    ways: dict[str, Callable[[], list[list[float]]]] = {
        "generate one by one": partial(generated, 1),
        "generate in batches": partial(generated, BATCH_SIZE),
        "here one by one": partial(here, 1),
        "here": here,
    }
    config = model.config
    rate = product_rate(512, config.hidden_size, config.intermediate_size)
    floor = n_products(model, here) / rate / len(suffixes)  # the first run warms up as well
    seconds, scores = {}, {}
    for name, way in ways.items():
        start = time.process_time()
        scores[name] = np.array(way())
        seconds[name] = (time.process_time() - start) / len(suffixes)
    for name, taken in seconds.items():
        print(
            f"{name:>20}: {1000 * taken:8.2f} ms per question, {taken / seconds['here']:5.1f} "
            f"times as long as here, {taken / floor:5.1f} times the floor, beams' scores "
            f"differ by {np.abs(scores[name] - scores['here']).max():.0e}"
        )


if __name__ == "__main__":
    main()
