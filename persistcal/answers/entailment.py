"""Ask a natural-language-inference model whether one answer entails another."""

import logging
from collections.abc import Mapping, Sequence

import numpy as np
import torch
from sentence_transformers import CrossEncoder
from transformers import AutoModelForSequenceClassification

from persistcal.answers.equivalence import Pair
from persistcal.models.load import (
    build_empty,
    load_whole,
    pick_device,
    without_progress_bars,
)

log = logging.getLogger(__name__)

PREMISE = "Question: {question}\nAnswer: {answer}"
HYPOTHESIS = "Answer: {answer}"


def entailment_index(id2label: Mapping[int, str], source: str) -> int:
    """Return the class that means entailment; a model without a single one is refused.

    >>> entailment_index({0: "contradiction", 1: "Entailment", 2: "neutral"}, "model")
    1
    """
    entailing = [i for i, label in id2label.items() if label.casefold() == "entailment"]
    if len(entailing) != 1:
        raise ValueError(
            f"{source} has the classes {', '.join(id2label.values())}, of which not one is "
            "'entailment'; choose a natural-language-inference model that says which is."
        )
    return int(entailing[0])


class EntailmentModel:
    """A cross-encoder that says whether one answer to a question entails another.

    Of `source`, a folder or Hub id, only safetensors files are read, and no code is run. Pairs
    of similar length are compared together, `batch_size` of them. Should "float16" overflow,
    the model goes on in float32.
    """

    def __init__(
        self,
        source: str,
        *,
        batch_size: int,
        device: torch.device | str | None = None,
        dtype: str = "float32",
    ) -> None:
        device = torch.device(device or pick_device())
        # Loaded once for its faults alone, which a cross-encoder would run with.
        kind = AutoModelForSequenceClassification
        build_empty(source, kind=kind)
        load_whole(kind, source)
        with without_progress_bars():
            self._model = CrossEncoder(
                source,
                device=str(device),
                trust_remote_code=False,
                model_kwargs={
                    "dtype": getattr(torch, dtype),
                    "use_safetensors": True,
                },
            )
        self._entailment = entailment_index(self._model.config.id2label, source)
        self._batch_size = batch_size

    def __call__(self, pairs: Sequence[Pair]) -> list[bool]:
        """Say of each pair whether entailment is the likeliest class from `one` to `other`."""
        return (self.logits(pairs).argmax(axis=1) == self._entailment).tolist()

    def logits(self, pairs: Sequence[Pair]) -> np.ndarray:
        """Return the logits of the classes, shape (n_pairs, n_classes)."""
        if not pairs:
            return np.empty((0, len(self._model.config.id2label)))
        texts = [self.texts(pair) for pair in pairs]
        logits = self._predict(texts)
        if not np.isfinite(logits).all():
            log.warning("The entailment model overflows in float16; float32 from here on")
            self._model.float()
            logits = self._predict(texts)
        return logits

    def _predict(self, texts: list[tuple[str, str]]) -> np.ndarray:
        # It sorts by length itself.
        return self._model.predict(
            texts,
            batch_size=self._batch_size,
            activation_fn=torch.nn.Identity(),
            show_progress_bar=False,
        )

    def texts(self, pair: Pair) -> tuple[str, str]:
        """Return premise and hypothesis, shortened to what the model can read.

        The question loses its end first, and the answers only when there is no
        room for both even without it: cut off at the premise's end, as a tokenizer
        does, two answers that differ would look the same.
        """
        question, *answers = pair
        room = self._model.tokenizer.model_max_length
        # No token is shorter than a byte, except the few that mark begin and end.
        if len(_fill(pair)[0].encode()) + len(_fill(pair)[1].encode()) + 8 > room:
            room -= self._count(*_fill(Pair("", "", "")))
            if sum(map(self._n_tokens, answers)) > room:
                answers = [self._shorten(answer, room // 2) for answer in answers]
            left = room - sum(map(self._n_tokens, answers))
            question = self._shorten(question, left)
        return _fill(Pair(question, *answers))

    def _count(self, premise: str, hypothesis: str) -> int:
        return len(self._model.tokenizer(premise, hypothesis)["input_ids"])

    def _n_tokens(self, text: str) -> int:
        return len(self._model.tokenizer(text, add_special_tokens=False)["input_ids"])

    def _shorten(self, text: str, n_tokens: int) -> str:
        encoded = self._model.tokenizer(
            text, add_special_tokens=False, return_offsets_mapping=True
        )
        offsets = encoded["offset_mapping"]
        return text if len(offsets) <= n_tokens else text[: offsets[max(n_tokens, 0)][0]]


def _fill(pair: Pair) -> tuple[str, str]:
    return (
        PREMISE.format(question=pair.question, answer=pair.one),
        HYPOTHESIS.format(answer=pair.other),
    )
