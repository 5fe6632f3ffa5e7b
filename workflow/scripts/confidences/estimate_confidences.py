"""Let an estimator, one function of the project's or of the user's, rate the predictions."""

import contextlib
import importlib
import importlib.util
import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from persistcal.answers.equivalence_backends import open_equivalence
from persistcal.confidence.evidence import Estimator, Evidence, rate
from persistcal.confidence.gathering import calibrate_runs, join_predictions
from persistcal.confidence.needs import check_needs
from persistcal.store import artifacts
from persistcal.store.logs import log_to

log = logging.getLogger(__name__)


def estimate_confidences(
    questions_path: str,
    beams_paths: Sequence[str],
    clusters_paths: Sequence[str],
    answers_paths: Sequence[str],
    output_path: str,
    *,
    dataset: str,
    estimator: str,
    function: str,
    checkpoints: Sequence[str],
    judged: Sequence[str],
    earlier: Sequence[str],
    evaluation: Sequence[str],
    equivalence: Mapping[str, Any],
    split: str | None = None,
    posthoc: str | None = None,
    verified_path: str | None = None,
    checkpoint_paths: Sequence[str] | None = None,
    compares_answers: bool = False,
    entailment_model_path: str = "",
    sampled: bool = False,
    prompt: str = "",
    words: Sequence[str] | None = None,
    threads: int = 1,
    about: Mapping[str, str] | None = None,
) -> None:
    """Write the predictions with the confidences that `function` gives them, or SCORES of one.

    Parameters
    ----------
    questions_path : str
        Table QUESTIONS.
    beams_paths, clusters_paths, checkpoint_paths : sequence of str
        Tables BEAMS and CLUSTERS, and records, of the `checkpoints` that it reads.
    answers_paths : sequence of str
        Tables ANSWERS of the checkpoints `judged`: the evaluated ones, after the earlier
        ones if the estimator is fitted.
    output_path : str
        Table PREDICTIONS; SCORES of the one checkpoint `evaluation` where `split` is given.
    split : str, optional
        Of the answers of that checkpoint.
    dataset, estimator : str
        What is rated, and by whom.
    function : str
        Name of a module in `persistcal.confidence.estimators`, or a Python file; the
        function in it has the same name.
    earlier, evaluation : sequence of str
        Checkpoints of the model.
    equivalence, entailment_model_path, threads
        As for `cluster_answers`, for an estimator that `compares_answers`.
    posthoc : str, optional
        How the confidences are calibrated on the earlier checkpoints' train answers.
    verified_path : str, optional
        Table VERIFIED.
    sampled, prompt, words
        See `Evidence`.
    """
    estimate, needs = find_estimator(function)
    questions = artifacts.read(questions_path, artifacts.QUESTIONS)
    clusters = _of_each(checkpoints, clusters_paths, artifacts.CLUSTERS)
    answers = _of_each(judged, answers_paths, artifacts.ANSWERS)
    asked = _predictions(questions, answers, evaluation, split or "test")
    labelled = _predictions(questions, answers, [c for c in judged if c in earlier], "train")
    beams = _of_each(checkpoints, beams_paths, artifacts.BEAMS)
    check_needs(estimator, needs, beams)
    verified = artifacts.read(verified_path, artifacts.VERIFIED) if verified_path else None
    load = loader(checkpoints, checkpoint_paths, threads) if checkpoint_paths else None
    comparing: Any = contextlib.nullcontext()
    if compares_answers:
        comparing = open_equivalence(
            equivalence,
            entailment_model_path,
            dataset,
            questions=questions["question"],
            answers={*answers["answer"], *clusters["members"].explode()},
            threads=threads,
        )
    with comparing as equivalent:
        groups = tuple(earlier), tuple(evaluation)
        evidence = Evidence(
            *groups,
            labelled,
            clusters,
            beams,
            verified,
            equivalent,
            load,
            sampled,
            prompt,
            (words[0], words[1]) if words else None,
        )

        def rated(predictions: pd.DataFrame) -> pd.DataFrame:
            confidence = rate(
                estimate, predictions.drop(columns="correct"), evidence, estimator
            )
            return predictions.assign(train_dataset=dataset, seed=0, confidence=confidence)

        confidences = rated(asked)
        if posthoc:
            confidences = calibrate_runs(confidences, rated(labelled), posthoc, estimator)
            log.info("%s fitted on %d answers", posthoc, len(labelled))
    mean = confidences["confidence"].mean()
    log.info("%d predictions, mean confidence %.3f", len(asked), mean)
    if split:
        scores = confidences.assign(recipe=estimator, trained_on="")
        scores = scores.rename(columns={"checkpoint": "answers_of"})
        columns = artifacts.SCORES.schema.names
        artifacts.write(scores[columns], output_path, artifacts.SCORES, about=about)
        return
    columns = ["checkpoint", "question_id", "train_dataset", "seed", "confidence"]
    predictions = join_predictions(asked, confidences[columns], estimator)
    artifacts.write(predictions, output_path, artifacts.PREDICTIONS, about=about)


def find_estimator(function: str) -> tuple[Estimator, tuple[str, ...]]:
    """Return the function that the config names, and what it needs of the answers.

    It is in a module of the project's, or in a file.
    """
    name = Path(function).stem
    if function.endswith(".py"):
        spec = importlib.util.spec_from_file_location(name, function)
        assert spec and spec.loader, function
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    else:
        module = importlib.import_module(f"persistcal.confidence.estimators.{function}")
    if not callable(estimate := getattr(module, name, None)):
        raise ValueError(f"{function}: define a function {name}(answers, evidence) in it.")
    return estimate, getattr(module, "NEEDS", ())


def loader(
    checkpoints: Sequence[str], paths: Sequence[str], threads: int
) -> Callable[[str], tuple[Any, Any]]:
    """Return what loads model and tokenizer of a checkpoint by its name."""
    from persistcal.models import load
    from persistcal.models.checkpoint import Checkpoint

    load.set_threads(threads)
    records = dict(zip(checkpoints, paths, strict=True))

    def load_checkpoint(name: str) -> tuple[Any, Any]:
        checkpoint = Checkpoint.read(records[name])
        tokenizer = load.open_tokenizer(checkpoint)
        return load.open_model(checkpoint), tokenizer

    return load_checkpoint


def _of_each(
    checkpoints: Sequence[str], paths: Sequence[str], table: artifacts.Table
) -> pd.DataFrame:
    """Read a table of each checkpoint into one, with a column checkpoint."""
    parts = zip(checkpoints, paths, strict=True)
    return pd.concat(
        [artifacts.read(path, table).assign(checkpoint=name) for name, path in parts],
        ignore_index=True,
    )


def _predictions(
    questions: pd.DataFrame, answers: pd.DataFrame, checkpoints: Sequence[str], split: str
) -> pd.DataFrame:
    """Return the predictions of some checkpoints on a split, with their questions."""
    chosen = answers["checkpoint"].isin(checkpoints) & (answers["split"] == split)
    asked = answers[chosen].merge(questions[["question_id", "question"]], how="left")
    columns = ["checkpoint", "question_id", "question", "answer", "probability", "correct"]
    return asked[columns].reset_index(drop=True)


if __name__ == "__main__":
    log_to(snakemake.log[0])
    files, settings = snakemake.input, dict(snakemake.params.items())
    settings.pop("code")
    estimate_confidences(
        files.questions,
        files.beams,
        files.clusters,
        files.answers,
        snakemake.output[0],
        dataset=snakemake.wildcards.dataset,
        estimator=snakemake.wildcards.estimator,
        verified_path=files.get("verified"),
        checkpoint_paths=files.get("checkpoints"),
        entailment_model_path=files.get("entailment_model", ""),
        threads=snakemake.threads,
        about=dict(snakemake.wildcards.items()),
        **settings,
    )
