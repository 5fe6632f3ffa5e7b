"""Cost of a step on a GPU: waits for it, and launched kernels.

`make pretend` prints the table as it is now, and for each row the lines of the package that
wait and the kernels that are launched most. A change that lowers a number writes it to `MOST`.
"""

from typing import NamedTuple

import pretended_cuda
from tiny_models import TEMPLATE, tiny_model, tiny_tokenizer

from persistcal.answers.decode import Draw, Search, generate_beams
from persistcal.confidence.prompts import confidence_prompt, few_shot_prefix, question_suffix
from persistcal.confidence.scoring import score_answers
from persistcal.confidence.verbalised import digit_tokens
from persistcal.confidence.verifier import word_probability
from persistcal.training.data import TrainingQuestion
from persistcal.training.train import Optimisation, prepare, train_adapter


class StepCost(NamedTuple):
    """Of a forward pass and what belongs to it: a step, a batch or a micro-batch."""

    waits: float
    kernels: float  # with two layers
    kernels_a_layer: float


MOST = {
    "beam step": StepCost(1, 220, 56),
    # Every tenth pass begins questions, which waits for their trees and reads who is done.
    "beam step in a queue": StepCost(1.6, 232.15, 58.2),
    # A third of the kernels draw the noise, in integers that are the same on every device.
    "sampling step": StepCost(1, 378, 56),
    "scoring batch": StepCost(2, 162, 59),
    "verifier batch": StepCost(2, 158, 59),
    "training micro-batch": StepCost(2.5, 431.5, 175),
}

TOKENIZER = tiny_tokenizer()
DIGITS = digit_tokens(TOKENIZER)
PREFIX = few_shot_prefix([("Capital of Peru?", "Lima"), ("Who?", "Me")])
QUESTIONS = ["Capital of Chad?", "Who?", "Which river is the longest one of all?", "And what?"]


def _prompts(n):
    texts = [
        confidence_prompt(TEMPLATE, f"Is it so {i}?", answer)
        for i in range(n)
        for answer in ("yes", "no indeed", "maybe")
    ]
    return TOKENIZER(texts)["input_ids"]


def decoding(draw):
    suffixes = [question_suffix(question) for question in QUESTIONS]

    def run(model, n):
        search = Search(3, 3 * n, draw, batch_size=len(QUESTIONS))
        generate_beams(model, TOKENIZER, PREFIX, suffixes, search)

    return run


def refilled(model, n):
    """Two questions of ten steps at a time; then others, in their place."""
    suffixes = [question_suffix(question) for question in QUESTIONS * n]
    generate_beams(model, TOKENIZER, PREFIX, suffixes, Search(3, 10, batch_size=2))


def training(model, n):
    data = {
        f"q{i}": TrainingQuestion(
            tuple(confidence_prompt(TEMPLATE, f"Is it {i}?", a) for a in ("yes", "no indeed")),
            (0.6, 0.4),
            (float(i % 2), 1.0 - i % 2),
        )
        for i in range(8)
    }
    trainee = prepare({"a": model}, TOKENIZER, [data], rank=4, alpha=8)
    how = Optimisation(lr=1e-2, epochs=n, batch_size=4, micro_batch=4)
    train_adapter(trainee, {"a": data}, list(data), how, seed=17)


# Each does something n times as often.
RUNS = {
    "beam step": decoding(None),
    "beam step in a queue": refilled,
    "sampling step": decoding(Draw(0.8, 0.9, 1)),
    "scoring batch": lambda m, n: score_answers(m, _prompts(4 * n), DIGITS, batch_size=6),
    "verifier batch": lambda m, n: word_probability(m, _prompts(4 * n), 3, batch_size=6),
    "training micro-batch": training,
}


def counts(name, layers, n):
    """`Counts` of a run, and its forward passes."""
    model = tiny_model(layers=layers).to("cuda").requires_grad_(False)
    passes = []
    model.get_decoder().layers[0].register_forward_pre_hook(lambda *_: passes.append(1))
    with pretended_cuda.counted() as counted:
        RUNS[name](model, n)
    return counted, len(passes)


def measure(name):
    """Return the cost, and `Counts` of the longer run with two layers.

    Differences between a long and a short run leave out what happens once.
    """
    counts(name, 2, 1)  # what is done once in a process
    kernels = {}
    for layers in (2, 4):
        (short, few), (long, many) = (counts(name, layers, n) for n in (1, 2))
        per_pass = 1 / (many - few)
        kernels[layers] = (long.kernels.total() - short.kernels.total()) * per_pass
        if layers == 2:
            waits, shown = (long.waits.total() - short.waits.total()) * per_pass, long
    cost = StepCost(waits, kernels[2], (kernels[4] - kernels[2]) / 2)
    return StepCost(*(round(number, 2) for number in cost)), shown


def main():
    for name in RUNS:
        cost, counted = measure(name)
        print(f"{name}: {cost}, at most {MOST[name]}\n{counted}\n", flush=True)


if __name__ == "__main__":
    main()
