"""Number of entailment questions that grouping needs, against the naive rule.

A random DeBERTa with the vocabulary of its bytes groups the answers to 20 questions of 7
checkpoints, 10 beams each, which mostly repeat what other checkpoints said. The naive
rule compares all pairs of a question's answers in both directions, checkpoint by
checkpoint, in batches as they come. Run `python -m benchmarks.entailment` in the root of
the repository.
"""

import itertools
import tempfile
import time
from collections.abc import Iterator, Sequence

import numpy as np
import torch
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from transformers import (
    DebertaV2Config,
    DebertaV2ForSequenceClassification,
    PreTrainedTokenizerFast,
)

from benchmarks.results import Result, show
from persistcal.answers.entailment import EntailmentModel
from persistcal.answers.equivalence import Pair, group_answers, mutual_entailment
from persistcal.store.entailment_cache import EntailmentCache

N_QUESTIONS, N_CHECKPOINTS, N_BEAMS = 20, 7, 10
BATCH_SIZE = 32

Asked = list[tuple[str, list[str]]]


def save_model(folder: str) -> None:
    """Save a small DeBERTa with random weights; its texts are bytes."""
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    special = ["[PAD]", "[CLS]", "[SEP]"]
    trainer = trainers.BpeTrainer(
        special_tokens=special, initial_alphabet=alphabet, show_progress=False
    )
    bpe.train_from_iterator([], trainer)
    PreTrainedTokenizerFast(
        tokenizer_object=bpe, pad_token="[PAD]", sep_token="[SEP]", model_max_length=256
    ).save_pretrained(folder)
    torch.manual_seed(17)
    config = DebertaV2Config(
        vocab_size=len(bpe.get_vocab()),
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=128,
        max_position_embeddings=256,
        relative_attention=True,
        position_buckets=64,
        pos_att_type=["p2c", "c2p"],
        type_vocab_size=0,
        pad_token_id=0,
        num_labels=3,
        id2label={0: "neutral", 1: "contradiction", 2: "entailment"},
        initializer_range=0.5,
    )
    DebertaV2ForSequenceClassification(config).save_pretrained(folder)


def make_answers(n_questions: int) -> list[Asked]:
    """For each checkpoint, the questions with its answers: common ones are said by most."""
    draw = np.random.default_rng(17)
    checkpoints: list[Asked] = [[] for _ in range(N_CHECKPOINTS)]
    for number in range(n_questions):
        question = f"Question {number}" + " about it" * int(draw.integers(1, 8)) + "?"
        pool = [f"answer {i}" + " of it" * int(draw.integers(0, 6)) for i in range(25)]
        odds = 1 / np.arange(1, 26)
        for asked in checkpoints:
            said = draw.choice(pool, size=N_BEAMS, replace=False, p=odds / odds.sum())
            asked.append((question, said.tolist()))
    return checkpoints


def group_naively(
    checkpoints: list[Asked], model: EntailmentModel
) -> list[set[frozenset[str]]]:
    """Compare all pairs in both directions, then gather whoever is connected."""
    result = []
    for asked in checkpoints:
        pairs = [
            Pair(question, *pair)
            for question, answers in asked
            for pair in itertools.permutations(answers, 2)
        ]
        batches = [pairs[i : i + BATCH_SIZE] for i in range(0, len(pairs), BATCH_SIZE)]
        yes = {p for b in batches for p, said in zip(b, model(b), strict=True) if said}
        for question, answers in asked:
            groups = {answer: frozenset([answer]) for answer in answers}
            for one, other in itertools.combinations(answers, 2):
                if {Pair(question, one, other), Pair(question, other, one)} <= yes:
                    merged = groups[one] | groups[other]
                    groups |= dict.fromkeys(merged, merged)
            result.append(set(groups.values()))
    return result


def group_as_here(
    checkpoints: list[Asked], model: EntailmentModel, folder: str
) -> list[set[frozenset[str]]]:
    """Group as the rule `cluster_answers` does, a job per checkpoint."""
    result = []
    for asked in checkpoints:
        questions = [question for question, _ in asked]
        texts = {answer for _, answers in asked for answer in answers}
        with EntailmentCache(folder, model, questions=questions, answers=texts) as cache:
            groups = group_answers(asked, mutual_entailment(cache))
        for (_, answers), group in zip(asked, groups, strict=True):
            members = zip(answers, group, strict=True)
            gathered: dict[int, set[str]] = {}
            for answer, number in members:
                gathered.setdefault(number, set()).add(answer)
            result.append({frozenset(answers) for answers in gathered.values()})
    return result


class Counted(EntailmentModel):
    """Counts the pairs that it is asked about."""

    n_asked = 0

    def __call__(self, pairs: Sequence[Pair]) -> list[bool]:
        """Count them and say what the model says."""
        self.n_asked += len(pairs)
        return super().__call__(pairs)


def measure(quick: bool) -> Iterator[Result]:
    """Yield seconds of the processor against the naive rule."""
    torch.set_num_threads(1)
    n_questions = 2 if quick else N_QUESTIONS
    checkpoints = make_answers(n_questions)
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as cache:
        save_model(folder)
        seconds, pairs, groups = [], [], []
        for group in (group_naively, lambda c, m: group_as_here(c, m, cache)):
            model = Counted(folder, batch_size=BATCH_SIZE, device="cpu")
            start = time.process_time()
            groups.append(group(checkpoints, model))
            seconds.append(time.process_time() - start)
            pairs.append(model.n_asked)
    differ = sum(one != other for one, other in zip(*groups, strict=True))
    yield Result(
        "grouping by entailment",
        "all pairs in both directions",
        seconds[1],
        seconds[0] / seconds[1],
        differ,
        0,
        how=f"{n_questions} questions, {N_CHECKPOINTS} checkpoints, {N_BEAMS} answers each: "
        f"{pairs[1]} pairs instead of {pairs[0]}; the difference is in questions.",
    )


if __name__ == "__main__":
    show(measure)
