"""The verdict on an update: a record for the page's first screen, lines of text, and JSON.

The verdict answers four questions: does accuracy change, did confidence follow, is it
calibrated at the later checkpoint, and does a threshold keep its precision? The marks and
numbers are from the table FINDINGS.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from shlex import quote
from textwrap import fill, wrap
from typing import Any, NamedTuple

import numpy as np

from persistcal.evaluation import findings
from persistcal.evaluation.claims import DECLARED, EXAMPLES, IF_DECLARED, SAMPLES
from persistcal.evaluation.findings import (
    CALIBRATION,
    FOLLOWING,
    THRESHOLD,
    Finding,
    read_finding,
)
from persistcal.evaluation.gate import Gate
from persistcal.evaluation.settings import Member
from persistcal.report.curves import TINY, changes
from persistcal.report.page.contents import Contents, Part, Update, UpdateFindings
from persistcal.report.page.sentences import pairs_that_differ
from persistcal.report.phrases import (
    MARKS,
    NONE,
    as_number,
    exact_percent,
    joined,
    phrase_clause,
    phrase_numbers,
    phrase_reason,
    phrase_word,
    short,
    slice_lines,
    slice_numbers,
)

MOST_NAMED = 4  # estimators in a clause of the headline
WIDTH = 100  # characters
SHORTEST = 12  # characters for the names of a table
UNRATED = "no confidence differs between questions"
UNNAMED = "model · dataset"  # the title of files that name neither
SURE = 0.8  # confidence that counts as high without a threshold


class Rated(NamedTuple):
    """The findings about an estimator; a baseline, which ignores questions, has none."""

    member: Member
    label: str
    follows: Finding | None = None
    calibrated: Finding | None = None
    threshold: Finding | None = None

    @property
    def is_baseline(self) -> bool:
        """Return whether the confidence is the same for all questions of a checkpoint."""
        return self.follows is None

    @property
    def cuts(self) -> dict[int, float]:
        """The selected thresholds by seed."""
        numbers = self.threshold.evidence if self.threshold else {"seed": [], "threshold": []}
        return dict(zip(numbers["seed"], numbers["threshold"], strict=True))


class Verdict(NamedTuple):
    """The verdict on one model and dataset; `rows` are in order of quality."""

    title: str
    update: Update
    accuracy: Finding
    rows: list[Rated]
    target: float | None  # precision of the thresholds, if there are any
    chance: str  # meaning of the line of chance
    slices: Sequence[Mapping[Hashable, Any]] = ()  # rows of FINDINGS
    worst: Sequence[str] = ()  # sentences on slices
    doubts: Sequence[str] = ()  # sentences on signs of a mistake in the answers

    @property
    def headline(self) -> str:
        """Return one sentence that answers whether confidence followed."""
        groups: dict[str, list[str]] = {}
        for row in self.rows:
            if row.follows:
                groups.setdefault(phrase_clause(row.follows), []).append(row.label)
        clauses = [f"{clause} {_names(labels)}" for clause, labels in groups.items()]
        text = "; ".join(clauses) or UNRATED
        return f"{text[:1].upper()}{text[1:]}."


def _names(labels: Sequence[str]) -> str:
    """Return labels in one list, the first four by name. Labels with a comma are quoted.

    >>> _names(["A", "B"]), _names(["A", "B", "C", "D", "E", "F"])
    ('A and B', 'A, B, C, D and 2 more')
    >>> _names(["A", "A, post-hoc"])
    'A and “A, post-hoc”'
    """
    texts = [f"“{label}”" if "," in label else label for label in labels[:MOST_NAMED]]
    if len(labels) > MOST_NAMED:
        texts.append(f"{len(labels) - MOST_NAMED} more")
    return joined(texts)


def verdicts(study: Contents) -> list[Verdict]:
    """Return the verdicts on the parts of a study that have one."""
    return [found for part in study.parts if (found := verdict_of(study, part))]


def verdict_of(study: Contents, part: Part) -> Verdict | None:
    """Return the verdict on a part of a study, None without two compared checkpoints."""
    if not (found := part.compared):
        return None
    members = [member for member in part.members if member[1] in study.main]
    rows = []
    for member in members:
        label = part.subject.name(member, study.labels)
        marks = [found.of.get(q, {}).get(member) for q in (FOLLOWING, CALIBRATION, THRESHOLD)]
        rows.append(Rated(member, label, *(() if member in found.baselines else marks)))
    values = {row.member: row.follows.value if row.follows else np.nan for row in rows}
    rows.sort(key=lambda row: (row.is_baseline, -np.nan_to_num(values[row.member], nan=-1.0)))
    thresholds = found.of.get(THRESHOLD, {})
    checked = [thresholds[member] for member in members if member in thresholds]
    return Verdict(
        part.subject.title(study.labels),
        found.update,
        found.accuracy,
        rows,
        checked[0].evidence["target"] if checked else None,
        chance_of(found),
        found.slices,
        slice_lines(found.slices, study.labels["estimators"]),
        part.doubts,
    )


def chance_of(findings: UpdateFindings | None) -> str:
    """Return the meaning of the line of chance.

    Sampled answers flip by themselves, and asks after other examples are not independent.
    """
    following = findings.of.get(FOLLOWING, {}) if findings else {}
    bases = {finding.basis for finding in following.values()} - {""}
    if not bases or bases & {DECLARED, SAMPLES}:
        return "chance, if no answer flips by itself"
    return "about chance, as all share the other examples" if EXAMPLES in bases else "chance"


class CommandWords(NamedTuple):
    """The words of a command that reads the same files, and those that read further answers."""

    files: str = "…"
    options: str = ""


def verdict_text(verdict: Verdict, given: CommandWords) -> str:
    """Return a line per question, or a table for several estimators, and the next step."""
    update, numbers = verdict.update, verdict.accuracy.evidence
    place = "" if verdict.title == UNNAMED else f"{verdict.title}: "
    lines = [
        *(fill(f"Doubt: {doubt}", WIDTH) for doubt in verdict.doubts),
        f"{place}{update.earlier_name} → {update.later_name}, "
        f"{numbers['n_questions']:,} questions, {numbers['gained']:,} gained, "
        f"{numbers['lost']:,} lost",
        "",
        _line("accuracy", verdict.accuracy),
    ]
    rated = [row for row in verdict.rows if not row.is_baseline]
    if len(rated) == 1:
        [row], later = rated, update.later_name
        by_name = {"confidence": row.follows, "calibration": row.calibrated}
        for name, finding in {**by_name, "threshold": row.threshold}.items():
            at = f" at {later}" if name == "calibration" else ""
            lines += [fold_line(_line(name, finding, at))] if finding else []
    elif not rated:
        names = "confidence", "calibration", "threshold"
        lines += [f"{name:<12} {NONE} no confidence" for name in names]
    else:
        headline = fill(f"Did confidence follow? {verdict.headline}", WIDTH)
        marks = fill("  ".join(f"{m.sign}\xa0{m.meaning}" for m in MARKS.values()), WIDTH)
        marks = marks.replace("\xa0", " ")
        lines += ["", *_table(verdict), "", headline, marks]
    for start, line in zip(["slices", "", "", ""], verdict.worst, strict=False):
        lines.append(fold_line(f"{start:<12} {line}"))
    step, *commands = next_step(verdict, given)
    lines += ["", fill(f"Next: {step}", WIDTH), *(f"  {command}" for command in commands)]
    steps = []
    if words := {
        r.follows.word for r in rated if r.follows and r.follows.next == findings.ASK_TWICE
    }:
        declare = ", or say by --greedy that no answer differs by chance"
        steps.append(
            "Flips can be chance. To learn whether confidence followed, ask twice and give the "
            f"second answers with --again{'' if words == {IF_DECLARED} else declare}."
        )
    reasons = [(phrase_reason(row.follows), row.follows) for row in rated if row.follows]
    for reason, follows in [pair for pair in reasons if pair[0]][:1]:
        is_copied = follows.next == findings.ASK_AFRESH
        afresh = " Ask again without a cache and with another seed." if is_copied else ""
        steps.append(f"{reason}.{afresh}")
    return "\n".join([*lines, *(fill(step, WIDTH) for step in steps)])


def fold_line(line: str, indent: int = 13) -> str:
    """Fold a line to the width of the verdict; further lines are indented."""
    return fill(line, WIDTH, subsequent_indent=" " * indent)


def _line(name: str, finding: Finding, place: str = "") -> str:
    """Return a finding with its mark, word and numbers in one line."""
    numbers = phrase_numbers(finding)
    text = f"{MARKS[finding.mark].sign} {phrase_word(finding)}{place}"
    return f"{name:<12} {text}" + (f": {numbers}" if numbers else "")


def _table(verdict: Verdict) -> list[str]:
    """Return a row per estimator and a column per question; long names take several lines."""
    later = verdict.update.later_name
    rows = [["", "did it follow?", f"calibrated at {later}?"]]
    if verdict.target is not None:
        heads = f"threshold for {exact_percent(verdict.target)}:", "right, answered"
        rows = [["", "", "", heads[0]], [*rows[0], heads[1]]]
    for rated in verdict.rows:
        parts = [part for part in (rated.follows, rated.calibrated, rated.threshold) if part]
        texts = [(MARKS[part.mark].sign, phrase_numbers(part, brief=True)) for part in parts]
        cells = [f"{sign} {text}" if text else NONE for sign, text in texts]
        if rated.is_baseline:
            cells = ["baseline: the same confidence for all questions"]
        rows.append([rated.label, *cells])
    whole = [row for row in rows if len(row) > 2]
    widths = [max(len(row[k]) for row in whole if k < len(row)) for k in range(1, len(rows[0]))]
    room = max(SHORTEST, WIDTH - sum(widths) - 2 * len(widths))
    names = [wrap(row[0], room) or [""] for row in rows]
    widths = [max(len(part) for name in names for part in name), *widths]
    lines = []
    for row, (first, *rest) in zip(rows, names, strict=True):
        padded = [c.ljust(n) for c, n in zip([first, *row[1:]], widths, strict=False)]
        lines += ["  ".join(padded).rstrip(), *rest]
    return lines


def next_step(verdict: Verdict, given: CommandWords) -> list[str]:
    """Return the next step after the update, and the commands that take it."""
    rated = [row for row in verdict.rows if row.threshold]
    if not verdict.rows:
        return ["add the column confidence to the files; labels alone say nothing about it."]
    if not rated:
        return [
            "give a confidence that differs between questions, such as --estimator "
            "self_consistency for several answers to each question."
        ]
    kept = [row for row in rated if row.threshold and row.threshold.next == findings.KEEP]
    best = kept[0] if kept else rated[0]
    cuts = best.cuts.values() or [0.0]
    cut = " to ".join(dict.fromkeys(short(end(cuts)) for end in (min, max)))
    if kept:
        instead = "" if best is rated[0] else f"choose {best.label}; "
        return [f"{instead}nothing to label: the threshold {cut} of {best.label} can stay."]
    later, finding = verdict.update.later_name, best.threshold
    option = f" --estimator {quote(best.member[1])}" if len(rated) > 1 else ""
    option *= "--estimator" not in given.options
    lock = f"persistcal threshold {given.files}{option} --precision {verdict.target:g}"
    lock += " --lock thresholds.json"
    if finding and np.isfinite(n_labels := finding.evidence["labels_to_decide"]):
        coverage = finding.evidence["means"]["later_coverage"]
        return [
            f"{n_labels:,.0f} labelled answers of {later} above the threshold {cut} of "
            f"{best.label} would decide, and the files have "
            f"{coverage * verdict.accuracy.evidence['n_questions']:,.0f}. Ask {later} about "
            f"{n_labels / coverage:,.0f} new questions, write the labelled answers to "
            "new.csv, and check the threshold there:",
            lock,
            f"persistcal threshold{given.options}{option} --check thresholds.json new.csv",
        ]
    return [
        f"let {later} select a threshold, as {phrase_reason(finding) if finding else ''}:",
        lock,
    ]


def first_screens(
    study: Contents, shown_parts: Sequence[Mapping[str, Any]], given: CommandWords | None
) -> list[dict[str, Any]]:
    """Return the verdicts for the page's template, with the curves of the small pictures.

    `shown_parts` are the data of the page's charts.
    """
    screens = []
    for number, (part, shown) in enumerate(zip(study.parts, shown_parts, strict=True)):
        if not (verdict := verdict_of(study, part)):
            continue
        rows, members = [], list(part.members)
        for row in verdict.rows:
            diagrams = shown["calibration"][members.index(row.member)]
            curves = [[p[:2] for p in diagrams[k]["points"]] for k in verdict.update[:2]]
            rows.append({**row._asdict(), "is_baseline": row.is_baseline, "curves": curves})
        lowest = [row.follows.lower for row in verdict.rows if row.follows]
        ends, _, by = phrase_numbers(verdict.accuracy).partition(", by ")
        screens.append(
            {
                **verdict._asdict(),
                "headline": verdict.headline,
                "title": "" if verdict.title == UNNAMED else verdict.title,
                "rows": rows,
                "slices": [
                    (r["slice"], r["estimator"], read_finding(r)) for r in verdict.slices
                ],
                "part": number,
                "next": given and next_step(verdict, given),
                "broken": len((shown["broken"] or {"ids": ()})["ids"]),
                "accuracy_ends": ends,
                "accuracy_by": by,
                "low": min(0.4, *(np.floor(10 * v) / 10 for v in lowest if v == v), 0.4),
                "facts": pairs_that_differ(study, part),
            }
        )
    return screens


def broken_answers(part: Part, verdict: Verdict | None) -> dict[str, Any] | None:
    """List the best estimator's confident answers that broke, the surest first, by id.

    An answer is confident if a seed gives it, at both checkpoints, at least the confidence of
    the seed's threshold. Without a threshold, the mean confidence must be at least .8.
    """
    rated = [row for row in verdict.rows if not row.is_baseline] if verdict else []
    if not rated or verdict is None:
        return None
    best, (earlier, later, *names) = rated[0], verdict.update
    ends = [earlier, later]
    runs = {s.seed: c[ends] for s, c in part.answers.confidence.items() if s[:2] == best.member}
    mean = np.mean(list(runs.values()), axis=0)
    cuts = {seed: cut for seed, cut in best.cuts.items() if cut > 0}
    chosen = [(runs[seed], cut) for seed, cut in cuts.items()] or [(mean, SURE)]
    is_sure = np.any([(run >= cut - TINY).all(axis=0) for run, cut in chosen], axis=0)
    is_lost = changes(*part.answers.correct[ends])["lost"]
    positions = np.flatnonzero(is_sure & is_lost)
    if not len(positions):
        return None
    positions = positions[np.argsort(-mean[1, positions], kind="stable")]
    lowest, highest = (short(end(cut for _, cut in chosen)) for end in (min, max))
    least = lowest if lowest == highest else f"{lowest} to {highest}, by seed,"
    several = " (the list shows means over seeds)" if len(chosen) > 1 else ""
    return {
        "ids": [str(part.answers.questions[position]) for position in positions],
        "about": f"{best.label} gave these answers a confidence of at least {least} at both "
        f"checkpoints{several}. They were right at {names[0]} and are wrong at {names[1]}.",
        "member": list(part.members).index(best.member),
    }


def gate_record(gate: Gate) -> dict[str, Any]:
    """Return the rulings of a release gate as values for JSON."""
    names = ("value", "lower", "upper")
    rulings = [
        ruling._asdict() | {name: as_number(getattr(ruling, name)) for name in names}
        for ruling in gate.rulings
    ]
    return {"result": gate.result, "rules": rulings}


def verdict_record(verdict: Verdict, given: CommandWords) -> dict[str, Any]:
    """Return a verdict as values for JSON; missing numbers are null."""
    update = verdict.update
    return {
        "place": verdict.title,
        "earlier": update.earlier_name,
        "later": update.later_name,
        "doubts": [*verdict.doubts],
        "questions": verdict.accuracy.evidence["n_questions"],
        **{name: verdict.accuracy.evidence[name] for name in ("gained", "lost")},
        "accuracy": _record(verdict.accuracy),
        "precision": verdict.target,
        "next": "\n".join(next_step(verdict, given)),
        "slices": [
            {name: row[name] for name in ("slice", "question", "estimator")}
            | (_record(read_finding(row), slice_numbers) or {})
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
                "thresholds": [*row.cuts.values()],
            }
            for row in verdict.rows
        ],
    }


def _record(
    finding: Finding | None, phrase: Callable[[Finding], str] = phrase_numbers
) -> dict[str, Any] | None:
    if finding is None:
        return None
    numbers = {name: as_number(getattr(finding, name)) for name in ("value", "lower", "upper")}
    return {
        "answer": finding.mark,
        "word": phrase_word(finding),
        **numbers,
        "text": phrase(finding),
    }
