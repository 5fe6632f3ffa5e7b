"""Thresholds in sentences, as a table and as a figure: terminal, page and notebooks."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from math import ceil, log10
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from persistcal.evaluation.predictions import ABSENT, arrange
from persistcal.evaluation.selective import risk_coverage
from persistcal.evaluation.thresholds import BROKEN, KEPT, LEVEL, UNDECIDED, rank_verdicts
from persistcal.report import drawing, latex
from persistcal.report.analysis_tables import chosen_rows, trained_name
from persistcal.report.latex import MISSING, PLACE, Printed, escape
from persistcal.report.layout import DisplayNames, Names, place_title

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_CURVES = 5  # estimators in a panel
LEAST_ANSWERED = 10  # a risk of fewer answers is not drawn
ENDS = ["later_precision_lower_2_5pct", "later_precision_upper_97_5pct"]


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
    """Return a threshold with the decimals that tell it from 0 and 1, at least two.

    >>> [shown_threshold(value) for value in (0.4142, 0.99983, 0.9999, 1.0)]
    ['.41', '.9998', '.9999', '1.00']
    """
    from_end = min(threshold, 1 - threshold)
    decimals = max(2, ceil(round(-log10(from_end), 9))) if from_end > 0 else 2
    return f"{threshold:.{decimals}f}".removeprefix("0")


def possible_errors(thresholds: pd.DataFrame) -> Iterator[str]:
    """Yield a sentence on how many of several verdicts could be wrong."""
    n_verdicts = int(thresholds["verdict"].isin([KEPT, BROKEN]).sum())
    if n_verdicts > 1:
        yield (
            f"Each of these {n_verdicts:,} verdicts is wrong with a probability of at most "
            f"{chance(LEVEL)}: expect up to {LEVEL * n_verdicts:.2g} wrong ones among them."
        )


def without_baselines(thresholds: pd.DataFrame, predictions: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of THRESHOLDS whose estimators rate questions differently.

    A baseline gives all answers of a checkpoint the same confidence, so it has no threshold.
    """
    key = ["model", "dataset", "train_dataset", "estimator"]
    stated = predictions.groupby([*key, "seed", "checkpoint"], dropna=False)["confidence"]
    varies = (stated.max() > stated.min()).groupby(key, dropna=False).any()
    rated = pd.MultiIndex.from_frame(thresholds[key])
    return thresholds[rated.isin(varies.index[varies])]


def missing_verdicts(thresholds: pd.DataFrame) -> list[str]:
    """Return a line with the reason for each threshold that is neither kept nor broken."""
    lines = []
    for row in thresholds.to_dict("records"):
        if row["verdict"] in (KEPT, BROKEN):
            continue
        reason = row["verdict"] or f"no threshold is {chance(1 - row['delta'])} sure"
        reason = reason if row["n_questions"] else "no question in common"
        pair = f"{row['earlier']} → {row['later']}"
        place = f"{row['model']}, {row['dataset']}, {pair}, {row['estimator']}"
        lines.append(f"{place}, seed {row['seed']}: {reason}")
    return lines


def threshold_sentences(thresholds: pd.DataFrame, labels: Names) -> list[str]:
    """Return one sentence per pair of checkpoints and estimator, seeds together.

    `thresholds` are rows of the table THRESHOLDS for one model and dataset.
    """
    key = ["earlier", "later", "train_dataset", "estimator"]
    # A missing threshold has no verdict, which is NaN in rows read from a printed table.
    verdicts = thresholds["verdict"].astype(object)
    labelled = thresholds.assign(verdict=verdicts.where(verdicts.notna(), ""))
    return [
        _sentence(rows.to_dict("records"), labels)
        for _, rows in labelled.groupby(key, sort=False)
    ]


def _sentence(rows: list[dict[Hashable, Any]], labels: Names) -> str:
    """Return the sentence for the seeds of one estimator on one pair of checkpoints."""
    first = rows[0]
    name = labels.get(first["estimator"], first["estimator"])
    target = exact_percent(first["target"])
    sure = f"({exact_percent(1 - first['delta'])} sure)"
    selected = [row for row in rows if row["verdict"]]
    if not first["n_questions"]:
        return (
            f"{name}: {first['earlier']} and {first['later']} have no question in common, so "
            "no threshold was checked."
        )
    if not selected:
        abstention = np.mean([row["least_abstention"] for row in rows])
        reach = (
            "not even the most confident answers reach it"
            if np.isnan(abstention)
            else f"it is observed, without a guarantee, if {percent(float(abstention))} of the "
            "answers are withheld"
        )
        return (
            f"{name}: no threshold reaches {target} precision on the {first['n_questions']:,} "
            f"answers of {first['earlier']} {sure}; {reach}."
        )
    verdict = rank_verdicts([row["verdict"] for row in selected])
    promise = (
        f"{name}: the threshold {_range(selected, 'threshold')} promised {target} precision on "
        f"{first['earlier']} {sure}; on {first['later']} it "
        f"reaches {_reached(selected)} at a coverage of {_range(selected, 'later_coverage')} "
        f"(before: {_range(selected, 'earlier_coverage')}): {verdict}"
    )
    if len(rows) > 1:
        same = sum(row["verdict"] == verdict for row in selected)
        promise += f" with {same} of {len(selected)} seeds"
        if missing := len(rows) - len(selected):
            promise += f"; {missing} of {len(rows)} seeds have no threshold"
    return f"{promise}. {_regressions(selected)}{_labels_to_decide(selected, verdict)}".strip()


def _reached(rows: list[dict[Hashable, Any]]) -> str:
    """Return the later precision: with its interval for one seed, else the range over seeds."""
    values = [row["later_precision"] for row in rows]
    if len(rows) == 1:
        if np.isnan(values[0]):
            return "no answer"
        low, high = (100 * rows[0][end] for end in ENDS)
        return f"{percent(values[0])} [{low:.0f}, {high:.0f}]"
    low, high = percent(np.nanmin(values)), percent(np.nanmax(values))
    return low if low == high else f"{low.removesuffix(' %')} to {high}"


def _range(rows: list[dict[Hashable, Any]], column: str) -> str:
    values = [row[column] for row in rows]
    low, high = map(shown_threshold, (min(values), max(values)))
    return low if low == high else f"{low} to {high}"


def _regressions(rows: list[dict[Hashable, Any]]) -> str:
    counts = sorted({int(row["confident_regressions"]) for row in rows})
    if counts == [0]:
        return "No confident answer that was right is wrong now. "
    shown = " to ".join(f"{n:,}" for n in dict.fromkeys([counts[0], counts[-1]]))
    plural = "answer that was right is" if counts == [1] else "answers that were right are"
    return f"{shown} confident {plural} wrong now. "


def _labels_to_decide(rows: list[dict[Hashable, Any]], verdict: str) -> str:
    """Return how many labels would decide an undecided verdict of a single seed."""
    if verdict != UNDECIDED or len(rows) > 1:
        return ""
    needed = rows[0]["labels_to_decide"]
    if np.isinf(needed):
        return "No number of labels would decide this at the observed precision."
    return (
        f"A check of about {needed:,.0f} labelled answers above the threshold would decide "
        "this with a probability of 80 %."
    )


def exit_code(thresholds: pd.DataFrame, fail_if: str | None) -> int:
    """Return the exit code of a release gate: 0 kept, 3 broken, 4 undecided.

    `fail_if` is None (always 0), "broken" (undecided counts as kept) or "undecided". A missing
    threshold counts as undecided, because no precision was promised, and so does a pair without
    a common question.
    """
    worst = rank_verdicts([verdict or UNDECIDED for verdict in thresholds["verdict"]])
    codes: Mapping[str, int] = {KEPT: 0, BROKEN: 3, UNDECIDED: 4 if fail_if == UNDECIDED else 0}
    return 0 if fail_if is None else codes[worst]


def thresholds(
    checked: pd.DataFrame,
    *,
    only: Sequence[str],
    checkpoints: DisplayNames,
    labels: DisplayNames,
) -> Printed:
    """Print the threshold of each estimator and pair of checkpoints, with its verdict.

    `only` names the estimators to show. Values over several seeds are ranges.
    """
    rows = chosen_rows(checked, only)
    heads = ["Checkpoints", "Estimator", "Threshold", "Precision", "Coverage", "Verdict"]
    heads.append("Lost")
    groups = latex.nested(
        rows,
        lambda seeds: _cells(seeds, checkpoints, labels),
        ["earlier", "later"],
        span=len(heads),
        labels=labels,
    )
    target = exact_percent(rows["target"].iloc[0]) if len(rows) else "the target"
    caption = (
        f"Thresholds with a precision of at least {target} on the earlier checkpoint "
        "(Learn then Test), and what they reach on the later one: precision with an exact 95 % "
        "interval, coverage before and after, verdict (one-sided 5 %), and confident answers "
        "that were right and are wrong now. Ranges are over seeds. "
        f"{' '.join(possible_errors(rows))}"
    ).replace("%", r"\%")
    body = latex.tabular("llccccr", [latex.line(heads)], groups)
    return Printed(latex.floating(body, caption=caption, label="thresholds", shrink=True), rows)


def _cells(
    rows: list[dict[Hashable, Any]], checkpoints: DisplayNames, labels: DisplayNames
) -> tuple[list[str], list[str]]:
    """Return the cells of one estimator on one pair of checkpoints."""
    names = checkpoints.get(rows[0]["model"], {})
    ends = (rows[0][end] for end in ("earlier", "later"))
    pair = [escape(" → ".join(names.get(end, end) for end in ends))]
    name = escape(trained_name(rows[0], labels))
    selected = [row for row in rows if row["verdict"]]
    if not selected:
        return pair, [name, *[MISSING] * 3, "no threshold", MISSING]
    verdict = rank_verdicts([row["verdict"] for row in selected])
    if len(rows) > 1:
        same = sum(row["verdict"] == verdict for row in selected)
        verdict += f" ({same} of {len(rows)} seeds)"
    coverage = (_range(selected, f"{end}_coverage") for end in ("earlier", "later"))
    lost = sorted({int(row["confident_regressions"]) for row in selected})
    return pair, [
        name,
        _range(selected, "threshold"),
        escape(_reached(selected)),
        r" $\to$ ".join(coverage),
        verdict,
        "–".join(map(str, dict.fromkeys([lost[0], lost[-1]]))),
    ]


@drawing.house_style()
def risk_coverage_figure(
    predictions: pd.DataFrame,
    *,
    checkpoints: Mapping[str, Names],
    labels: DisplayNames,
    only: Sequence[str],
) -> "Figure":
    """Draw the risk–coverage curves of the first and the last checkpoint of each model.

    The risk at coverage k / n is the share of wrong answers among the k most confident of n
    answers, its expectation if confidences are equal, and the mean over seeds. `only` names the
    estimators to draw: the first five if there are more, of all if none has a row.
    """
    from matplotlib.lines import Line2D

    rows = chosen_rows(predictions, only)
    drawn = drawing.in_legend_order(set(rows["estimator"]), labels["estimators"])[:MOST_CURVES]
    styles = drawing.looks(drawn)
    places = list(rows.groupby(PLACE, sort=False))
    n_columns = min(3, len(places))
    figure, panels = drawing.grid(
        -(-len(places) // n_columns), n_columns, width=2.9, height=2.5
    )
    axes_in_order = [axes for row in panels for axes in row]
    for axes, (place, group) in zip(axes_in_order, places, strict=False):
        names = list(checkpoints[str(place[0])])
        for end, width, alpha in ((names[0], 0.9, 0.6), (names[-1], 1.7, 1.0)):
            at_end = group[group["checkpoint"] == end]
            for name in drawn:
                coverage, risk = _mean_curve(at_end[at_end["estimator"] == name])
                color = drawing.line_look(styles[name])["color"]
                style = "-" if end == names[-1] else "--"
                axes.plot(coverage, risk, style, color=color, linewidth=width, alpha=alpha)
        axes.set_title(place_title(place, labels), loc="left")
        axes.set_xlabel("Coverage")
        axes.set_xlim(0, 1)
        axes.set_ylim(bottom=0)
    for axes in axes_in_order[len(places) :]:
        axes.set_visible(False)
    for row in panels:
        row[0].set_ylabel("Risk (share of wrong answers)")
    handles = drawing.legend_handles(styles, labels["estimators"], marker="", linestyle="-")
    ends = [f"{end} checkpoint" for end in ("first", "last")]
    if len(checkpoints) == 1:
        [names] = ([*named.values()] for named in checkpoints.values())
        ends = [f"{end}: {name}" for end, name in zip(ends, (names[0], names[-1]), strict=True)]
    handles += [
        Line2D([], [], color=drawing.GRAY, linestyle="--", linewidth=0.9, label=ends[0]),
        Line2D([], [], color=drawing.GRAY, linestyle="-", linewidth=1.7, label=ends[1]),
    ]
    drawing.add_legend(figure, handles, columns=2 * n_columns)
    return figure


def _mean_curve(rows: pd.DataFrame) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the coverages and mean risks over the runs of one estimator at one checkpoint."""
    if rows.empty:
        return np.empty(0), np.empty(0)
    answers = arrange(rows, [str(rows["checkpoint"].iloc[0])])
    return mean_curve([run[0] for run in answers.confidence.values()], answers.correct[0])


def mean_curve(
    runs: Sequence[NDArray[np.float64]], correct: NDArray
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the coverages and the mean risks of several runs at one checkpoint.

    `correct` is 0 or 1, or ABSENT for a question without an answer. The curve begins at ten
    answers.
    """
    answered = correct != ABSENT
    curves = [risk_coverage(run[answered], correct[answered] == 1) for run in runs]
    shown = slice(LEAST_ANSWERED - 1, None)
    return curves[0][0][shown], np.mean([risk for _, risk in curves], axis=0)[shown]
