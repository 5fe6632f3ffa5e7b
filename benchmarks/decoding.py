"""Speed of beam search with a shared few-shot prefix.

A random Olmo-3 model of the atlas study's size answers questions with 10 beams of 10
tokens after a few-shot prefix of about 150 tokens, on one thread: transformers'
`generate` one by one, `generate` on padded batches, and `generate_beams`; then
SmolLM2-135M answers questions about cities in the same three ways, if `reproduce.real_lab`
finds it.
Run `python -m benchmarks.decoding` in the root of the repository.

The floor is the time of the multiplications that `generate_beams` cannot avoid, at the rate
of one large product: each token in the layers, and in the head if its successors are ranked.
"""

import time
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import torch
from scipy.stats import ks_2samp
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from atlas.corpus import train_tokenizer
from atlas.pretraining import new_model
from benchmarks.reference import generate
from benchmarks.results import Growth, Measured, Result, show
from benchmarks.smollm2 import city_questions, product_rate
from persistcal.answers.continuations import Sampling
from persistcal.answers.decode import Beam, Search, generate_beams
from persistcal.models.prompts import few_shot_prefix, question_suffix
from reproduce.real_lab import is_installed, load_smollm2

BATCH_SIZE, N_BEAMS, N_TOKENS = 64, 10, 10
Questions = list[tuple[str, str]]


def made_up_questions(n: int) -> list[tuple[str, str]]:
    """Questions of 3 to 25 made-up words and their answers."""
    rng = np.random.default_rng(0)
    words = ["".join(rng.choice(list("aeioubdklmnprst"), size=5)) for _ in range(3000)]
    return [
        (" ".join(rng.choice(words, size=rng.integers(3, 25))) + "?", str(rng.choice(words)))
        for _ in range(n)
    ]


def atlas_sized(
    n: int, *, window: int = 64
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase, Questions]:
    """Return a random model, a tokenizer, and 5 + n questions with answers."""
    questions = made_up_questions(5 + n)
    texts = [question_suffix(question) + f" {answer}\n\n" for question, answer in questions]
    tokenizer = train_tokenizer(texts * 4, vocab_size=2048)
    model = new_model(
        tokenizer,
        hidden_size=128,
        intermediate_size=512,
        n_layers=4,
        n_heads=4,
        sliding_window=window,
        max_length=1024,
        seed=0,
    )
    return model.eval(), tokenizer, questions


def smollm2(n: int) -> tuple[PreTrainedModel, PreTrainedTokenizerBase, Questions]:
    """Return SmolLM2-135M, its tokenizer, and 5 + n questions with answers."""
    return *load_smollm2(), [(question, right) for question, right, _ in city_questions(5 + n)]


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


def against_generate(
    name: str, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, questions: Questions
) -> Iterator[Result]:
    """Yield a result for each way of decoding."""
    prefix = few_shot_prefix(questions[:5])
    suffixes = [question_suffix(question) for question, _ in questions[5:]]
    prompts = [prefix + suffix for suffix in suffixes]
    sizes = {"n_beams": N_BEAMS, "max_new_tokens": N_TOKENS}

    def decode_here(batch_size: int = BATCH_SIZE) -> list[list[Beam]]:
        search = Search(**sizes, batch_size=batch_size)
        return generate_beams(model, tokenizer, prefix, suffixes, search)

    def generated(batch_size: int) -> list[list[Beam]]:
        starts = range(0, len(prompts), batch_size)
        batches = [prompts[start : start + batch_size] for start in starts]
        return [beams for b in batches for beams in generate(model, tokenizer, b, **sizes)]

    def timed(way: Callable[[], list[list[Beam]]]) -> tuple[float, np.ndarray]:
        start = time.process_time()
        beams = way()
        taken = (time.process_time() - start) / len(suffixes)
        return taken, np.array([[beam.logprob for beam in of_one] for of_one in beams])

    config = model.config
    rate = product_rate(512, config.hidden_size, config.intermediate_size)
    floor = (
        n_products(model, decode_here) / rate / len(suffixes)
    )  # the first run warms up as well
    fast_seconds, scores = timed(decode_here)
    for way, run in (
        ("`generate` one by one", partial(generated, 1)),
        ("`generate` in batches", partial(generated, BATCH_SIZE)),
        ("itself one by one", partial(decode_here, 1)),
    ):
        taken, plain_seconds = timed(run)
        yield Result(
            f"decoding, {name}",
            way,
            fast_seconds,
            taken / fast_seconds,
            float(np.abs(plain_seconds - scores).max()),
            1e-4,
            fast_seconds / floor,
            f"Seconds of a question; {len(suffixes)} questions, {N_BEAMS} beams, "
            f"{len(tokenizer(prefix)['input_ids'])} tokens of examples.",
        )


def drawing(n_questions: int, vocab_size: int) -> Result:
    """Compare a step of sampling with Gumbel noise from NumPy for every token."""
    n = n_questions * N_BEAMS
    logits = torch.randn(n, vocab_size, generator=torch.Generator().manual_seed(0)) * 3
    sampling = Sampling(
        [str(i) for i in range(n_questions)],
        n_samples=N_BEAMS,
        max_new_tokens=3,
        temperature=1.0,
        top_p=1.0,
        seed=17,
        ends=torch.zeros(vocab_size, dtype=torch.bool),
    )
    sampling.advance(logits[:n_questions])  # from here on a row for each sample
    chance, rows = logits.softmax(dim=1), torch.arange(n)
    step = torch.ones_like(rows)

    def flat() -> Tensor:
        noise = [
            np.random.Generator(np.random.Philox(key=i)).gumbel(size=vocab_size) for i in rows
        ]
        return (chance.log() + torch.from_numpy(np.float32(noise))).argmax(dim=1)

    def timed(draw: Callable[[], Tensor]) -> tuple[float, np.ndarray]:
        draw()
        start = time.process_time()
        drawn = draw()
        taken = time.process_time() - start
        return taken, np.sort(chance[rows, drawn].log().numpy())

    fast_seconds, decode_here = timed(lambda: sampling._draw(chance, rows, rows, step))
    plain_seconds, plain_draws = timed(flat)
    apart = ks_2samp(decode_here, plain_draws).statistic
    return Result(
        "drawing a token",
        "NumPy's noise for all tokens",
        fast_seconds,
        plain_seconds / fast_seconds,
        float(apart),
        2 / n**0.5,
        None,
        f"{n} rows of {vocab_size} tokens; log-probabilities of what is drawn, "
        "Kolmogorov and Smirnov's distance.",
    )


def growth(quick: bool) -> Iterator[Growth]:
    """Yield how decoding grows with questions and with beams."""
    model, tokenizer, questions = atlas_sized(16 if quick else 256)
    prefix = few_shot_prefix(questions[:5])
    suffixes = [question_suffix(question) for question, _ in questions[5:]]

    def seconds(n_questions: int, n_beams: int) -> float:
        search = Search(n_beams, N_TOKENS, batch_size=BATCH_SIZE)
        start = time.process_time()
        generate_beams(model, tokenizer, prefix, suffixes[:n_questions], search)
        return time.process_time() - start

    seconds(4, N_BEAMS)  # warm up
    sizes = [8, 16] if quick else [64, 128, 256]
    beams = [4, 8] if quick else [5, 10, 20, 40]
    yield Growth("questions", sizes, [seconds(n, N_BEAMS) for n in sizes], "Decoding.")
    n = sizes[0]
    yield Growth("beams", beams, [seconds(n, b) for b in beams], f"Decoding {n} questions.")


def measure(quick: bool) -> Iterator[Measured]:
    """Yield all results."""
    torch.set_num_threads(1)
    yield from against_generate("model of atlas' size", *atlas_sized(8 if quick else 64))
    if is_installed() and not quick:
        yield from against_generate("SmolLM2-135M", *smollm2(16))
    yield drawing(*(8, 3000) if quick else (32, 100_278))
    yield from growth(quick)


if __name__ == "__main__":
    show(measure)
