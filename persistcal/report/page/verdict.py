"""The verdict on an update, which the terminal, its JSON and the page's first screen show.

The verdict answers four questions: does accuracy change, did confidence follow, is it
calibrated at the later checkpoint, and does a threshold keep its precision? Its marks and
numbers are those of the table FINDINGS.
"""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from persistcal.evaluation.blocks import Member
from persistcal.evaluation.claims import DECLARED, EXAMPLES, SAMPLES
from persistcal.evaluation.findings import CALIBRATION, FOLLOWING, NONE, THRESHOLD
from persistcal.report.page.contents import Contents, Found, Part, Update
from persistcal.report.phrases import Answer, answer_to, slice_lines

MOST_NAMED = 4  # estimators in a clause of the headline
UNRATED = "no confidence differs between questions"


class Rated(NamedTuple):
    """The answers about an estimator. They are None for a baseline, which ignores questions.

    `threshold_values` are means over seeds, and `cuts` the selected thresholds by seed.
    """

    member: Member
    label: str
    follows: Answer | None = None
    calibrated: Answer | None = None
    threshold: Answer | None = None
    threshold_values: Mapping[str, float] | None = None
    cuts: Mapping[int, float] = {}
    n_labels: int = 0  # answers to label next

    @property
    def is_baseline(self) -> bool:
        """Return whether the confidence is the same for all questions of a checkpoint."""
        return self.follows is None

    @property
    def thresholds(self) -> list[float]:
        """The selected thresholds."""
        return [*self.cuts.values()]


class Verdict(NamedTuple):
    """The verdict on one model and dataset; `rows` are in order of quality."""

    title: str
    update: Update
    n_questions: int
    gained: int
    lost: int
    accuracy: Answer
    rows: list[Rated]
    target: float | None  # precision of the thresholds, if there are any
    chance: str  # meaning of the line of chance
    slices: Sequence[Mapping[Hashable, Any]] = ()  # rows of FINDINGS
    worst: Sequence[str] = ()  # sentences on slices

    @property
    def headline(self) -> str:
        """Return one sentence that answers whether confidence followed."""
        groups: dict[str, list[str]] = {}
        for row in self.rows:
            if row.follows:
                groups.setdefault(row.follows.clause, []).append(row.label)
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
    shown = [f"“{label}”" if "," in label else label for label in labels[:MOST_NAMED]]
    if len(labels) > MOST_NAMED:
        shown.append(f"{len(labels) - MOST_NAMED} more")
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def verdicts(study: Contents) -> list[Verdict | None]:
    """Return the verdict on each part of a study, None without two compared checkpoints."""
    return [
        _verdict(study, part, found) if found and found.accuracy.mark != NONE else None
        for part, found in zip(study.parts, study.found, strict=True)
    ]


def _verdict(study: Contents, part: Part, found: Found) -> Verdict:
    thresholds = found.findings.get(THRESHOLD, {})
    members = [member for member in part.members if member[1] in study.main]
    rows = []
    for member in members:
        row = Rated(member, part.subject.name(member, study.labels))
        if member not in found.baselines:
            row = row._replace(
                follows=answer_to(found.findings[FOLLOWING][member]),
                calibrated=answer_to(found.findings[CALIBRATION][member]),
            )
            if checked := thresholds.get(member):
                numbers = checked.evidence
                row = row._replace(
                    threshold=answer_to(checked),
                    threshold_values=numbers.get("means"),
                    cuts=dict(zip(numbers["seed"], numbers["threshold"], strict=True)),
                    n_labels=numbers["n_labels"],
                )
        rows.append(row)
    rows.sort(key=lambda row: (row.is_baseline, -_or(row.follows, -1.0)))
    targets = [
        thresholds[member].evidence["target"] for member in members if member in thresholds
    ]
    n_questions, gained, lost = (
        found.accuracy.evidence[name] for name in ("n_questions", "gained", "lost")
    )
    return Verdict(
        part.subject.title(study.labels),
        found.update,
        n_questions,
        gained,
        lost,
        answer_to(found.accuracy),
        rows,
        next(iter(targets), None),
        chance_of(found),
        found.slices,
        slice_lines(found.slices, study.labels["estimators"]),
    )


def _or(answer: Answer | None, default: float) -> float:
    return default if answer is None or np.isnan(answer.value) else answer.value


def chance_of(found: Found | None) -> str:
    """Return the meaning of the line of chance.

    Sampled answers flip by themselves, and asks after other examples are not independent.
    """
    following = found.findings.get(FOLLOWING, {}) if found else {}
    bases = {one.basis for one in following.values()} - {""}
    if not bases or bases & {DECLARED, SAMPLES}:
        return "chance, if no answer flips by itself"
    return "about chance, as all share the other examples" if EXAMPLES in bases else "chance"
