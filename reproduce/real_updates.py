"""Measure real updates of real models on stated confidences: docs/real_updates.md.

`python -m reproduce.real_updates verbalised_mmlu.csv.gz tuned_for_confidence.csv` reads the two
files that docs/real_updates.md describes, which the project does not contain, and writes
docs/data/real_updates.csv, the tables of the page and docs/images/real_updates.png.

An update is a pair of consecutive versions of a model line, on the questions that both
answered. The intervals of all updates hold at once with 95 % by Bonferroni's inequality, which
needs no assumption about the questions that updates share. The mean over updates is a
random-effects mean with Paule and Mandel's variance and Hartung and Knapp's interval.
"""

import argparse
import re
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from statsmodels.stats.meta_analysis import combine_effects
from statsmodels.tools.sm_exceptions import InvalidTestWarning
from tqdm import tqdm

import persistcal
from persistcal.evaluation.reliability import checkpoint_calibration

ROOT = Path(__file__).parents[1]
DATA = ROOT / "docs" / "data" / "real_updates.csv"
PAGE = ROOT / "docs" / "real_updates.md"
PICTURE = ROOT / "docs" / "images" / "real_updates.png"
PRECISION = 0.95
LEVEL = 0.05
N_REPLICATES = 20_000
SEED = 17
CHANCE = {"change_auc": 0.5, "delta0_balanced": 0.0}
ENDS = ("earlier", "later")
VERDICTS = ("kept", "broken", "undecided", "none")
# Versions of each line in order of release, named as after the / in the column `model`
LINES = {
    "Claude Opus": {
        "4.1": "claude-opus-4-1",
        "4.5": "claude-opus-4-5",
        "4.6": "claude-opus-4-6",
        "4.7": "claude-opus-4-7",
    },
    "Claude Sonnet": {
        "4": "claude-sonnet-4",
        "4.5": "claude-sonnet-4-5",
        "4.6": "claude-sonnet-4-6",
    },
    "DeepSeek": {"V3.1": "deepseek-v3.1", "V3.2": "deepseek-v3.2"},
    "Gemini Flash": {
        "2.0": "gemini-2.0-flash",
        "2.5": "gemini-2.5-flash",
        "3": "gemini-3-flash-preview",
    },
    "Gemini Flash-Lite": {
        "2.0": "gemini-2.0-flash-lite",
        "3.1": "gemini-3.1-flash-lite-preview",
    },
    "Gemini Pro": {"2.5": "gemini-2.5-pro", "3.1": "gemini-3.1-pro-preview"},
    "Gemma": {"3 27B": "gemma-3-27b", "4 31B": "gemma-4-31b"},
}
TUNED = "Gemma 3 12B, tuned to state its confidence"


class PublishedUpdate(NamedTuple):
    """Two versions of a model; `predictions` contains their answers to shared questions."""

    label: str
    versions: tuple[str, str]
    predictions: pd.DataFrame


class Measured(NamedTuple):
    """Value of each measure of an update, and replicates of those with an interval."""

    values: dict[str, float]
    replicates: dict[str, np.ndarray]


def labels(lines: Mapping[str, Mapping[str, str]]) -> list[tuple[str, tuple[str, str]]]:
    """Return the label and the two versions of each update."""
    return [
        (f"{line} {earlier} → {later}", (versions[earlier], versions[later]))
        for line, versions in lines.items()
        for earlier, later in zip(versions, list(versions)[1:], strict=False)
    ]


def slug(label: str) -> str:
    """Return a label as docs/data names it."""
    return re.sub(r"[^a-z0-9.]+", "_", label.lower())


def read_answers(path: Path) -> pd.DataFrame:
    """Return the predictions of every model in a file with the columns of the dataset."""
    table = pd.read_csv(path)
    return pd.DataFrame(
        {
            "checkpoint": table["model"].str.split("/").str[-1].str.split("@").str[0],
            "question_id": table["item_id"].astype(str),
            "confidence": table["confidence"] / 100,
            "correct": table["is_correct"].astype(int),
        }
    )


def find_updates(
    answers: pd.DataFrame, lines: Mapping[str, Mapping[str, str]]
) -> list[PublishedUpdate]:
    """Return each update with the answers to the questions that both versions answered."""
    updates = []
    for label, versions in labels(lines):
        rows = answers[answers["checkpoint"].isin(versions)]
        counts = rows.groupby("question_id")["checkpoint"].nunique()
        shared = rows[rows["question_id"].isin(counts.index[counts == 2])]
        if shared.empty:
            raise SystemExit(f"No question is answered by both versions of {label}.")
        updates.append(PublishedUpdate(label, versions, shared))
    return updates


def measure(update: PublishedUpdate, *, n_replicates: int = N_REPLICATES) -> Measured:
    """Return the results of an update."""
    rows = update.predictions.assign(estimator="stated")
    compared = persistcal.compare(
        rows, update.versions, min_contrast=1, n_replicates=n_replicates, seed=SEED
    )
    rows_of_odds = compared.replicates.query("conditioning == 'odds'").set_index("metric")
    observed = rows_of_odds["value"].to_dict()
    claims = rows_of_odds["claims"].to_dict()
    first, second = (
        rows[rows["checkpoint"] == version].set_index("question_id")
        for version in update.versions
    )
    second = second.loc[first.index]
    gained = first.index[(first["correct"] == 0) & (second["correct"] == 1)]
    lost = first.index[(first["correct"] == 1) & (second["correct"] == 0)]
    values: dict[str, float] = {
        "questions": len(first),
        "gained": len(gained),
        "lost": len(lost),
    }
    for name in CHANCE:
        values[name] = float(observed[name])
    for end, version in (("earlier", first), ("later", second)):
        calibration = checkpoint_calibration(
            [version["confidence"].to_numpy()],
            version["correct"].to_numpy(bool),
            np.arange(len(version)),
            seed=SEED,
        )
        values |= {
            f"{end}.accuracy": calibration.accuracy,
            f"{end}.confidence": calibration.confidence,
            f"{end}.accuracy_at_highest": version.loc[
                version["confidence"] == version["confidence"].max(), "correct"
            ].mean(),
            f"{end}.confidence_in_lost": version.loc[lost, "confidence"].mean(),
            f"{end}.smece": calibration.value,
            f"{end}.noise_floor": calibration.noise_floor,
        }
    checked = persistcal.threshold(
        rows, update.versions, precision=PRECISION, n_replicates=n_replicates, seed=SEED
    )
    threshold = checked.tables["thresholds"].iloc[0]
    values[threshold["verdict"] or "none"] = 1
    columns = ("threshold", "earlier_coverage", "later_coverage", "confident_regressions")
    values |= {name: float(threshold[name]) for name in columns}
    return Measured(values, {name: np.asarray(claims[name]) for name in CHANCE})


def interval(replicates: np.ndarray, n_updates: int) -> tuple[float, float]:
    """Return an interval of one update; all `n_updates` hold together with 95 %."""
    tail = LEVEL / 2 / n_updates
    low, high = np.quantile(replicates, [tail, 1 - tail]).tolist()
    return low, high


def random_effects_mean(
    values: Sequence[float], variances: Sequence[float]
) -> tuple[float, float, float]:
    """Return the mean over updates with its 95 % interval."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InvalidTestWarning)  # about intervals of single updates
        combined = combine_effects(
            np.array(values), np.array(variances), method_re="iterated", use_t=True
        )
        row = combined.summary_frame().loc["random effect wls"]
    return float(row["eff"]), float(row["ci_low"]), float(row["ci_upp"])


def tabulate(
    updates: Sequence[PublishedUpdate],
    whole_lines: Sequence[PublishedUpdate],
    tuned: PublishedUpdate,
) -> pd.DataFrame:
    """Return the rows of docs/data/real_updates.csv: name, value, low and high.

    `whole_lines` are the updates from the first to the last version of each line. They share
    no version, so their mean shows how much the shared versions of `updates` matter.
    """
    by_label = {update.label: update for update in [*updates, *whole_lines, tuned]}
    measured = {label: measure(update) for label, update in tqdm(by_label.items(), "updates")}
    rows: list[tuple[str, float, float, float]] = []
    for label in [*(update.label for update in updates), tuned.label]:
        n_updates = 1 if label == tuned.label else len(updates)
        for name, value in measured[label].values.items():
            ends = (np.nan, np.nan)
            if name in CHANCE:
                ends = interval(measured[label].replicates[name], n_updates)
            rows.append((f"{slug(label)}.{name}", value, *ends))
    for title, family in (("mean", updates), ("mean_of_lines", whole_lines)):
        results = [measured[update.label] for update in family]
        for name in CHANCE:
            mean = random_effects_mean(
                [result.values[name] for result in results],
                [float(result.replicates[name].var(ddof=1)) for result in results],
            )
            rows.append((f"{title}.{name}", *mean))
    table = pd.DataFrame(rows, columns=["name", "value", "low", "high"])
    return table.dropna(subset="value")


class ResultsOfUpdates:
    """The rows of docs/data/real_updates.csv."""

    def __init__(self, table: pd.DataFrame) -> None:
        numbers = table.set_index("name").astype(float)
        self.rows = {str(name): tuple(row) for name, *row in numbers.itertuples()}

    def __call__(self, label: str, name: str) -> float:
        """Return a value; NaN if the update has none."""
        return self.rows.get(f"{slug(label)}.{name}", (np.nan,))[0]

    def ends(self, label: str, name: str) -> tuple[float, float]:
        """Return an interval."""
        _, low, high = self.rows[f"{slug(label)}.{name}"]
        return low, high

    def printed(self, label: str, name: str) -> str:
        """Return a value with its interval, such as .62 [.51, .73]."""
        low, high = (number(end, 2) for end in self.ends(label, name))
        return f"{number(self(label, name), 2)} [{low}, {high}]"


def number(value: float, digits: int) -> str:
    """Return a number as the docs print it: .05, −.10, 1.00; – if there is none."""
    if np.isnan(value):
        return "–"
    text = f"{round(value, digits) + 0.0:.{digits}f}".replace("-", "−")  # no −.00
    return re.sub(r"^(−?)0\.", r"\1.", text)


def change_table(results: ResultsOfUpdates, names: Sequence[str]) -> list[str]:
    """Return the table about changed answers in Markdown."""
    lines = [
        "| update | questions | accuracy | gained, lost | change AUC | Δ₀ᵇ "
        "| confidence in lost answers |",
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
    for label in names:
        accuracy, lost = (
            " → ".join(number(results(label, f"{end}.{name}"), 3) for end in ENDS)
            for name in ("accuracy", "confidence_in_lost")
        )
        counts = [f"{results(label, name):,.0f}" for name in ("questions", "gained", "lost")]
        measures = " | ".join(results.printed(label, name) for name in CHANCE)
        lines.append(
            f"| {label} | {counts[0]} | {accuracy} | {counts[1]}, {counts[2]} | {measures} "
            f"| {lost} |"
        )
    return lines


def use_table(results: ResultsOfUpdates, names: Sequence[str]) -> list[str]:
    """Return the table about calibration and thresholds in Markdown."""
    lines = [
        "| update | mean confidence | SmoothECE (noise floor) | threshold for 95 % | answered "
        "above it | after the update | confident answers that broke |",
        "|---|--:|--:|--:|--:|---|--:|",
    ]
    for label in names:
        confidence = " → ".join(number(results(label, f"{end}.confidence"), 3) for end in ENDS)
        calibration = " → ".join(
            f"{number(results(label, f'{end}.smece'), 3)} "
            f"({number(results(label, f'{end}.noise_floor'), 3)})"
            for end in ENDS
        )
        [verdict] = [name for name in VERDICTS if results(label, name) == 1]
        threshold, broke, answered = number(results(label, "threshold"), 2), "–", "–"
        if verdict != "none":
            broke = f"{results(label, 'confident_regressions'):.0f}"
            answered = " → ".join(
                f"{100 * results(label, f'{e}_coverage'):.0f} %" for e in ENDS
            )
        lines.append(
            f"| {label} | {confidence} | {calibration} | {threshold} | {answered} | {verdict} "
            f"| {broke} |"
        )
    return lines


def write_tables(table: pd.DataFrame, text: str) -> str:
    """Return the page with its tables made anew from the results."""
    results, names = ResultsOfUpdates(table), [label for label, _ in labels(LINES)]
    for title, lines in (
        ("changes", change_table(results, [*names, TUNED])),
        ("use", use_table(results, [*names, TUNED])),
    ):
        begin, end = f"<!-- table: {title} -->\n", "<!-- end of table -->"
        made = begin + "".join(line + "\n" for line in lines) + end
        text, n_tables = re.subn(
            f"{begin}.*?{end}", made.replace("\\", r"\\"), text, flags=re.DOTALL
        )
        if n_tables != 1:
            raise SystemExit(f"{PAGE.name} needs one comment <!-- table: {title} -->.")
    return text


def draw(table: pd.DataFrame, file: Path) -> None:
    """Draw the change AUC of every update, and the mean over updates."""
    mpl.use("Agg")
    results, names = ResultsOfUpdates(table), [label for label, _ in labels(LINES)]
    figure, axes = plt.subplots(figsize=(7.6, 4.6), layout="constrained")
    axes.axvline(0.5, color="0.4", linestyle="--", linewidth=1)
    for y, label in enumerate([*names, ""]):
        key = label or "mean"
        value, (low, high) = results(key, "change_auc"), results.ends(key, "change_auc")
        is_above = low > 0.5
        colour = "#00796b" if is_above else "0.45"
        axes.plot([low, high], [y, y], color=colour, linewidth=2)
        axes.plot(value, y, "o" if label else "D", color=colour, markersize=7)
        counts = [f"{results(label, name):.0f}" for name in ("gained", "lost")]
        note = f"{counts[0]} gained, {counts[1]} lost" if label else f"{number(value, 2)}"
        axes.text(1.01, y, note, va="center", color="0.3", fontsize=8)
    axes.set_yticks(range(len(names) + 1), [*names, "mean over updates"])
    axes.invert_yaxis()
    axes.set(xlim=(0.25, 1), xlabel="change AUC: does stated confidence move with the labels?")
    axes.text(
        0.5, -0.9, "chance, if no answer flips by itself", ha="center", fontsize=8, color="0.4"
    )
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    figure.savefig(file, dpi=130)
    plt.close(figure)


def main() -> None:
    """Read the files, and write the results, the tables and the picture."""
    parser = argparse.ArgumentParser(
        prog="python -m reproduce.real_updates", description=__doc__
    )
    parser.add_argument("answers", type=Path, help="verbalised_mmlu.csv.gz")
    parser.add_argument("tuned", type=Path, help="tuned_for_confidence.csv")
    files = parser.parse_args()
    answers, tuned = read_answers(files.answers), pd.read_csv(files.tuned)
    earlier, later = tuned["checkpoint"].unique()
    ends = {line: dict(list(named.items())[:: len(named) - 1]) for line, named in LINES.items()}
    table = tabulate(
        find_updates(answers, LINES),
        find_updates(answers, ends),
        PublishedUpdate(TUNED, (earlier, later), tuned),
    )
    table.to_csv(DATA, index=False, float_format="%.6g")
    PAGE.write_text(write_tables(table, PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    draw(table, PICTURE)


if __name__ == "__main__":
    main()
