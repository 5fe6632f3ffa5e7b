"""Find and read every estimator's confidences in the authors' released results."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from persistcal.imports.release.files import (
    NO_ANSWER,
    UNKNOWN,
    Flags,
    Floats,
    ReleaseError,
    Span,
    Tree,
    model_folder,
)
from persistcal.imports.release.shards import ReleasedAnswers, read_confidences

SURROGATE = "pred_confs_surrogate"
ORDINARY = "pred_confs"
# Estimators of adapters: the checkpoints trained on, and how the configuration's name ends.
ADAPTERS = {
    "non_oracle": ("earlier", "_ncand2"),
    "non_oracle_1answer": ("earlier", ""),
    "non_oracle_single": ("last_earlier", "_ncand2"),
    "non_oracle_single_1answer": ("last_earlier", ""),
    "oracle": ("evaluation", "_ncand2"),
    "oracle_1answer": ("evaluation", ""),
    "oracle_respective": ("own", "_ncand2"),
    "oracle_respective_1answer": ("own", ""),
}
ABLATIONS = {
    "oracle_single_data": ("evaluation", "_ncand2_onedata"),
    "oracle_pooled_data": ("own", "_ncand2_pooldata"),
}
TRANSFERS = ("transfer", "transfer_random")
# Blacklisted questions are a few in thousands; more of them means a damaged file.
MAX_LEFT_OUT = 0.05

Key = tuple[str, str]  # checkpoint and split


class Model(NamedTuple):
    """A model: its Hub repo, and revisions by checkpoint in order of training."""

    repo: str
    earlier: Mapping[str, str]
    evaluation: Mapping[str, str]

    @property
    def revisions(self) -> dict[str, str]:
        """Revisions of all checkpoints."""
        return {**self.earlier, **self.evaluation}


class Dataset(NamedTuple):
    """A dataset: canonical indices of its splits, and the training sets if not its own."""

    name: str
    test: Span
    train: Span | None = None
    train_datasets: Sequence[str] = ()

    @property
    def splits(self) -> dict[str, Span]:
        """Spans of the splits that the dataset has."""
        spans = {"train": self.train, "test": self.test}
        return {split: (span[0], span[1]) for split, span in spans.items() if span}


class Run(NamedTuple):
    """One run of an estimator; `trained_on` tells apart the adapters of a transfer matrix."""

    estimator: str
    train_dataset: str
    seed: int
    trained_on: str = ""


class Source(NamedTuple):
    """Where a run's confidences in the answers of `checkpoint` lie."""

    run: Run
    checkpoint: str
    split: str
    folder: str
    prefix: str


class Estimates(NamedTuple):
    """All that the release estimates about one model on one dataset."""

    model: Model
    dataset: Dataset
    answers: Mapping[Key, ReleasedAnswers]
    # By run and split: those of each checkpoint whose files are all there
    confidences: dict[tuple[Run, str], dict[str, Floats]]
    left_out: dict[str, Flags]  # by split, questions that were answered, without a confidence
    missing: list[tuple[str, str, str]]  # estimator, checkpoint and path of absent files


def _adapter(
    model: Model, train_dataset: str, revisions: Iterable[str], ending: str, seed: int
) -> str:
    """Return the folder of an adapter's confidences."""
    return (
        f"{train_dataset}/{model_folder(model.repo)}/{'_'.join(revisions)}/"
        f"confidence_lora_{train_dataset}_acc_lr2e-4_bs16_5k{ending}/seed{seed}/epoch1"
    )


def _evaluated(
    model: Model,
    name: str,
    train_dataset: str,
    adapters: Mapping[str, tuple[str, str]],
    seeds: Sequence[int],
) -> Iterator[Source]:
    """Yield the sources of adapters at the evaluation checkpoints."""
    joint = {
        "earlier": list(model.earlier.values()),
        "last_earlier": list(model.earlier.values())[-1:],
        "evaluation": list(model.evaluation.values()),
    }
    for estimator, (trained_on, ending) in adapters.items():
        for seed in seeds:
            for checkpoint, revision in model.evaluation.items():
                revisions = [revision] if trained_on == "own" else joint[trained_on]
                folder = _adapter(model, train_dataset, revisions, ending, seed)
                run = Run(estimator, train_dataset, seed)
                yield Source(run, checkpoint, "test", folder, f"{ORDINARY}_{name}_{revision}")


def _ablated(tree: Tree, model: Model, name: str, seeds: Sequence[int]) -> Iterator[Source]:
    """Yield the sources that involve the last earlier checkpoint's weights or answers."""
    last, last_revision = list(model.earlier.items())[-1]
    own = f"{name}/{model_folder(model.repo)}/sc_surrogate/{last_revision}"
    for checkpoint, revision in model.evaluation.items():
        run = Run("self_consistency_surrogate", name, 0)
        prefix = f"pred_confs_sc_surrogate_{name}_{revision}"
        yield Source(run, checkpoint, "test", own, prefix)
    for seed in seeds:
        folder = _adapter(model, name, model.earlier.values(), "_ncand2", seed)
        for checkpoint, revision in model.evaluation.items():
            run = Run("non_oracle_surrogate", name, seed)
            yield Source(run, checkpoint, "test", folder, f"{SURROGATE}_{name}_{revision}")
        # The last earlier checkpoint is its own surrogate: the authors kept one of the two.
        kinds = [
            kind
            for kind in (SURROGATE, ORDINARY)
            if tree.has_any(folder, f"{kind}_{name}_{last_revision}")
        ]
        prefix = f"{(kinds or [ORDINARY])[0]}_{name}_{last_revision}"
        yield Source(Run("non_oracle_copy", name, seed), last, "test", folder, prefix)


def _gcm(model: Model, name: str) -> Iterator[Source]:
    """Yield the sources of GCM, and of what its calibrator is fitted on."""
    folder = f"{name}/{model_folder(model.repo)}/gcm/GCM-Qwen3-8B-TriviaQA"
    for estimator, split, revisions in (
        ("gcm", "test", model.evaluation),
        ("gcm_posthoc", "train", model.earlier),
    ):
        for checkpoint, revision in revisions.items():
            prefix = f"pred_confs_gcm_{name}_{revision}"
            yield Source(Run(estimator, name, 0), checkpoint, split, folder, prefix)


def _transfers(model: Model, name: str, seed: int) -> Iterator[Source]:
    """Yield the sources of both transfer matrices: every adapter at every checkpoint."""
    single = [(checkpoint,) for checkpoint in model.revisions]
    matrices = zip(TRANSFERS, (single, pairwise(model.revisions)), strict=True)
    for (recipe, sets), ending in zip(matrices, ("", "_ncand2_random"), strict=True):
        for trained_on in sets:
            revisions = [model.revisions[checkpoint] for checkpoint in trained_on]
            folder = _adapter(model, name, revisions, ending, seed)
            run = Run(recipe, name, seed, "+".join(trained_on))
            for checkpoint, revision in model.revisions.items():
                yield Source(run, checkpoint, "test", folder, f"{ORDINARY}_{name}_{revision}")


def sources(
    tree: Tree, model: Model, dataset: Dataset, seeds: Sequence[int]
) -> Iterator[Source]:
    """Yield where each estimator's confidences for a dataset should be.

    A dataset without a train split of its own has only the adapters trained elsewhere.
    """
    name = dataset.name
    for train_dataset in dataset.train_datasets or [name]:
        yield from _evaluated(model, name, train_dataset, ADAPTERS, seeds)
    if not dataset.train_datasets:
        yield from _evaluated(model, name, name, ABLATIONS, seeds)
        yield from _ablated(tree, model, name, seeds)
        yield from _gcm(model, name)
        yield from _transfers(model, name, seeds[0])


def read_estimates(
    tree: Tree,
    model: Model,
    dataset: Dataset,
    answers: Mapping[Key, ReleasedAnswers],
    *,
    seeds: Sequence[int],
) -> Estimates:
    """Read all that the release estimates about `model` on `dataset`.

    Labels that judge.pt does not hold are filled into `answers` from the confidence files;
    the first of `seeds` is that of the transfer matrices.
    """
    no_question = {
        split: np.zeros(end - begin, bool) for split, (begin, end) in dataset.splits.items()
    }
    estimates = Estimates(model, dataset, answers, {}, no_question, [])
    for source in sources(tree, model, dataset, seeds):
        run, checkpoint, split = source.run, source.checkpoint, source.split
        span, label = dataset.splits[split], answers[checkpoint, split].label
        read = read_confidences(tree, source.folder, source.prefix, span, label)
        filled = (label == UNKNOWN) & (read.label != UNKNOWN) & (read.label != NO_ANSWER)
        label[filled] = read.label[filled]
        left_out = np.isnan(read.confidence) & (read.label != UNKNOWN) & (label > 0)
        n_left_out, n_answered = left_out.sum(), (label > 0).sum()
        if n_left_out > MAX_LEFT_OUT * n_answered:
            raise ReleaseError(
                f"{tree.named(source.folder)}/{source.prefix}_*.pt: no confidence for "
                f"{n_left_out} of {n_answered} answered questions, the first of them "
                f"{span[0] + int(left_out.argmax())}; download the release again."
            )
        estimates.left_out[split][left_out] = True
        estimates.missing.extend((run.estimator, checkpoint, path) for path in read.missing)
        of_run = estimates.confidences.setdefault((run, split), {})
        if not read.missing:
            of_run[checkpoint] = read.confidence
    answered = any((of.label != UNKNOWN).any() for of in answers.values())
    if not answered and not any(estimates.confidences.values()):
        raise ReleaseError(
            f"{tree.named(dataset.name)}/{model_folder(model.repo)}: the release holds nothing "
            f"about {model.repo} on {dataset.name}; check the model's repo and the dataset's "
            "name, or leave them out of the study."
        )
    return estimates
