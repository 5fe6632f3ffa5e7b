"""The documents of a small pre-training, in a mixture that drifts, and the tokenizer for them.

Each fact is met as a question with its answer. Which facts are met how often changes from phase
to phase, so that a model also forgets. Some documents show the answer format of a confidence
prompt, never about facts that the study evaluates on.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast

from persistcal.questions.question_list import deal

END_OF_TEXT = "<|endoftext|>"

PADDING = "<|pad|>"

SEPARATOR = "\n\n"

# Words with their leading space, single digits, punctuation with the newlines after
# it: the pattern of cl100k and of the OLMo tokenizers, except that every digit is a separate
# token.
WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|"
    r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def train_tokenizer(texts: Iterable[str], *, vocab_size: int) -> PreTrainedTokenizerFast:
    """Train a byte-level BPE tokenizer that shortens `texts`, and encodes any other.

    It has at most `vocab_size` tokens, with the 256 bytes, end-of-text (id 0) and padding.
    """
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(WORDS), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=[END_OF_TEXT, PADDING],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token=END_OF_TEXT,
        pad_token=PADDING,
        clean_up_tokenization_spaces=False,
    )


class Phase(NamedTuple):
    """A stretch of the training, `until` this share of it, with its own weights.

    `weights` maps groups to factors of weights, 1 for others. Facts in the sets `rare`,
    from `deal`, hardly occur. `confidence_share` is the share of documents in the confidence
    format, by default the corpus' share.
    """

    until: float
    weights: Mapping[str, float] = {}
    rare: Collection[int] = ()
    confidence_share: float | None = None


class FactSets(NamedTuple):
    """Number of sets that `deal` makes, and the factor of a set's facts while it is rare.

    Facts of the categories `without` are in no document; which others drift does not depend
    on them.
    """

    n: int = 1
    rare_factor: float = 1.0
    without: Collection[str] = ()


ONE_SET = FactSets()


class Corpus:
    """Facts, a table FACTS, as documents, drawn with weights that depend on the training step.

    `confidence_share` is the share of documents in the confidence format: the template with a
    question and an answer, followed by one of `ratings`, of a right and of a wrong answer. They
    are about facts whose split is not in `unrated`. Half of them give the right answer, the
    others a wrong one of the same relation, half of them of the same group if it has any. A
    wrong answer is the right one to another of those facts.

    The documents of a step depend only on the seed and the step.
    """

    def __init__(
        self,
        facts: pd.DataFrame,
        phases: Sequence[Phase],
        *,
        confidence_template: str,
        confidence_share: float,
        seed: int,
        ratings: tuple[str, str] = ("9", "0"),
        unrated: Collection[str] = ("train", "test"),
        fact_sets: FactSets = ONE_SET,
    ) -> None:
        if not phases or phases[-1].until != 1.0:
            raise ValueError("drift: the last phase must end at 1; set its 'until' to 1.0.")
        groups = set(facts["group"])
        for phase in phases:
            if unknown := sorted(set(phase.weights) - groups):
                raise ValueError(
                    f"drift: unknown group {unknown[0]!r}; the facts have "
                    f"{', '.join(sorted(groups))}."
                )
            if negative := sorted(g for g, weight in phase.weights.items() if weight < 0):
                raise ValueError(f"drift: the weight of {negative[0]!r} is below 0; raise it.")
        categories = sorted(set(facts["category"]))
        if unknown := sorted({*fact_sets.without} - {*categories}):
            raise ValueError(
                f"without: no fact has the category {unknown[0]!r}; there are "
                f"{', '.join(categories)}."
            )
        met = ~facts["category"].isin(fact_sets.without).to_numpy()
        self._weight = np.where(met, facts["weight"], 0.0)
        self._group, self._groups = pd.factorize(facts["group"])
        self._set = deal(facts, fact_sets.n, seed=seed)
        self._rare_factor = fact_sets.rare_factor
        self._phases = phases
        self._template = confidence_template
        self._share = confidence_share
        self._seed = seed
        self._ratings = ratings
        self._documents = [
            f"Prompt: {question}\nAnswer: {answer}"
            for question, answer in zip(facts["question"], facts["answer"], strict=True)
        ]
        columns = (facts[name].to_numpy() for name in ("question", "answer", "relation"))
        self._question, self._answer, self._relation = columns
        self._alike = {
            key: np.sort(rows)
            for columns in ("relation", ["relation", "group"])
            for key, rows in facts.reset_index(drop=True).groupby(columns).indices.items()
        }
        rated = ~facts["split"].isin(unrated).to_numpy() & met
        shares = [confidence_share, *(phase.confidence_share or 0 for phase in phases)]
        if max(shares) > 0 and not rated.any():
            raise ValueError(
                "confidence_share: every fact is asked for, so none is left for documents in "
                "the confidence format; lower n_train or n_test, or set the share to 0."
            )
        self._rated = rated

    def probabilities(self, progress: float) -> np.ndarray:
        """Return the probability of each fact after this share of the training."""
        phase = self._phase(progress)
        factor = np.array([phase.weights.get(name, 1.0) for name in self._groups])
        rare = np.isin(self._set, list(phase.rare))
        weight = self._weight * factor[self._group] * np.where(rare, self._rare_factor, 1.0)
        return weight / weight.sum()

    def _phase(self, progress: float) -> Phase:
        return next(phase for phase in self._phases if progress < phase.until)

    def documents(self, n_documents: int, *, step: int, n_steps: int) -> list[str]:
        """Draw the documents of a training step."""
        rng = np.random.default_rng([self._seed, step])
        probability = self.probabilities(step / n_steps)
        facts = rng.choice(len(probability), size=n_documents, p=probability)
        share = self._phase(step / n_steps).confidence_share
        share = self._share if share is None else share
        if share == 0:
            return [self._documents[fact] for fact in facts]
        rated = probability * self._rated
        places = rng.choice(len(rated), size=n_documents, p=rated / rated.sum())
        return [
            self._confidence_document(rng, row, probability)
            if rng.random() < share
            else self._documents[fact]
            for fact, row in zip(facts, places, strict=True)
        ]

    def sample(self, n_documents: int) -> list[str]:
        """Draw documents from all over the training, to train a tokenizer on."""
        moments = 20
        return [
            document + SEPARATOR
            for moment in range(moments)
            for document in self.documents(n_documents // moments, step=moment, n_steps=moments)
        ]

    def _confidence_document(
        self, rng: np.random.Generator, row: int, probability: np.ndarray
    ) -> str:
        right, wrong = self._ratings
        answer, rating = self._answer[row], right
        if rng.random() < 0.5:
            relation, group = self._relation[row], self._groups[self._group[row]]
            near = rng.random() < 0.5
            answers = self._others((relation, group) if near else relation, answer)
            if not len(answers):
                answers = self._others(relation, answer)
            if (total := probability[answers].sum()) > 0:
                answer = self._answer[rng.choice(answers, p=probability[answers] / total)]
                rating = wrong
        return self._template.format(question=self._question[row], answer=answer) + rating

    def _others(self, kind: str | tuple[str, str], answer: str) -> np.ndarray:
        # Rated facts only: an answer that is never right would be recognisable.
        rows = self._alike[kind]
        return rows[self._rated[rows] & (self._answer[rows] != answer)]

    def blocks(
        self,
        tokenizer: PreTrainedTokenizerBase,
        *,
        n_blocks: int,
        length: int,
        step: int,
        n_steps: int,
    ) -> np.ndarray:
        """Pack the documents of a training step into blocks, of shape (n_blocks, length).

        Each block begins with a document. Blank lines separate documents, and the last one is
        cut off.
        """
        # No document is shorter than 8 tokens ("Prompt", ":", ..., "Answer", ":", ...).
        documents = self.documents(n_blocks * (length // 8 + 1), step=step, n_steps=n_steps)
        encoded = tokenizer([document + SEPARATOR for document in documents])["input_ids"]
        blocks = np.empty((n_blocks, length), dtype=np.int64)
        for block in blocks:
            tokens: list[int] = []
            while len(tokens) < length:
                tokens += encoded.pop()
            block[:] = tokens[:length]
        return blocks
