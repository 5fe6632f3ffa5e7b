"""What the page says of a study in words."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from persistcal.evaluation.arrange import ABSENT
from persistcal.evaluation.question_ids import partly_shared
from persistcal.report.page.sentences import compare, sentence
from persistcal.report.page.study import Study, part_label


def sentences(study: Study) -> list[dict[str, str]]:
    """Return a sentence per model, dataset and what its estimators were trained on."""
    said = []
    for part, replicates in zip(study.parts, study.replicates, strict=True):
        members = list(part.members)
        trained = list(dict.fromkeys(t for t, _ in members if t != part.dataset)) or [
            part.dataset
        ]
        for train_dataset in trained:
            # Where adapters come from elsewhere, what needs no training stands beside them.
            chosen = {
                e: (t, e)
                for t, e in sorted(members, key=lambda m: m[0] == train_dataset)
                if t in (train_dataset, part.dataset) and (e in study.main or not study.main)
            }
            compared = compare(replicates, list(chosen.values()))
            about = part_label(part, study.labels)
            if len(trained) > 1 or train_dataset != part.dataset:
                name = study.labels["datasets"].get(train_dataset, train_dataset)
                about += f", trained on {name}"
            text = (
                sentence(compared, study.labels["estimators"])
                if compared
                else "Nothing can be said: no measure is defined."
            )
            if compared and compared.scope == "full":
                text += " No contrast set is large enough to say whether it follows knowledge."
            said.append({"about": about, "text": text})
        if wrong := [
            study.checkpoints[part.model][name].label
            for name, correct in zip(part.checkpoints, part.correct, strict=True)
            if not (correct == 1).any()
        ]:
            text = (
                f"No answer of {', '.join(wrong)} is correct; see whether answers and "
                "references have the same form."
            )
            said.append({"about": part_label(part, study.labels), "text": text})
    return said


def lede(study: Study) -> str:
    """Return the paragraph below the question."""
    models = len({part.model for part in study.parts})
    return (
        f"Several training checkpoints of {'a model' if models == 1 else f'{models} models'} "
        "answered the same questions, and what they know differs. A good confidence differs "
        "with it. One that only tells hard questions from easy ones may look as good on all "
        "questions together, and is at chance where knowledge changed."
    )


def counts(study: Study) -> list[tuple[str, str]]:
    """Return how large the study is: numbers, and of what."""
    parts = study.parts

    def plural(n: int, name: str) -> tuple[str, str]:
        return f"{n:,}", name if n == 1 else f"{name}s"

    return [
        plural(len({p.model for p in parts}), "model"),
        plural(len({(p.model, c) for p in parts for c in p.checkpoints}), "checkpoint"),
        plural(len({p.dataset for p in parts}), "dataset"),
        plural(sum(len(p.answers.questions) for p in parts), "question"),
        plural(len({e for p in parts for _, e in p.answers.estimators}), "estimator"),
        plural(study.n_confidences, "confidence"),
    ]


def explorer_note(
    study: Study, chosen: Sequence[NDArray[np.intp]], kept: Sequence[bool]
) -> str:
    """Return what the explorer holds of all questions."""
    n, of = sum(map(len, chosen)), sum(len(p.answers.questions) for p in study.parts)
    if all(kept):
        return (
            f"Every question, every answer, every confidence: {n:,} questions, each with a "
            "link of its own."
        )
    return (
        f"{n:,} of {of:,} questions, so that the page stays small: those of contrast sets "
        f"first, then a random sample of the others (seed {study.seed}). All other numbers on "
        "this page are of all questions."
    )


def missing(study: Study, kept: Sequence[bool]) -> list[str]:
    """Return what the data themselves say is missing."""
    lines = []
    for part, whole in zip(study.parts, kept, strict=True):
        name = part_label(part, study.labels)
        answered = part.answers.correct != ABSENT
        ids = [part.answers.questions[some] for some in answered]
        if partly := partly_shared(dict(zip(part.answers.checkpoints, ids, strict=True))):
            lines.append(f"{name}: {partly}.")
        small = [pair for pair in part.pairs if not pair.kept]
        if small:
            pairs = ", ".join(
                f"{part.answers.checkpoints[p.earlier]}–{part.answers.checkpoints[p.later]} "
                f"({len(p.questions):,})"
                for p in small
            )
            lines.append(
                f"{name}: contrast sets of fewer than {study.min_contrast[part.dataset]:,} "
                f"questions are left out of the contrast metrics: {pairs}."
            )
        large = [pair for pair in part.pairs if pair.kept]
        single = [p for p in large if p.improvement.all() or not p.improvement.any()]
        if single:
            names = ", ".join(
                f"{part.answers.checkpoints[p.earlier]}–{part.answers.checkpoints[p.later]}"
                for p in single
            )
            lines.append(
                f"{name}: Δ₀ᵇ and Δᵇ are means over {len(large) - len(single)} of {len(large)} "
                f"pairs: {names} hold improvements or regressions alone. With more questions "
                "there may be both; study.pairs names the pairs that are compared."
            )
        if part.texts is None:
            lines.append(
                f"{name}: the study has predictions alone, so there are no texts to read."
            )
        if not whole:
            lines.append(f"{name}: the explorer holds a part of the questions.")
    for table in study.tables:
        if table.description is not None and (lost := int(table.cells["value"].isna().sum())):
            lines.append(
                f"Table {table.name}: {lost:,} of {len(table.cells):,} cells have no value; "
                "the log of make_table names the estimators."
            )
    return [*lines, *study.analyses.absent()]
