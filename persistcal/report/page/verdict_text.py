"""A verdict as a few lines for the terminal, and as a record for JSON."""

from textwrap import fill, wrap
from typing import Any

from persistcal.evaluation.claims import IF_DECLARED
from persistcal.evaluation.findings import ASK_AFRESH, ASK_TWICE, KEEP
from persistcal.evaluation.gate import Gate
from persistcal.report.page.verdict import Rated, Verdict
from persistcal.report.phrases import (
    IN_JSON,
    MEANING,
    NONE,
    Answer,
    as_number,
    exact_percent,
    short,
    slice_answer,
)

WIDTH = 100  # characters
SHORTEST = 12  # characters for the names of a table


def verdict_text(verdict: Verdict, files: str) -> str:
    """Return a line per question, or a table for several estimators, and the next step."""
    update, accuracy = verdict.update, verdict.accuracy
    place = "" if verdict.title == "model · dataset" else f"{verdict.title}: "
    lines = [
        f"{place}{update.earlier_name} → {update.later_name}, {verdict.n_questions:,} "
        f"questions, {verdict.gained:,} gained, {verdict.lost:,} lost",
        "",
        f"accuracy     {accuracy.mark} {accuracy.word}: {accuracy.text}",
    ]
    rated = [row for row in verdict.rows if not row.is_baseline]
    if len(rated) == 1:
        lines += map(fold_line, _four_lines(rated[0], update.later_name))
    elif not rated:
        names = "confidence", "calibration", "threshold"
        lines += [f"{name:<12} {NONE} no confidence" for name in names]
    else:
        headline = fill(f"Did confidence follow? {verdict.headline}", WIDTH)
        marks = fill("  ".join(f"{m}\xa0{meaning}" for m, meaning in MEANING.items()), WIDTH)
        marks = marks.replace("\xa0", " ")
        lines += ["", *_table(verdict), "", headline, marks]
    for start, line in zip(["slices", "", "", ""], verdict.worst, strict=False):
        lines.append(fold_line(f"{start:<12} {line}"))
    steps = [f"Next: {next_step(verdict, files)}"]
    if words := {r.follows.word for r in rated if r.follows and r.follows.next == ASK_TWICE}:
        declare = ", or say by --greedy that no answer differs by chance"
        steps.append(
            "Flips can be chance. To learn whether confidence followed, ask twice and give the "
            f"second answers with --again{'' if words == {IF_DECLARED} else declare}."
        )
    if copied := [r.follows.why for r in rated if r.follows and r.follows.next == ASK_AFRESH]:
        steps.append(f"{copied[0]}. Ask again without a cache and with another seed.")
    return "\n".join([*lines, "", *(fill(step, WIDTH) for step in steps)])


def fold_line(line: str, indent: int = 13) -> str:
    """Return a line in the width of the verdict; what does not fit is indented."""
    return fill(line, WIDTH, subsequent_indent=" " * indent)


def _four_lines(row: Rated, later: str) -> list[str]:
    calibrated = row.calibrated
    if calibrated:
        calibrated = calibrated._replace(word=f"{calibrated.word} at {later}")
    answers = {"confidence": row.follows, "calibration": calibrated, "threshold": row.threshold}
    return [
        f"{name:<12} {answer.mark} {answer.word}" + (f": {answer.text}" if answer.text else "")
        for name, answer in answers.items()
        if answer
    ]


def _table(verdict: Verdict) -> list[str]:
    """Return a row per estimator and a column per question; long names take several lines."""
    later = verdict.update.later_name
    rows = [["", "did it follow?", f"calibrated at {later}?"]]
    if verdict.target is not None:
        heads = f"threshold for {exact_percent(verdict.target)}:", "right, answered"
        rows = [["", "", "", heads[0]], [*rows[0], heads[1]]]
    for rated in verdict.rows:
        answers = (rated.follows, rated.calibrated, rated.threshold)
        cells = [f"{one.mark} {one.brief}" if one.brief else NONE for one in answers if one]
        if rated.is_baseline:
            cells = ["baseline: the same confidence for all questions"]
        rows.append([rated.label, *cells])
    whole = [row for row in rows if len(row) > 2]
    widths = [max(len(row[k]) for row in whole if k < len(row)) for k in range(1, len(rows[0]))]
    room = max(SHORTEST, WIDTH - sum(widths) - 2 * len(widths))
    names = [wrap(row[0], room) or [""] for row in rows]
    widths = [max(len(part) for name in names for part in name), *widths]
    lines = []
    for row, (first, *others) in zip(rows, names, strict=True):
        padded = [c.ljust(n) for c, n in zip([first, *row[1:]], widths, strict=False)]
        lines += ["  ".join(padded).rstrip(), *others]
    return lines


def next_step(verdict: Verdict, files: str) -> str:
    """Return the next step after the update."""
    rated = [row for row in verdict.rows if row.threshold]
    if not verdict.rows:
        return "add the column confidence to the files; labels alone say nothing about it."
    if not rated:
        return (
            "give a confidence that differs between questions, such as --estimator "
            "self_consistency for several answers to each question."
        )
    kept = [row for row in rated if row.threshold and row.threshold.next == KEEP]
    if kept:
        best = kept[0]
        ends = dict.fromkeys(map(short, (min(best.thresholds), max(best.thresholds))))
        instead = "" if best is rated[0] else f"choose {best.label}; "
        cut = " to ".join(ends)
        return f"{instead}nothing to label: the threshold {cut} of {best.label} can stay."
    best, n = rated[0], min(rated[0].n_labels, verdict.n_questions)
    command = f"persistcal threshold {files} --precision {verdict.target:g} --sheet {n}"
    why = best.threshold.why if best.threshold else ""
    return f"label {n:,} answers of {verdict.update.later_name} ({why}): {command}"


def gate_record(gate: Gate) -> dict[str, Any]:
    """Return what a release gate says as values for JSON."""
    names = ("value", "lower", "upper")
    rulings = [
        ruling._asdict() | {name: as_number(getattr(ruling, name)) for name in names}
        for ruling in gate.rulings
    ]
    return {"result": gate.result, "rules": rulings}


def verdict_record(verdict: Verdict, files: str) -> dict[str, Any]:
    """Return a verdict as values for JSON; missing numbers are null."""
    update = verdict.update
    return {
        "place": verdict.title,
        "earlier": update.earlier_name,
        "later": update.later_name,
        "questions": verdict.n_questions,
        "gained": verdict.gained,
        "lost": verdict.lost,
        "accuracy": _record(verdict.accuracy),
        "precision": verdict.target,
        "next": next_step(verdict, files),
        "slices": [
            {"slice": row["slice"], "question": row["question"], "estimator": row["estimator"]}
            | (_record(slice_answer(row)) or {})
            for row in verdict.slices
        ],
        "estimators": [
            {
                "estimator": row.member[1],
                "train_dataset": row.member[0],
                "label": row.label,
                "baseline": row.is_baseline,
                "confidence": _record(row.follows),
                "calibration": _record(row.calibrated),
                "threshold": _record(row.threshold),
                "thresholds": row.thresholds,
            }
            for row in verdict.rows
        ],
    }


def _record(answer: Answer | None) -> dict[str, Any] | None:
    if answer is None:
        return None
    numbers = {name: as_number(getattr(answer, name)) for name in ("value", "lower", "upper")}
    return {
        "answer": IN_JSON[answer.mark],
        "word": answer.word,
        **numbers,
        "text": answer.text,
    }
