"""Facts about a study itself: how it was made, its size and its gaps."""

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from persistcal.evaluation.contrast import ContrastSet
from persistcal.evaluation.predictions import (
    ABSENT,
    partly_shared,
    shared_by_models,
    training_seeds,
)
from persistcal.models.checkpoint import Checkpoint
from persistcal.report.page.contents import Contents, Part, StudyTables
from persistcal.store.provenance import package_versions

RECORD = "study.yaml (the whole config) and provenance.json, in the folder of the results"


def about(
    study: Contents, *, commit: str, weights: Mapping[str, Checkpoint], machines: str = ""
) -> list[tuple[str, str]]:
    """Return terms and their texts, for a list of definitions.

    `commit` is the code's commit, or empty outside a checkout. `weights` contains records by
    "model/checkpoint", and `machines` are the machines of a study's jobs.
    """
    shown = study.shown
    settings = next(iter(shown.settings.values()))
    estimators = study.made.predictions.groupby(["train_dataset", "estimator"])["seed"]
    trained = sorted({*chain.from_iterable(training_seeds(seeds) for _, seeds in estimators)})
    lines = [
        ("Page made", datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")),
        *([("Results", shown.results)] if shown.results != "." else []),
        *([("Code", commit)] if commit else []),
        ("Judge", shown.judge),
        ("Seeds of training", ", ".join(map(str, trained)) or "none"),
        (
            "Bootstrap",
            f"{settings.n_replicates:,} replicates, seed {settings.seed}",
        ),
        ("Versions", ", ".join(f"{name} {v}" for name, v in package_versions().items())),
        *([("Machines", machines), ("Record", RECORD)] if machines else []),
    ]
    for name, record in weights.items():
        digests = [digest[:12] for digest in record.weights.values()]
        source = record.commit or record.revision or "local files"
        more = f" and {len(digests) - 1} more files" if digests[1:] else ""
        text = f"{source}; weights sha256 {digests[0]}{more}" if digests else source
        lines.append((name, text))
    return lines


def jobs_of(benchmarks: Sequence[tuple[str, pd.DataFrame]]) -> list[dict[str, Any]]:
    """Add up the benchmark files of jobs, by rule.

    Snakemake's column `max_rss` (MB) is "-" or missing for short jobs.
    """
    if not benchmarks:
        return []
    rows = pd.concat([frame.assign(rule=rule) for rule, frame in benchmarks])
    rows["max_rss"] = pd.to_numeric(rows["max_rss"], errors="coerce").fillna(0)
    summed = rows.groupby("rule", sort=False).agg(
        n=("s", "size"), seconds=("s", "sum"), memory=("max_rss", "max")
    )
    summed = summed.sort_values("seconds", ascending=False)
    return [
        {"name": rule, "n": n, "seconds": round(seconds, 1), "memory": float(memory)}
        for rule, n, seconds, memory in summed.itertuples(name=None)
    ]


def lede(study: Contents) -> str:
    """Return the paragraph below the question."""
    models = len({part.subject.model for part in study.parts})
    owner = "a model" if models == 1 else f"{models} models"
    if all(len(part.answers.checkpoints) == 1 for part in study.parts):
        return f"One checkpoint of {owner} answered the questions, so no change can be seen."
    stages = [stage for stages in study.stages.values() for stage in stages.values()]
    kind = "checkpoints" if any(s.tokens is None for s in stages) else "training checkpoints"
    return (
        f"Several {kind} of {owner} answered the same questions, and their knowledge differs. "
        "A good confidence changes with the knowledge. A confidence that only separates hard "
        "from easy questions can look as good on all questions, but it is at chance on "
        "questions whose answers became right or wrong."
    )


def counts(study: Contents) -> list[tuple[str, str]]:
    """Return the size of the study: numbers with their units."""
    parts = study.parts
    runs = [run for part in parts for run in part.answers.confidence.values()]  # of one ask
    sizes = {
        "model": len({p.subject.model for p in parts}),
        "checkpoint": len({(p.subject.model, c) for p in parts for c in p.checkpoints}),
        "dataset": len({p.subject.dataset for p in parts}),
        "question": sum(len(p.answers.questions) for p in parts),
        "estimator": len({e for p in parts for _, e in p.answers.estimators}),
        "confidence": int(sum(np.sum(~np.isnan(run)) for run in runs)),
    }
    return [(f"{n:,}", name if n == 1 else f"{name}s") for name, n in sizes.items()]


def explorer_note(
    study: Contents, rows: Sequence[NDArray[np.intp]], kept: Sequence[bool]
) -> str:
    """Return a sentence about the questions in the explorer."""
    n, n_all = sum(map(len, rows)), sum(len(p.answers.questions) for p in study.parts)
    if all(kept):
        return (
            f"Every question, every answer, every confidence: {n:,} questions, each with a "
            "link of its own."
        )
    return (
        f"{n:,} of {n_all:,} questions, so that the page stays small: those of contrast sets "
        f"first, then a random sample of the others (seed {study.seed}). All other "
        "numbers on this page are of all questions."
    )


def missing(study: Contents, kept: Sequence[bool]) -> list[str]:
    """Return the gaps of the study's data; `kept` marks parts shown in full."""
    lines = []
    for part, whole in zip(study.parts, kept, strict=True):
        lacks = _missing_of(part)
        if not whole:
            lacks.append("the explorer holds a part of the questions.")
        lines += [f"{part.subject.title(study.labels)}: {text}" for text in lacks]
    by_dataset: dict[str, dict[str, NDArray[np.object_]]] = {}
    for part in study.parts:
        answered = part.answers.questions[part.answers.correct[-1] != ABSENT]
        model = study.labels["models"][part.subject.model]
        by_dataset.setdefault(part.subject.dataset, {})[model] = answered
    for dataset, answered_by in by_dataset.items():
        name = study.labels["datasets"][dataset]
        lines += [
            f"{name}: the last checkpoints of {shared}."
            for shared in shared_by_models(answered_by)
        ]
    for name, rows in study.rows.items():
        if name in study.shown.descriptions and (lost := int(rows["value"].isna().sum())):
            lacking = rows.loc[rows["value"].isna(), "estimator"]
            names = ", ".join(study.labels["estimators"].get(e, e) for e in lacking.unique())
            lines.append(
                f"Table {name}: {lost:,} of {len(rows):,} cells have no value, of {names}."
            )
    return [*lines, *absent_analyses(study.made, study.shown.analyses)]


def absent_analyses(made: StudyTables, names: Collection[str]) -> list[str]:
    """Name the analyses that were asked for and that the page was made without."""
    tables = {
        "transfer": ("transfer matrices", made.transfer),
        "gcm_headroom": ("headroom over the verifier", made.headroom),
        "weight_similarity": ("similarity of weights", made.similarity),
        "hidden_state_variance": ("hidden-state variance", made.variance),
    }
    lost = [name for key, (name, rows) in tables.items() if key in names and rows.empty]
    text = "the target “all” adds them to this page."
    return [f"Analyses ({', '.join(lost)}): {text}"] if lost else []


def _missing_of(part: Part) -> list[str]:
    checkpoints, questions = part.answers.checkpoints, part.answers.questions

    def named(pair: ContrastSet) -> str:
        return f"{checkpoints[pair.earlier]}–{checkpoints[pair.later]}"

    lines = []
    ids = [questions[mask] for mask in part.answers.correct != ABSENT]
    if partly := partly_shared(dict(zip(checkpoints, ids, strict=True))):
        lines.append(f"{partly}.")
    if not part.compared:  # a verdict begins with them
        lines += part.doubts
    if small := [f"{named(p)} ({len(p.questions):,})" for p in part.pairs if not p.kept]:
        lines.append(
            f"contrast sets of fewer than {part.subject.settings.min_contrast:,} questions are "
            f"left out of the contrast metrics: {', '.join(small)}."
        )
    large = [pair for pair in part.pairs if pair.kept]
    if single := [named(p) for p in large if not p.has_both_directions]:
        lines.append(
            f"Δ₀ᵇ and Δᵇ are means over {len(large) - len(single)} of {len(large)} pairs: "
            f"{', '.join(single)} hold improvements or regressions alone. With more questions "
            "there may be both; study.pairs names the pairs that are compared."
        )
    if part.texts is None:
        lines.append("no texts of answers, because the files have predictions alone.")
    return lines
