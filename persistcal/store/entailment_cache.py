"""Answers of an entailment model on disk, shared by all jobs."""

import hashlib
import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import pandas as pd

from persistcal.store import artifacts
from persistcal.store.files import FilePath, inside, names_in
from persistcal.store.files import folder_of as folder_of_file

log = logging.getLogger(__name__)

PART_ROWS = 20_000

Pair = tuple[str, str, str]  # a question, and two answers to it


def folder_of(record: str, asked: str, dataset: str) -> str:
    """Return the cache of a model's answers about a dataset, beside the model's record.

    `asked` is a digest of the model and of how it is asked.
    """
    return inside(inside(folder_of_file(record), asked), dataset)


class EntailmentCache(AbstractContextManager["EntailmentCache"]):
    """Ask an entailment model only what no job has asked it before; a folder for each model.

    Each job adds parquet files of its own, named by their content, and reads those that are
    there when it begins; so jobs need no locks, on network file systems either, and a crash
    loses at most the last `PART_ROWS` answers. A file that cannot be read counts as missing.
    Only `questions` and `answers` may be asked about: the rest is not kept in memory.
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
        self._known = self._recall(set(questions), set(answers))
        self._new: list[tuple[str, str, str, bool]] = []

    def __call__(self, pairs: Sequence[Pair]) -> list[bool]:
        """Say of each pair what `entails` says; equal pairs are asked once."""
        unknown = [pair for pair in dict.fromkeys(pairs) if pair not in self._known]
        if unknown:
            log.info("Asking about %d of %d pairs", len(unknown), len(pairs))
        for begin in range(0, len(unknown), PART_ROWS):
            asked = unknown[begin : begin + PART_ROWS]
            answers = [bool(answer) for answer in self._entails(asked)]
            self._known.update(zip(asked, answers, strict=True))
            self._new += [(*pair, said) for pair, said in zip(asked, answers, strict=True)]
            if len(self._new) >= PART_ROWS:
                self._save()
        return [self._known[pair] for pair in pairs]

    def __exit__(self, *_: object) -> None:
        """Save what is not saved yet, however the ``with`` block ends."""
        self._save()

    def _recall(self, questions: set[str], answers: set[str]) -> dict[Pair, bool]:
        known: dict[Pair, bool] = {}
        # In the order of the names, so that a part always wins over the same others.
        for name in names_in(self._folder, "*.parquet"):
            try:
                part = artifacts.read(inside(self._folder, name), artifacts.ENTAILMENTS)
            except artifacts.TableError as error:
                log.warning("%s It is left out.", error)
                continue
            wanted = (
                part["question"].isin(questions)
                & part["one"].isin(answers)
                & part["other"].isin(answers)
            )
            for *pair, entailed in part[wanted].itertuples(index=False, name=None):
                known[tuple(pair)] = entailed
        log.info("%d answers of the entailment model are known", len(known))
        return known

    def _save(self) -> None:
        if not self._new:
            return
        part = pd.DataFrame(sorted(self._new), columns=artifacts.ENTAILMENTS.schema.names)
        name = hashlib.sha256(repr(sorted(self._new)).encode()).hexdigest()[:32]
        artifacts.write(part, inside(self._folder, f"{name}.parquet"), artifacts.ENTAILMENTS)
        self._new = []
