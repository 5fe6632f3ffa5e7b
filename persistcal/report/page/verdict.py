"""The verdict on an update, which the terminal, its JSON and the page's first screen show.

The verdict answers four questions: does accuracy change, did confidence follow, is it
calibrated at the later checkpoint, and does a threshold keep its precision? Each answer rests
on a test and has a mark: shown, the opposite is shown, or not decided by the data.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from persistcal.evaluation.blocks import Member
from persistcal.evaluation.claims import (
    AGAINST,
    EXAMPLES,
    FOLLOWED,
    IN_ORDER,
    MOVED,
    MOVED_IN_ORDER,
    NOT_SHOWN,
    ONE_ASK,
    SAMPLES,
    TOO_FEW,
)
from persistcal.evaluation.predictions import ABSENT
from persistcal.evaluation.proportions import exact_interval
from persistcal.evaluation.thresholds import BROKEN, KEPT, UNDECIDED, rank_verdicts
from persistcal.report.change_views import LEVEL
from persistcal.report.page.contents import Contents, Part
from persistcal.report.page.sentences import (
    Claim,
    Update,
    changed_positions,
    choose_update,
    claim_of,
    claims_about,
    tested_accuracies,
)
from persistcal.report.page.tables import short, short_interval
from persistcal.report.threshold_views import ENDS, exact_percent, percent

SHOWN, OPPOSITE, OPEN, NONE = "✓", "✗", "?", "–"
MEANING = {
    SHOWN: "shown by a test",
    OPPOSITE: "the opposite is shown",
    OPEN: "the data cannot tell",
    NONE: "nothing to test",
}
NO_THRESHOLD = "none"
_THRESHOLD_MARKS = {KEPT: SHOWN, BROKEN: OPPOSITE, UNDECIDED: OPEN}
MOST_NAMED = 4  # estimators in a clause of the headline


class Answer(NamedTuple):
    """The answer to a question: a mark, a word, the number and interval behind it, two texts.

    `brief` is `text` in the few words of a table's cell.
    """

    mark: str
    word: str
    value: float = np.nan
    lower: float = np.nan
    upper: float = np.nan
    text: str = ""
    brief: str = ""


class Threshold(NamedTuple):
    """A threshold's precision and coverage at both checkpoints, means over seeds."""

    earlier_precision: float
    later_precision: float
    earlier_coverage: float
    later_coverage: float


class Rated(NamedTuple):
    """The answers about an estimator. They are None for a baseline, which ignores questions."""

    member: Member
    label: str
    follows: Answer | None = None
    calibrated: Answer | None = None
    threshold: Answer | None = None
    threshold_values: Threshold | None = None
    thresholds: tuple[float, ...] = ()  # selected thresholds, one per seed
    labels_to_decide: float = np.nan  # for an undecided verdict of one seed

    @property
    def is_baseline(self) -> bool:
        """Return whether the confidence is the same for all questions of a checkpoint."""
        return self.follows is None


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

    @property
    def headline(self) -> str:
        """Return one sentence that answers whether confidence followed."""
        groups: dict[str, list[str]] = {}
        for row in self.rows:
            if row.follows:
                groups.setdefault(row.follows.word, []).append(row.label)
        clauses = [f"{_CLAUSES.get(word, word)} {_names(g)}" for word, g in groups.items()]
        text = "; ".join(clauses) or "no estimator rates single questions"
        return f"{text[:1].upper()}{text[1:]}."


_CLAUSES = {
    FOLLOWED: "yes for",
    f"{FOLLOWED} (one ask)": "yes, by one ask, for",
    IN_ORDER: "in order only for",
    f"{IN_ORDER} (one ask)": "in order only, by one ask, for",
    f"{FOLLOWED} (other examples, too)": "yes, also under other examples, for",
    f"{IN_ORDER} (other examples, too)": "in order only, also under other examples, for",
    MOVED: "it moved with the labels for",
    MOVED_IN_ORDER: "it moved with the labels, in order only, for",
    NOT_SHOWN: "not shown for",
    AGAINST: "the wrong way for",
    TOO_FEW: "too few changed questions to tell for",
}


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
    return [_verdict(study, part) for part in study.parts]


def _verdict(study: Contents, part: Part) -> Verdict | None:
    labels = {name: stage.label for name, stage in study.stages[part.subject.model].items()}
    update = choose_update(part, labels)
    if update is None:
        return None
    known = part.answers.correct[[update.earlier, update.later]]
    known = known[:, (known != ABSENT).all(axis=0)]
    if not known.size:
        return None
    gained, lost = map(len, changed_positions(part, update))
    chosen = {m: runs for m, runs in part.members.items() if m[1] in study.main}
    thresholds = threshold_rows(study, part, update)
    claims = claims_about(study, part)
    rows = []
    for member, runs in chosen.items():
        row = Rated(member, part.subject.name(member, study.labels))
        if not all(is_constant(run[k]) for run in runs for k in update[:2]):
            row = row._replace(
                follows=_follows(claim_of(claims, member)),
                calibrated=_calibrated(part, member, update.later),
            )
            if member in thresholds:
                answer, values = _threshold(thresholds[member])
                cuts = [row["threshold"] for row in thresholds[member]]
                row = row._replace(
                    threshold=answer,
                    threshold_values=values,
                    thresholds=tuple(float(cut) for cut in cuts if cut == cut),
                    labels_to_decide=float(thresholds[member][0]["labels_to_decide"]),
                )
        rows.append(row)
    rows.sort(key=lambda row: (row.is_baseline, -_or(row.follows, -1.0)))
    return Verdict(
        part.subject.title(study.labels),
        update,
        known.shape[1],
        gained,
        lost,
        _accuracy(known, state_row(study, part, update)),
        rows,
        next((float(seeds[0]["target"]) for seeds in thresholds.values()), None),
        chance_of(claims),
    )


def chance_of(claims: pd.DataFrame) -> str:
    """Return the meaning of the line of chance.

    Sampled answers flip by themselves, and asks after other examples are not independent.
    """
    bases = set(claims["basis"]) - {""}
    if not bases or SAMPLES in bases:
        return "chance, if no answer flips by itself"
    return "about chance, as all share the other examples" if EXAMPLES in bases else "chance"


def _or(answer: Answer | None, default: float) -> float:
    return default if answer is None or np.isnan(answer.value) else answer.value


def is_constant(confidence: np.ndarray) -> bool:
    """Return whether a confidence is the same for all questions that were answered."""
    known = confidence[~np.isnan(confidence)]
    return not known.size or bool(np.ptp(known) == 0)


def state_row(study: Contents, part: Part, update: Update) -> dict[Any, Any] | None:
    """Return the row of the table STATES about the accuracies of an update."""
    if "states" not in study.rows:
        return None
    ends = [part.answers.checkpoints[k] for k in update[:2]]
    key = [part.subject.model, "", part.subject.dataset, *ends, "accuracy"]
    columns = ["model", "other_model", "dataset", "earlier", "later", "metric"]
    rows = study.rows["states"]
    matching = rows[(rows[columns].fillna("") == key).all(axis=1)]
    return dict(matching.iloc[0]) if len(matching) else None


def _accuracy(known: np.ndarray, tested: Mapping[Any, Any] | None) -> Answer:
    test, p_value = tested_accuracies(known, tested)
    mark, word = OPEN, "can be chance"
    if p_value < LEVEL:
        mark, word = (SHOWN, "rises") if test.difference > 0 else (OPPOSITE, "falls")
    ends = f"{short(test.earlier)} → {short(test.later)}"
    interval = short_interval(test.lower, test.upper)
    text = f"{ends}, by {short(test.difference)} {interval}"
    return Answer(mark, word, test.difference, test.lower, test.upper, text)


def _follows(claim: Claim) -> Answer:
    """Return the word for an estimator, with its change AUC."""
    order = claim.get("change_auc")
    if order is None:
        return Answer(OPEN, TOO_FEW)
    word, value = order["word"], order["value"]
    low, high = order["simultaneous_lower"], order["simultaneous_upper"]
    if word == TOO_FEW:
        return Answer(OPEN, TOO_FEW, value)
    mark = {FOLLOWED: SHOWN, IN_ORDER: SHOWN, AGAINST: OPPOSITE}.get(word, OPEN)
    if order["basis"] == ONE_ASK and mark == SHOWN:
        word += " (one ask)"
    if order["basis"] == EXAMPLES and mark == SHOWN:
        word += " (other examples, too)"
    text = f"change AUC {short(value)} {short_interval(low, high)}"
    return Answer(mark, word, value, float(low), float(high), text)


def _calibrated(part: Part, member: Member, later: int) -> Answer:
    tested = part.calibration_at(member, later)
    bias = tested.confidence - tested.accuracy
    is_wrong = tested.p_calibrated < LEVEL
    if is_wrong and not (tested.p_mean < LEVEL and abs(bias) > tested.bias_reach):
        # The means are close, so they would not explain the mark
        value, floor = short(tested.value), short(tested.noise_floor)
        text = f"off by {value} (SmoothECE; noise floor {floor})"
        brief = f"off by {value}, noise {floor}"
        return Answer(OPPOSITE, "not calibrated", bias, text=text, brief=brief)
    mark, word = OPEN, "no error shown"
    if is_wrong:
        mark, word = OPPOSITE, "over-confident" if bias > 0 else "under-confident"
    answered = part.answers.correct[later] != ABSENT
    n_right, n = int((part.answers.correct[later] == 1).sum()), int(answered.sum())
    brief = text = f"says {short(tested.confidence)}, right {short(tested.accuracy)}"
    if len(np.unique(part.answers.groups[answered])) == n:  # else answers are not independent
        text += f" {short_interval(*exact_interval(n_right, n))}"
    return Answer(mark, word, bias, text=text, brief=brief)


def threshold_rows(
    study: Contents, part: Part, update: Update
) -> dict[Member, list[dict[str, Any]]]:
    """Return the rows of the table THRESHOLDS of an update, the seeds of each estimator."""
    if "thresholds" not in study.rows:
        return {}
    rows = study.rows["thresholds"]
    ends = [part.answers.checkpoints[k] for k in update[:2]]
    key = [part.subject.model, part.subject.dataset, *ends]
    of_part = rows[(rows[["model", "dataset", "earlier", "later"]] == key).all(axis=1)]
    grouped = of_part.groupby(["train_dataset", "estimator"], sort=False)
    return {(str(a), str(b)): group.to_dict("records") for (a, b), group in grouped}  # type: ignore[misc]


def _threshold(seeds: Sequence[Mapping[str, Any]]) -> tuple[Answer, Threshold | None]:
    target = seeds[0]["target"]
    selected = [row for row in seeds if isinstance(row["verdict"], str) and row["verdict"]]
    if not selected:
        least = np.mean([row["least_abstention"] for row in seeds])
        text = f"no threshold is sure to give {exact_percent(target)}"
        if not np.isnan(least):
            part = percent(1 - float(least))
            text += f"; the most confident {part} of answers reach it here, which can be chance"
        return Answer(NONE, NO_THRESHOLD, text=text, brief=NO_THRESHOLD), None
    verdict = rank_verdicts([row["verdict"] for row in selected])
    of_seeds = pd.DataFrame(selected)
    values = Threshold(*(float(of_seeds[name].mean()) for name in Threshold._fields))
    precisions = of_seeds["later_precision"]
    low, high = float(precisions.min()), float(precisions.max())
    if len(selected) == 1:
        low, high = (float(of_seeds[end].iloc[0]) for end in ENDS)
    broke = f"{of_seeds['confident_regressions'].mean():,.0f}"
    earlier, later = map(percent, (values.earlier_coverage, values.later_coverage))
    text = (
        f"{percent(values.later_precision)} right [{100 * low:.0f}, {100 * high:.0f}]; answers "
        f"{earlier.removesuffix(' %')} → {later} of questions; {broke} confident "
        f"{'answer' if broke == '1' else 'answers'} broke"
    )
    word = verdict
    if len(seeds) > 1:
        same = sum(row["verdict"] == verdict for row in selected)
        word += f" ({same} of {len(seeds)} seeds)"
    mark = _THRESHOLD_MARKS[verdict]
    if mark == SHOWN and len(selected) < len(seeds):
        mark = OPEN  # a seed without a threshold promised nothing
    brief = f"{percent(values.later_precision)} right, {earlier.removesuffix(' %')} → {later}"
    return Answer(mark, word, values.later_precision, low, high, text, brief), values
