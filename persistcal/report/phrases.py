"""Words and numbers of findings: the only place that phrases them, short and long.

`PHRASES`, `BASES` and `MARKS` have a row per word, basis and mark. A question of the verdict
has a word, numbers and a sentence.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from math import ceil, log10
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from persistcal.evaluation import claims as words
from persistcal.evaluation import findings
from persistcal.evaluation.findings import ACCURACY, CALIBRATION, THRESHOLD, Finding
from persistcal.evaluation.gate import FAIL, PASS, Gate, Ruling
from persistcal.evaluation.knowledge import CHANCE, KNEW, KNOWS, STATISTICS
from persistcal.evaluation.samples import LEVEL
from persistcal.evaluation.slices import worst_slices
from persistcal.evaluation.thresholds import BROKEN, KEPT, UNDECIDED
from persistcal.report.layout import Names

SHOWN, OPPOSITE, OPEN, NONE = "✓", "✗", "?", "–"
WITH_LABELS = "◐"
MOST, MOST_OF_ALL = 0.5, 0.9  # shares of confidences that are "most" and "nearly all"
SHIFT = 0.05  # smallest shift of the mean confidence that a sentence names


class Mark(NamedTuple):
    """The sign, the meaning and the style's class of a mark."""

    sign: str
    meaning: str
    style: str


MARKS = {
    findings.YES: Mark(SHOWN, "shown by a test", "good"),
    findings.WITH_LABELS: Mark(WITH_LABELS, "shown, unless answers flip by chance", "half"),
    findings.NO: Mark(OPPOSITE, "the opposite is shown", "bad"),
    findings.OPEN: Mark(OPEN, "the data cannot tell", "open"),
    findings.NONE: Mark(NONE, "nothing to test", "none"),
}


class Phrase(NamedTuple):
    """A word about following in the headline, and after a singular and a plural subject."""

    clause: str
    verb: str
    verbs: str


PHRASES = {
    words.FOLLOWED: Phrase("yes", words.FOLLOWED, words.FOLLOWED),
    words.IF_DECLARED: Phrase(
        "yes, if no answer flips by itself (declared),", words.IF_DECLARED, words.IF_DECLARED
    ),
    words.MOVED: Phrase("it moved with the labels", words.MOVED, words.MOVED),
    words.NEW_STATE: Phrase(
        "it knows the new state only", words.NEW_STATE, "know the new state only"
    ),
    words.NOT_MOVED: Phrase(
        "it knows both states and did not move", words.NOT_MOVED, "know, and did not move"
    ),
    words.LOST: Phrase("it lost its knowledge", words.LOST, "lost their knowledge"),
    words.STILL: Phrase("it did not move", words.STILL, words.STILL),
    words.NOT_SHOWN: Phrase(
        "not shown", "is not shown to have followed", "are not shown to have followed"
    ),
    words.AGAINST: Phrase("it moved against the changes", *2 * ("moved against the changes",)),
    words.TOO_FEW: Phrase(
        "too few changed questions to tell",
        "has too little data to show whether it followed",
        "have too little data to show whether they followed",
    ),
}


class Basis(NamedTuple):
    """The words that a basis adds to a shown word: in a cell, the headline and a sentence."""

    word: str = ""
    clause: str = ""
    sentence: str = ""


BASES = {
    words.ONE_ASK: Basis(" (one ask)", ", by one ask,", " (one ask)"),
    words.EXAMPLES: Basis(
        " (other examples, too)", ", also under other examples,", ", also under other examples"
    ),
    words.CONTROL: Basis("", "", " beyond chance flips"),
}
_REASONS = {
    BROKEN: "the old one is broken",
    UNDECIDED: "no number of labels decides on the old one",
    findings.NO_THRESHOLD: "no old one is sure",
}


def as_number(value: float) -> float | None:
    """Return a value for JSON, with four decimals."""
    return None if value != value else round(float(value), 4)


def short(value: float) -> str:
    """Return a value as the tables print it: three digits, no zero before the point.

    >>> short(0.4312), short(-0.05), short(1.0), short(-0.0001)
    ('.431', '−.050', '1.000', '.000')
    """
    text = f"{abs(value):.3f}"
    text = text.removeprefix("0") if text != "1.000" else text
    return f"−{text}" if value < 0 and float(text) else text


def short_interval(low: float, high: float) -> str:
    """Return an interval in brackets, its ends as `short` prints them."""
    return f"[{short(low)}, {short(high)}]"


def percent(share: float) -> str:
    """Return a share in percent, with enough decimals to differ from 100 %.

    >>> percent(0.814), percent(0.996), percent(1.0), percent(0.99999)
    ('81 %', '99.6 %', '100 %', '99.999 %')
    """
    decimals = max(1, ceil(round(-log10(1 - share), 9)) - 2) if 0.99 < share < 1 else 0
    return f"{100 * share:.{decimals}f} %"


def exact_percent(share: float) -> str:
    """Return a share that a user chose, in percent without rounding.

    >>> exact_percent(0.9), exact_percent(0.905), exact_percent(0.999999999)
    ('90 %', '90.5 %', '99.9999999 %')
    """
    return f"{round(100 * share, 9):.12g} %"


def chance(level: float) -> str:
    """Return an error probability in percent.

    >>> chance(0.1), chance(0.0125)
    ('10 %', '1.25 %')
    """
    return f"{100 * level:.3g} %"


def shown_threshold(threshold: float) -> str:
    """Return a threshold with at least two decimals, and enough to differ from 0 and 1.

    >>> [shown_threshold(value) for value in (0.4142, 0.99983, 0.9999, 1.0)]
    ['.41', '.9998', '.9999', '1.00']
    """
    from_end = min(threshold, 1 - threshold)
    decimals = max(2, ceil(round(-log10(from_end), 9))) if from_end > 0 else 2
    return f"{threshold:.{decimals}f}".removeprefix("0")


def joined(parts: Sequence[str]) -> str:
    """Return words in one list.

    >>> joined("abc")
    'a, b and c'
    """
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def phrase_word(finding: Finding) -> str:
    """Return the word of a finding, with its basis or the number of equal seeds."""
    if finding.question == findings.FOLLOWING and finding.mark == findings.YES:
        return finding.word + BASES.get(finding.basis, Basis()).word
    n_same, n_seeds = (finding.evidence.get(name, 1) for name in ("n_same", "n_seeds"))
    if finding.question == THRESHOLD and n_seeds > 1 and "n_same" in finding.evidence:
        return f"{finding.word} ({n_same} of {n_seeds} seeds)"
    return finding.word


def phrase_clause(finding: Finding) -> str:
    """Return a finding about following as a clause of the headline."""
    is_shown = finding.mark == findings.YES
    basis = BASES.get(finding.basis, Basis()).clause if is_shown else ""
    return f"{PHRASES[finding.word].clause}{basis} for"


def phrase_reason(finding: Finding) -> str:
    """Return the reason for the next step, if there is one."""
    is_control = finding.mark == findings.YES and finding.basis == words.CONTROL
    if finding.next == findings.ASK_AFRESH or (is_control and finding.evidence["repeated"]):
        return _repeats(finding)
    return _REASONS.get(finding.word, "")


def phrase_numbers(finding: Finding, *, brief: bool = False) -> str:
    """Return the numbers of a finding; `brief` is for the cell of a table."""
    return _LINES[finding.question](finding)[brief]


def _accuracy_line(finding: Finding) -> tuple[str, str]:
    if finding.mark == findings.NONE:
        return "", ""
    ends = f"{short(finding.evidence['earlier'])} → {short(finding.evidence['later'])}"
    return (
        f"{ends}, by {short(finding.value)} {short_interval(finding.lower, finding.upper)}",
        "",
    )


def _following_line(finding: Finding) -> tuple[str, str]:
    if finding.value != finding.value:
        return "", ""
    if "statistics" not in finding.evidence:
        return "", ""
    name = finding.evidence["lacking"]
    name = name if name in STATISTICS else "moved"
    brief = f"{STATISTICS[name].heading.lower()} {_statistic(finding, name)}"
    return "" if finding.word == words.TOO_FEW else f"{brief}; .5 is chance", brief


def _statistic(finding: Finding, name: str) -> str:
    """Return a statistic of knowledge with its interval."""
    value, low, high = finding.evidence["statistics"][name]
    return short(value) + (f" {short_interval(low, high)}" if low == low else "")


def _calibration_line(finding: Finding) -> tuple[str, str]:
    tested = finding.evidence
    gap = findings.deciding_gap(tested, tested["margin"])
    verb = "says" if list(gap) == list(tested["gaps"][0]) else "at"
    brief = f"{verb} {short(gap.confidence)}, right {short(gap.accuracy)}"
    ends = short_interval(gap.lower, gap.upper)
    smece = f"SmoothECE {short(tested['value'])}, noise floor {short(tested['noise_floor'])}"
    return f"{brief}, off by {short(gap.value)} {ends} ({smece})", brief


def _threshold_line(finding: Finding) -> tuple[str, str]:
    numbers = finding.evidence
    if not numbers["verdict"]:
        text = f"no threshold is sure to give {exact_percent(numbers['target'])}"
        least = numbers["least_abstention"]
        if not np.isnan(least):
            part = percent(1 - least)
            text += f"; the most confident {part} of answers reach it here, which can be chance"
        return text, finding.word
    broke = _n_regressions(finding)
    means = numbers["means"]
    earlier, later = (percent(means[f"{end}_coverage"]) for end in ("earlier", "later"))
    right, earlier = percent(finding.value), earlier.removesuffix(" %")
    text = (
        f"{right} right {_percents(finding)}; answers "
        f"{earlier} → {later} of questions; {broke} confident "
        f"{'answer' if broke == '1' else 'answers'} broke"
    )
    return text, f"{right} right, {earlier} → {later}"


_LINES: Mapping[str, Callable[[Finding], tuple[str, str]]] = {
    findings.ACCURACY: _accuracy_line,
    findings.FOLLOWING: _following_line,
    findings.CALIBRATION: _calibration_line,
    findings.THRESHOLD: _threshold_line,
}


def _percents(finding: Finding) -> str:
    return f"[{100 * finding.lower:.0f}, {100 * finding.upper:.0f}]"


def accuracy_sentence(finding: Finding, earlier: str, later: str) -> str:
    """Return how many questions were gained and lost, and the accuracies."""
    numbers = finding.evidence
    if finding.mark == findings.NONE:
        return f"{earlier} and {later} share no answered question."
    gained, lost = numbers["gained"], numbers["lost"]
    text = (
        f"From {earlier} to {later}, {gained + lost:,} of "
        f"{numbers['n_questions']:,} answers changed between right and wrong: {gained:,} "
        f"question{'' if gained == 1 else 's'} gained, {lost:,} lost. "
    )
    values = f"from {short(numbers['earlier'])} to {short(numbers['later'])}"
    ends = short_interval(finding.lower, finding.upper)
    if finding.word != findings.CAN_BE_CHANCE:
        size = short(abs(finding.value) if finding.word != findings.HOLDS else finding.value)
        return f"{text}Accuracy {finding.word} {values}, by {size} {ends}."
    name = "bootstrap of groups" if numbers["has_groups"] else "McNemar's test"
    return (
        f"{text}Accuracy goes {values}; the difference of {short(finding.value)} "
        f"{ends} {finding.word} ({name}, p = {short(numbers['p_value'])})."
    )


def name_recipe(label: str, n_seeds: int, given: str) -> tuple[str, bool]:
    """Return the subject of a claim, and whether it is plural.

    A single seed shows nothing about training again, so the claim names what was `given`: the
    adapters, or the predictions.
    """
    if n_seeds != 1:
        return label, False
    if label[:1].isupper() and label.split()[0][1:].islower():
        label = label[0].lower() + label[1:]
    return f"These {given} of {label} (one seed)", True


def following_sentence(
    finding: Finding, label: str, given: str, names: Sequence[str], flips: Sequence[int]
) -> str:
    """Return the sentence about one estimator.

    `names` are the two checkpoints' and `flips` the numbers of gained and lost questions.
    """
    word, basis, numbers = finding.word, finding.basis, finding.evidence
    n_seeds = numbers["n_seeds"]
    name, is_plural = name_recipe(label, n_seeds, given)
    claim = f"{name} {PHRASES[word][1 + is_plural]}"
    if finding.mark == findings.YES:
        claim += BASES.get(basis, Basis()).sentence
    if finding.mark in (findings.YES, findings.WITH_LABELS):
        statistics = finding.evidence["statistics"]
        moved = [k for k in ("gained", "lost") if statistics[f"moved_{k}"][1] > CHANCE]
        claim += f", in {moved[0]} answers only" if len(moved) == 1 else ""
    n_pairs = numbers["n_pairs"]
    pairs_note = f", over {n_pairs} pairs of checkpoints" if n_pairs > 1 else ""
    text = claim
    if word != words.TOO_FEW:
        text = f"{claim}: {_reasons(finding)} (.5 is chance{pairs_note}); " + _count_moves(
            finding, names, flips
        )
    notes = []
    if basis in (words.CROSS, words.EXAMPLES) and word != words.TOO_FEW:
        asked = "twice" if basis == words.CROSS else "again after other examples"
        first, second = (
            f"{numbers[f'{ask}improvement']:,} and {numbers[f'{ask}regression']:,}"
            for ask in ("", "other_")
        )
        times = f", in {numbers['halvings']} halvings" if numbers["halvings"] > 1 else ""
        notes.append(
            f"Asked {asked}: one ask decides which questions changed (gained and lost: "
            f"{first}; {second}), the other one has the confidence{times}"
        )
    if numbers["repeated"]:
        notes.append(_repeats(finding))
    if shift := _common_shift(finding):
        notes.append(shift)
    if word == words.MOVED and basis != words.COPIES:
        notes.append(
            f"These {sum(flips):,} flips may be chance: ask twice, give samples, name a "
            "control, or say that the answers are greedy"
        )
    if word == words.IF_DECLARED:
        notes.append(
            "Servers and batches can change greedy answers: a second ask of some questions "
            "(--again) would show how often"
        )
    if word == words.AGAINST:
        notes.append("A later confidence that only became noisier does so, too")
    if word == words.TOO_FEW:
        notes.append(_too_few(finding))
    if n_seeds > 1:
        notes.append(f"The interval is over {n_seeds} seeds and the questions")
    if left_out := numbers["left_out"]:
        notes.append(f"{left_out:,} answers have a label in one ask only and are left out")
    return ". ".join([text, *notes]) + "."


def _too_few(finding: Finding) -> str:
    gained, lost = (finding.evidence[name] for name in ("improvement", "regression"))
    if pd.isna(gained):
        return "No pair of checkpoints gains and loses questions"
    least = finding.evidence["min_direction"]
    return (
        f"An interval needs {least} questions, in different groups, of each kind in each pair: "
        f"gained ({gained:,} in all), lost ({lost:,}), still wrong and still right"
    )


def _repeats(finding: Finding) -> str:
    """Describe the answers that a version gave twice."""
    numbers = finding.evidence
    answers = f"{numbers['repeated']:,} answers"
    if finding.basis == words.CONTROL:
        text = f"Of {answers} that were asked again, {numbers['flipped']:,} changed their label"
        text += f"; such flips alone could make {short(numbers['by_chance'])} of *moved*"
        return text if numbers["flipped"] else f"{text}, and a copied file looks the same"
    text = (
        f"Equal in label and confidence: {percent(numbers['alike'])} of {answers} in two asks "
        f"of a version, {percent(numbers['alike_between'])} in asks of two versions"
    )
    if finding.basis != words.COPIES:
        return text
    return (
        f"{text}. Other right answers have other digits, so a part seems copied (a cache, a "
        "seed or a resumed job), and the flips may be chance"
    )


def _common_shift(finding: Finding) -> str:
    """Describe a shift of most confidences from the earlier to the later checkpoint."""
    numbers = finding.evidence
    share, (before, after) = numbers.get("share", 0), numbers.get("means", (0, 0))
    if share <= MOST or abs(after - before) < SHIFT:
        return ""
    amount = "Nearly all" if share >= MOST_OF_ALL else "Most"
    fell = "fell" if numbers["falls"] else "rose"
    return (
        f"{amount} confidences {fell} (mean {short(before)} to {short(after)}), so old "
        "thresholds no longer fit"
    )


def _reasons(finding: Finding) -> str:
    """Return the statistics that a word rests on: the test that failed first, or all."""
    lacking = finding.evidence["lacking"]
    moved = f"moved {_statistic(finding, 'moved')}"
    if lacking.startswith(words.PLACEBO):
        name = lacking.removeprefix(f"{words.PLACEBO}: ")
        return f"a placebo ({name}) earns the word, too; {moved}"
    if lacking in STATISTICS:
        failed = f"{STATISTICS[lacking].heading.lower()} {_statistic(finding, lacking)}"
        return failed if lacking == "moved" else f"{failed}, {moved}"
    before, after = (
        " and ".join(_statistic(finding, name) for name in names) for names in (KNEW, KNOWS)
    )
    return f"{moved}, knew {before}, knows {after}"


def _count_moves(finding: Finding, names: Sequence[str], flips: Sequence[int]) -> str:
    """Return in how many gains and losses the confidence moved the right way."""
    numbers, (gained, lost) = finding.evidence, flips
    shares = f"{numbers['gained_up']:,.0f} of {gained:,} gains and {numbers['lost_down']:,.0f}"
    equal, n_runs = numbers["equal"], numbers["n_runs"]
    return (
        f"from {names[0]} to {names[1]} its confidence moved the right way "
        f"in {shares} of {lost:,} losses"
        + (f", and stayed equal in {equal:,.0f}" if equal else "")
        + (f" (means of {n_runs} seeds)" if n_runs > 1 else "")
    )


def calibration_sentence(finding: Finding, label: str, given: str, names: Sequence[str]) -> str:
    """Describe an estimator that is not calibrated at the later checkpoint.

    The test of calibration is about the given adapters only.
    """
    tested, n_seeds = finding.evidence, finding.evidence["n_seeds"]
    subject, is_plural = name_recipe(label, n_seeds, given)
    if n_seeds > 1:
        subject, is_plural = f"The {n_seeds} seeds of {label}", True
    text = f"{subject} {'are' if is_plural else 'is'} {finding.word}"
    if finding.word == findings.UNCALIBRATED:
        text += ", with no shown bias on average,"
    return (
        f"{text} at {names[1]}: mean confidence "
        f"{short(tested['confidence'])}, accuracy {short(tested['accuracy'])} (SmoothECE "
        f"{short(tested['value'])}, noise floor {short(tested['noise_floor'])}; at "
        f"{names[0]} {short(tested['earlier'][0])}, noise floor {short(tested['earlier'][1])})."
    )


def threshold_sentences(thresholds: pd.DataFrame, labels: Names) -> list[str]:
    """Return one sentence per pair of checkpoints and estimator, seeds together.

    `thresholds` are rows of the table THRESHOLDS for one model and dataset.
    """
    return [
        threshold_sentence(
            findings.threshold_finding(seeds),
            labels.get(seeds[0]["estimator"], seeds[0]["estimator"]),
            [seeds[0]["earlier"], seeds[0]["later"]],
        )
        for seeds in findings.by_estimator(thresholds)
    ]


def threshold_sentence(finding: Finding, name: str, names: Sequence[str]) -> str:
    """Return the sentence for the seeds of one estimator on one pair of checkpoints."""
    numbers, (earlier, later) = finding.evidence, names
    target = exact_percent(numbers["target"])
    sure = f"({exact_percent(1 - numbers['delta'])} sure)"
    n_selected = len(numbers["verdict"])
    if not numbers["n_questions"]:
        return (
            f"{name}: {earlier} and {later} have no question in common, so "
            "no threshold was checked."
        )
    if not n_selected:
        abstention = numbers["least_abstention"]
        reach = (
            "not even the most confident answers reach it"
            if np.isnan(abstention)
            else f"it is observed, without a guarantee, if {percent(abstention)} of the "
            "answers are withheld"
        )
        return (
            f"{name}: no threshold reaches {target} precision on the "
            f"{numbers['n_questions']:,} answers of {earlier} {sure}; {reach}."
        )
    promise = (
        f"{name}: the threshold {threshold_range(finding, 'threshold')} promised {target} "
        f"precision on {earlier} {sure}; on {later} it "
        f"reaches {reached(finding)} at a coverage of "
        f"{threshold_range(finding, 'later_coverage')} "
        f"(before: {threshold_range(finding, 'earlier_coverage')}): {finding.word}"
    )
    if (n_seeds := numbers["n_seeds"]) > 1:
        promise += f" with {numbers['n_same']} of {n_selected} seeds"
        if missing := n_seeds - n_selected:
            promise += f"; {missing} of {n_seeds} seeds have no threshold"
    broke = _n_regressions(finding)
    plural = "answer that was right is" if broke == "1" else "answers that were right are"
    text = f"{broke} confident {plural} wrong now. "
    if broke == "0":
        text = "No confident answer that was right is wrong now. "
    return f"{promise}. {text}{_labels_to_decide(finding)}".strip()


def reached(finding: Finding) -> str:
    """Return the later precision: with its interval for one seed, else the range over seeds."""
    values = finding.evidence["later_precision"]
    if len(values) == 1:
        if np.isnan(values[0]):
            return "no answer"
        return f"{percent(values[0])} {_percents(finding)}"
    low, high = percent(np.nanmin(values)), percent(np.nanmax(values))
    return low if low == high else f"{low.removesuffix(' %')} to {high}"


def threshold_range(finding: Finding, column: str) -> str:
    """Return a number of the thresholds, with its range over seeds."""
    values = finding.evidence[column]
    low, high = map(shown_threshold, (min(values), max(values)))
    return low if low == high else f"{low} to {high}"


def _n_regressions(finding: Finding) -> str:
    counts = finding.evidence["confident_regressions"]
    return " to ".join(f"{n:,.0f}" for n in dict.fromkeys([min(counts), max(counts)]))


def _labels_to_decide(finding: Finding) -> str:
    """Return how many labels would decide an undecided verdict of a single seed."""
    if finding.word != UNDECIDED or len(finding.evidence["verdict"]) > 1:
        return ""
    needed = finding.evidence["labels_to_decide"]
    if np.isinf(needed):
        return "No number of labels would decide this at the observed precision."
    return (
        f"A check of about {needed:,.0f} labelled answers above the threshold would decide "
        "this with a probability of 80 %."
    )


def slice_label(row: Mapping[Any, Any]) -> str:
    """Return the name of a slice with the accuracies in it, from a row of FINDINGS."""
    finding = findings.read_finding(row)
    text = (
        "" if finding.mark == findings.NONE else f" {_accuracy_line(finding)[0].split(', ')[0]}"
    )
    return f"{row['slice']}{text} {MARKS[finding.mark].sign}"


def slice_numbers(finding: Finding) -> str:
    """Return the numbers of a finding about a slice."""
    if finding.value != finding.value:
        return ""
    if finding.question == THRESHOLD:
        return f"{percent(finding.value)} right {_percents(finding)}"
    return phrase_numbers(finding).partition(" (SmoothECE")[0]


def slice_lines(rows: Sequence[Mapping[Any, Any]], labels: Mapping[str, str]) -> list[str]:
    """Return a sentence per question on the slice with the strongest test."""
    tested = {row["slice"] for row in rows if row["mark"] != findings.NONE}
    n_small = len({row["slice"] for row in rows} - tested)
    if not rows:
        return []
    lines = []
    for row in worst_slices(rows):
        finding, name = (
            findings.read_finding(row),
            labels.get(row["estimator"], row["estimator"]),
        )
        owner = f" of {name}" if name else ""
        text = f"{finding.question}{owner} {finding.word}: {slice_numbers(finding)}"
        lines.append(f"{row['slice']} {MARKS[finding.mark].sign} {text}")
    n = f"{len(tested)} slice{'' if len(tested) == 1 else 's'} at once"
    n += f"; {n_small} not tested" if n_small else ""
    return [*lines, f"tested: {n}"] if lines else [f"no test shows a worse one; tested: {n}"]


def gate_line(gate: Gate) -> str:
    """Return the verdict of a release gate in one line, what fails first."""
    parts = []
    several = [
        n for n in PLACE if len({getattr(ruling, n) for ruling in gate.rulings} - {""}) > 1
    ]
    for result, verb in ((FAIL, "failed"), (UNDECIDED, "undecided"), (PASS, "passed")):
        ruled = [ruling for ruling in gate.rulings if ruling.result == result]
        if ruled:
            parts.append(f"{verb}: {', '.join(ruling_text(r, several) for r in ruled)}")
    return f"Gate: {gate.result}; {'; '.join(parts)}." if parts else f"Gate: {gate.result}."


PLACE = ("model", "dataset", "earlier", "later")
_LIMITS = {ACCURACY: "at least {}", CALIBRATION: "within {}", THRESHOLD: "target {}"}


def ruling_text(ruling: Ruling, several: Collection[str] = PLACE[:2]) -> str:
    """Return a ruling in a few words, with its interval and limit."""
    name = ruling.key + (f" of {ruling.estimator}" if ruling.estimator else "")
    pair = " → ".join(getattr(ruling, end) for end in PLACE[2:] if {*PLACE[2:]} & {*several})
    place = [getattr(ruling, end) for end in PLACE[:2] if end in several]
    name = " ".join(filter(None, (*place, pair.strip(" →"), ruling.slice, name)))
    text = f"{name} ({ruling.word}"
    if ruling.lower == ruling.lower and ruling.key in _LIMITS:
        limit = _LIMITS[ruling.key].format(short(float(ruling.limit)))
        ends = short_interval(ruling.lower, ruling.upper)
        text += f", {short(ruling.value)} {ends}, {limit}"
    return f"{text})"


def possible_errors(verdicts: Iterable[object]) -> list[str]:
    """Return a sentence on how many of several verdicts on thresholds could be wrong."""
    n_verdicts = sum(verdict in (KEPT, BROKEN) for verdict in verdicts)
    if n_verdicts < 2:
        return []
    return [
        f"Each of these {n_verdicts:,} verdicts is wrong with a probability of at most "
        f"{exact_percent(LEVEL)}: expect up to {LEVEL * n_verdicts:.2g} wrong ones among them."
    ]
