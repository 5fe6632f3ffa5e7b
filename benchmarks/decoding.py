"""How much faster beam search is when the few-shot prefix is shared.

A random Olmo-3 model of the atlas study's size answers questions with 10 beams of 10
tokens after a few-shot prefix of about 150 tokens, on one thread: transformers'
`generate` one by one, `generate` on padded batches, and `generate_beams`. Run
`python -m benchmarks.decoding` in the root of the repository.
"""

import time
from collections.abc import Callable

import numpy as np
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from persistcal.answers.decode import generate_beams
from persistcal.confidence.prompts import few_shot_prefix, question_suffix
from persistcal.models.load import set_threads
from persistcal.models.pretraining import new_model
from persistcal.models.tokenization import train_tokenizer

N_QUESTIONS, BATCH_SIZE, N_BEAMS, N_TOKENS = 128, 64, 10, 10


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
) -> list[float]:
    """Return the best beam's score of each prompt, by transformers."""
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
    return output.sequences_scores[::N_BEAMS].tolist()


def main() -> None:
    """Print seconds per question and ratios."""
    set_threads(1)
    questions = made_up_questions(N_QUESTIONS + 5)
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
    ).eval()
    prefix = few_shot_prefix(questions[:5])
    suffixes = [question_suffix(question) for question, _ in questions[5:]]
    prompts = [prefix + suffix for suffix in suffixes]
    n_prefix = len(tokenizer(prefix)["input_ids"])
    print(f"{n_prefix} tokens in the prefix, vocabulary of {len(tokenizer)}")

    def shared() -> list[float]:
        answers = generate_beams(
            model,
            tokenizer,
            prefix,
            suffixes,
            n_beams=N_BEAMS,
            max_new_tokens=N_TOKENS,
            batch_size=BATCH_SIZE,
        )
        return [beams[0].logprob for beams in answers]

    def one_by_one() -> list[float]:
        return [score for prompt in prompts for score in generate(model, tokenizer, [prompt])]

    def in_batches() -> list[float]:
        starts = range(0, len(prompts), BATCH_SIZE)
        batches = [prompts[start : start + BATCH_SIZE] for start in starts]
        return [score for batch in batches for score in generate(model, tokenizer, batch)]

    shared()  # the first run also warms up the allocator
    seconds, scores = {}, {}
    ways: list[Callable[[], list[float]]] = [one_by_one, in_batches, shared]
    for way in ways:
        start = time.process_time()
        scores[way] = np.array(way())
        seconds[way] = (time.process_time() - start) / N_QUESTIONS
    for way in ways:
        print(
            f"{way.__name__:>10}: {1000 * seconds[way]:7.2f} ms per question, "
            f"{seconds[way] / seconds[shared]:5.1f} times as long, best scores differ by "
            f"{np.abs(scores[way] - scores[shared]).max():.1e}"
        )


if __name__ == "__main__":
    main()
