"""Write thresholds into a file that people commit, and check later versions by it.

A service reads the file. A check also needs labelled answers of the later version, but no old
file. If the precision is just below the target, a check says *kept* in at most 5 %.
"""

import json
from collections.abc import Mapping
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
    ABSENT,
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
    one_per_group,
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


def _digest(content: Mapping[str, Any]) -> str:
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
            f"{path}: has the schema {schema}, and this version reads {SCHEMA}; write it again "
            "with --lock."
        )
    if seal != _digest(content):
        raise ValueError(
            f"{path}: was edited after --lock wrote it; restore it, or write it again."
        )
    return content


def _answers_to(
    answers: AnswerArrays, place: int, series: Series, seed: int
) -> tuple[Array, Mask]:
    """Return confidences and correctness at one checkpoint, one question of each group."""
    answered = np.flatnonzero(answers.correct[place] != ABSENT)
    chosen = one_per_group(answers.groups, answered, seed=seed)
    stated = drop_noise(answers.confidence[series][place, chosen])
    return stated, answers.correct[place, chosen] == 1


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
    subjects = align_inputs(inputs, settings)
    for (model, dataset), data in subjects.items():
        answers, last = data.answers, len(data.answers.checkpoints) - 1
        first, later = answers.checkpoints[0], answers.checkpoints[last]
        constant = find_constant(answers, (last, last))
        for series in (one for one in answers.confidence if not constant[one.member]):
            row = old.get((model, dataset, *series, first, later), {})
            chosen, checkpoint, how = row.get("threshold"), first, row.get("verdict", "")
            if how != KEPT and not 0 < row.get("labels_to_decide", np.nan) < np.inf:
                stated, right = _answers_to(answers, last, series, settings.seed)
                found = select_threshold(stated, right, precision=target, delta=settings.delta)
                chosen, checkpoint, how = found and found.threshold, later, "selected"
            is_alone = sum(of.member == series.member for of in answers.confidence) == 1
            on = "" if is_alone else f" (seed {series.seed})"
            on += f" on {model} · {dataset}" if len(subjects) > 1 else ""
            if chosen is None:
                texts.append(f"{series.estimator}{on}: no threshold is sure on {later}")
                continue
            shown = f"{shown_threshold(chosen)} of {checkpoint} ({how} on {later})"
            texts.append(f"{series.estimator}{on}: {shown}")
            place = {"model": model, "dataset": dataset, **series._asdict()}
            thresholds.append(
                place | {"threshold": chosen, "checkpoint": checkpoint, "verdict": how}
            )
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
        raise ValueError(f"{path}: was written for {lock['scale']}, and these are {scale}.")
    rulings = []
    for (model, dataset), data in align_inputs(inputs, settings).items():
        answers = data.answers
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
                is_own = {*inputs.digests.values()} & {*lock["inputs"].values()}
                if is_own and checkpoint == row["checkpoint"]:
                    raise ValueError(
                        f"{path}: {checkpoint} selected the threshold, so its answers cannot "
                        "check it; give later ones."
                    )
                stated, right = _answers_to(answers, place, series, settings.seed)
                found = check_threshold(
                    row["threshold"], stated, right, precision=lock["target"]
                )
                word, n = found.verdict, found.n_to_decide
                result = {KEPT: PASS, BROKEN: FAIL}.get(word, UNDECIDED)
                more = f"; {n:,.0f} answers above {row['threshold']:.3g} would decide"
                word += more * (0 < n < np.inf)
                numbers = found.answered.precision, found.lower, found.upper
                name = model, dataset, row["checkpoint"], checkpoint, series.estimator
                rule = (*name, THRESHOLD, lock["target"], result, word)
                rulings.append(Ruling(*rule, *numbers))
    return Gate(rulings)
