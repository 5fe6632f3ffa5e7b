"""Ask a natural-language-inference model whether one answer entails another."""

import json
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from sentence_transformers import CrossEncoder
from transformers import AutoModelForSequenceClassification

from persistcal.answers.equivalence import Pair
from persistcal.models.checkpoint import Checkpoint
from persistcal.models.hub import fetch_checked
from persistcal.models.load import build_empty, load_whole, pick_device, without_progress_bars
from persistcal.store import artifacts
from persistcal.store.files import FilePath, digest

log = logging.getLogger(__name__)

PREMISE = "Question: {question}\nAnswer: {answer}"

HYPOTHESIS = "Answer: {answer}"


def entailment_index(id2label: Mapping[int, str], source: str) -> int:
    """Return the class that means entailment; a model without a single one is refused."""
    entailing = [i for i, label in id2label.items() if label.casefold() == "entailment"]
    if len(entailing) != 1:
        raise ValueError(
            f"{source} has the classes {', '.join(id2label.values())}, of which not one is "
            "'entailment'; choose a natural-language-inference model that says which is."
        )
    return int(entailing[0])


class EntailmentModel:
    """A cross-encoder that tests whether one answer to a question entails another.

    Only safetensors files are read, and no code is run. If "float16" overflows, the model
    continues in float32.
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
        # Loaded once only to find faults, which a cross-encoder would ignore.
        kind = AutoModelForSequenceClassification
        build_empty(source, kind=kind)
        load_whole(kind, source)
        with without_progress_bars():
            self._model = CrossEncoder(
                source,
                device=str(device),
                trust_remote_code=False,
                model_kwargs={"dtype": getattr(torch, dtype), "use_safetensors": True},
            )
        self._entailment = entailment_index(self._model.config.id2label, source)
        self._batch_size = batch_size

    def __call__(self, pairs: Sequence[Pair]) -> list[bool]:
        """Return for each pair whether entailment is the most probable class."""
        return (self.logits(pairs).argmax(axis=1) == self._entailment).tolist()

    def logits(self, pairs: Sequence[Pair]) -> np.ndarray:
        """Return the logits of the classes, shape (n_pairs, n_classes)."""
        if not pairs:
            return np.empty((0, len(self._model.config.id2label)))
        predict = partial(  # which sorts by length itself
            self._model.predict,
            [self.texts(pair) for pair in pairs],
            batch_size=self._batch_size,
            activation_fn=torch.nn.Identity(),
            show_progress_bar=False,
        )
        logits = predict()
        if not np.isfinite(logits).all():
            log.warning("The entailment model overflows in float16; float32 from here on")
            self._model.float()
            logits = predict()
        return logits

    def texts(self, pair: Pair) -> tuple[str, str]:
        """Return premise and hypothesis, shortened to the model's maximum length.

        The question is cut first, and the answers only if both do not fit without a
        question. A tokenizer would cut the end of the premise, so that two different
        answers could look the same.
        """
        question, *answers = pair
        room = self._model.tokenizer.model_max_length
        # No token is shorter than a byte, except the few that mark begin and end.
        if len(_fill(pair)[0].encode()) + len(_fill(pair)[1].encode()) + 8 > room:
            room -= len(self._model.tokenizer(*_fill(Pair("", "", "")))["input_ids"])
            if sum(map(self._n_tokens, answers)) > room:
                answers = [self._shorten(answer, room // 2) for answer in answers]
            left = room - sum(map(self._n_tokens, answers))
            question = self._shorten(question, left)
        return _fill(Pair(question, *answers))

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


PART_ROWS = 20_000


def open_cache(
    settings: Mapping[str, Any],
    record: str,
    dataset: str,
    *,
    questions: Iterable[str],
    answers: Iterable[str],
) -> "EntailmentCache":
    """Return the entailment model of a record, with the cache of answers next to the record.

    `settings` is the config's section for equivalence.
    """
    checkpoint, dtype = Checkpoint.read(record), settings.get("dtype", "float32")
    source, batch_size = fetch_checked(checkpoint), settings["batch_size"]
    model = EntailmentModel(source, batch_size=batch_size, dtype=dtype)
    key = [checkpoint.weights, PREMISE, HYPOTHESIS, dtype]
    name = digest([json.dumps(key, sort_keys=True)])[:16]
    folder = Path(record).parent / name / dataset
    return EntailmentCache(folder, model, questions=questions, answers=answers)


class EntailmentCache(AbstractContextManager["EntailmentCache"]):
    """Cache the answers of an entailment model in a folder that all jobs share.

    Each job reads the parquet files that exist at its start and adds new ones, named by their
    content. Therefore jobs need no locks, even on network file systems, and a crash loses at
    most the last `PART_ROWS` answers. Unreadable files count as missing. Only pairs of
    `questions` and `answers` are loaded into memory and can be asked.
    """

    def __init__(
        self,
        folder: FilePath,
        entails: Callable[[Sequence[Any]], Sequence[bool]],
        *,
        questions: Iterable[str],
        answers: Iterable[str],
    ) -> None:
        self._folder = folder
        self._entails = entails
        self._known: dict[Pair, bool] = {}
        self._new: list[tuple[str, str, str, bool]] = []
        questions, answers = set(questions), set(answers)
        # In the order of the names, so that a part always wins over the same others.
        for path in sorted(Path(folder).glob("*.parquet")):
            try:
                part = artifacts.read(path, artifacts.ENTAILMENTS)
            except artifacts.TableError as error:
                log.warning("%s It is left out.", error)
                continue
            wanted = part["question"].isin(questions)
            wanted &= part["one"].isin(answers) & part["other"].isin(answers)
            for *pair, entailed in part[wanted].itertuples(index=False, name=None):
                self._known[Pair(*pair)] = entailed
        log.info("%d answers of the entailment model are known", len(self._known))

    def __call__(self, pairs: Sequence[Pair]) -> list[bool]:
        """Return the result of `entails` for each pair; equal pairs are tested once."""
        unknown = [pair for pair in dict.fromkeys(pairs) if pair not in self._known]
        if unknown:
            log.info("Asking about %d of %d pairs", len(unknown), len(pairs))
        for begin in range(0, len(unknown), PART_ROWS):
            batch = unknown[begin : begin + PART_ROWS]
            for pair, entailed in zip(batch, self._entails(batch), strict=True):
                self._known[pair] = bool(entailed)
                self._new.append((*pair, bool(entailed)))
            if len(self._new) >= PART_ROWS:
                self._save()
        return [self._known[pair] for pair in pairs]

    def __exit__(self, *_: object) -> None:
        """Save new answers, also after an exception."""
        self._save()

    def _save(self) -> None:
        if not self._new:
            return
        part = pd.DataFrame(sorted(self._new), columns=artifacts.ENTAILMENTS.schema.names)
        name = digest([repr(sorted(self._new))])[:32]
        artifacts.write(part, Path(self._folder, f"{name}.parquet"), artifacts.ENTAILMENTS)
        self._new = []
