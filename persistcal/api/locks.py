"""Write thresholds into a file that people commit, and check later versions by it.

A service reads the file. A check also needs labelled answers of the later version, but no old
file. If the precision is just below the target, a check says *kept* in at most 5 %.
"""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

import persistcal
from persistcal.api.evaluate import align_inputs
from persistcal.api.thresholds import ThresholdCheck
from persistcal.evaluation.findings import THRESHOLD, find_constant
from persistcal.evaluation.gate import FAIL, PASS, UNDECIDED, Gate, Ruling
from persistcal.evaluation.predictions import (
    NO_CONFIDENCE,
    AnswerArrays,
    Array,
    Mask,
    Series,
    drop_noise,
)
from persistcal.evaluation.settings import EvaluationSettings
from persistcal.evaluation.thresholds import (
    BROKEN,
    KEPT,
    check_threshold,
    labelled_questions,
    select_threshold,
)
from persistcal.readers.inputs import PredictionTables
from persistcal.readers.reading import Reading
from persistcal.readers.scales import PROBABILITIES
from persistcal.report.phrases import exact_percent, shown_threshold
from persistcal.store.files import digest, write_whole

SCHEMA = 1
DIGEST = "sha256"  # of all other keys
KEY = ("model", "dataset", *Series._fields, "earlier", "later")  # of a row of THRESHOLDS


def _digest(content: object) -> str:
    return digest([json.dumps(content, sort_keys=True)])


def _scale(reading: Reading) -> str:
    return " ".join((reading.scale or PROBABILITIES).describe()) or "probabilities"


def read_lock(path: str) -> dict[str, Any]:
    """Read a file of thresholds. Refuse another schema, and a file that somebody edited."""
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
        schema, seal = content["schema"], content.pop(DIGEST)
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ValueError(f"{path}: is no file of thresholds; give one from --lock.") from None
    if schema != SCHEMA:
        raise ValueError(
            f"{path}: has the schema {schema}, and this version reads {SCHEMA}; delete it, and "
            "write it again with --lock."
        )
    if seal != _digest(content):
        raise ValueError(
            f"{path}: was edited after --lock wrote it; restore it, or delete it and write it "
            "again."
        )
    return content


def _answers_to(
    answers: AnswerArrays, place: int, series: Series, seed: int
) -> tuple[Array, Mask, str]:
    """Return confidences, correctness and their digest, at one checkpoint."""
    rows = labelled_questions(answers, [place], seed=seed)
    stated = drop_noise(answers.confidence[series][place, rows])
    right = answers.correct[place, rows] == 1
    return stated, right, _digest([stated.tolist(), right.tolist()])


def write_lock(
    path: str,
    inputs: PredictionTables,
    reading: Reading,
    settings: EvaluationSettings,
    checked: ThresholdCheck,
) -> tuple[bool, str]:
    """Write the thresholds for the last version. Return whether there are any, and a sentence.

    An old threshold stays if the check kept it, or if more labels can decide. Otherwise the
    last version selects one.
    """
    if Path(path).exists():
        read_lock(path)
    target, thresholds, texts = settings.precision, [], []
    rows = checked.tables["thresholds"].to_dict("records")
    old = {tuple(row[name] for name in KEY): row for row in rows}
    for (model, dataset), data in checked.subjects.items():
        answers, last = data.answers, len(data.answers.checkpoints) - 1
        first, later = answers.checkpoints[0], answers.checkpoints[last]
        constant = find_constant(answers, (last, last))
        for series in (one for one in answers.confidence if not constant[one.member]):
            row = old.get((model, dataset, *series, first, later), {})
            cut, place, origin = row.get("threshold"), 0, row.get("verdict", "")
            if origin != KEPT and not 0 < row.get("labels_to_decide", np.nan) < np.inf:
                place, origin = last, "selected"
            stated, right, source = _answers_to(answers, place, series, settings.seed)
            if place == last:
                selected = select_threshold(
                    stated, right, precision=target, delta=settings.delta
                )
                cut = selected and selected.threshold
            checkpoint = answers.checkpoints[place]
            place_text = f" (seed {series.seed})" if answers.n_seeds(series.member) > 1 else ""
            place_text += f" on {model} · {dataset}" if len(checked.subjects) > 1 else ""
            if cut is None:
                texts.append(f"{series.estimator}{place_text}: no threshold is sure on {later}")
                continue
            shown = f"{shown_threshold(cut)} of {checkpoint} ({origin} on {later})"
            texts.append(f"{series.estimator}{place_text}: {shown}")
            entry: dict[str, Any] = {"model": model, "dataset": dataset, **series._asdict()}
            entry |= {"threshold": cut, "checkpoint": checkpoint, "answers": source}
            thresholds.append(entry | {"verdict": origin})
    if not thresholds:
        why = "; ".join(texts) or "each estimator has one confidence for all questions"
        text = f"Nothing is locked for {exact_percent(target)}: {why}."
        return False, f"{text} Lower --precision, or ask about more questions."
    lock = {
        "schema": SCHEMA,
        "version": persistcal.__version__,
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "scale": _scale(reading),
        "target": target,
        "delta": settings.delta,
        "inputs": inputs.digests,
        "thresholds": thresholds,
    }
    write_whole(path, json.dumps(lock | {DIGEST: _digest(lock)}, indent=1, ensure_ascii=False))
    return True, f"Locked in {path} for {exact_percent(target)}: {'; '.join(texts)}."


def check_lock(
    path: str, inputs: PredictionTables, reading: Reading, settings: EvaluationSettings
) -> Gate:
    """Check each version in the files by the thresholds of a file."""
    lock = read_lock(path)
    if (scale := _scale(reading)) != lock["scale"]:
        raise ValueError(
            f"{path}: was written for {lock['scale']}, and these are {scale}; give --check the "
            "options that --lock had."
        )
    rulings = []
    for (model, dataset), data in align_inputs(inputs, settings).items():
        answers = data.warned().answers
        locked = [row for row in lock["thresholds"] if row["dataset"] == dataset]
        locked = [row for row in locked if row["model"] == model] or locked
        if not locked:
            names = ", ".join(dict.fromkeys(row["dataset"] for row in lock["thresholds"]))
            raise ValueError(
                f"{path}: is of the dataset {names}, and the files have {dataset}; give its "
                "answers."
            )
        for row in locked:
            series = Series(*(row[name] for name in Series._fields))
            if series not in answers.confidence:
                names = ", ".join(sorted({e for _, e in answers.estimators} - {NO_CONFIDENCE}))
                raise ValueError(
                    f"{path}: is of the estimator {series.estimator} (seed {series.seed}), and "
                    f"the files have {names or 'no confidence'}; give its answers."
                )
            for place, checkpoint in enumerate(answers.checkpoints):
                stated, right, source = _answers_to(answers, place, series, settings.seed)
                if source == row["answers"]:
                    raise ValueError(
                        f"{path}: {checkpoint} selected the threshold, or is a copy, so its "
                        "answers cannot check it; give later ones."
                    )
                check = check_threshold(
                    row["threshold"], stated, right, precision=lock["target"]
                )
                word, n = check.verdict, check.n_to_decide
                result = {KEPT: PASS, BROKEN: FAIL}.get(word, UNDECIDED)
                if 0 < n < np.inf:
                    word += f"; {n:,.0f} answers above {row['threshold']:.3g} would decide"
                numbers = check.answered.precision, check.lower, check.upper
                name = model, dataset, row["checkpoint"], checkpoint, series.estimator
                rulings += [Ruling(*name, THRESHOLD, lock["target"], result, word, *numbers)]
    return Gate(rulings)
