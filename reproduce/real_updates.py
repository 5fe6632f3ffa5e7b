"""Measure real updates of real models on stated confidences: docs/real_updates.md.

`python -m reproduce.real_updates verbalised_mmlu.csv.gz tuned_for_confidence.csv
tuned_and_shuffled.csv` reads the three files that docs/real_updates.md describes, which the
project does not contain, and writes docs/data/real_updates.csv, the tables of the page and
docs/images/real_updates.png.

An update is a pair of consecutive versions of a model line, on the questions that both
answered. The intervals of all updates hold at once with 95 % by Bonferroni's inequality, which
needs no assumption about the questions that updates share. The mean over updates is a
random-effects mean with Paule and Mandel's variance and Hartung and Knapp's interval.
"""

import re
import sys
import warnings
from collections.abc import Mapping, Sequence
from itertools import combinations
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
from persistcal.evaluation import knowledge
from persistcal.evaluation.aligned import rate
from persistcal.evaluation.bootstrap import Bootstrap
from persistcal.evaluation.claims import SAMPLES, word_of
from persistcal.evaluation.contrast import contrast_sets
from persistcal.evaluation.influence import change_of_ranks
from persistcal.evaluation.knowledge import sample_knowledge
from persistcal.evaluation.reliability import checkpoint_calibration
from persistcal.evaluation.samples import Bounds, Sample
from persistcal.evaluation.settings import EvaluationSettings

ROOT = Path(__file__).parents[1]
DATA = ROOT / "docs" / "data" / "real_updates.csv"
PAGE = ROOT / "docs" / "real_updates.md"
PICTURE = ROOT / "docs" / "images" / "real_updates.png"
PRECISION = 0.95
LEVEL = 0.05
N_REPLICATES = 20_000
SEED = 17
STATISTICS = [*knowledge.STATISTICS, "change_auc"]
# The mean change AUC of a sampled answer's probability if nothing changed, in the world of that
# name in benchmarks/knew_moved_knows.py, and a share of answers that change if asked again
FLIPS_ALONE, ASKED_AGAIN = 0.79, 0.02
ENDS = ("earlier", "later")
PANELS = {
    "knew": "knew: the earlier confidence\nknew what would change",
    "moved": "moved: confidence moved\nwith the change",
    "knows": "knows: the later confidence\nknows what changed",
}
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
# Versions of the third file: the second fine-tuning was on confidences of other questions
TRIPLE = {
    "Gemma 3 4B, tuned to state its confidence": ("before", "tuned"),
    "Gemma 3 4B, the same on shuffled confidences": ("before", "shuffled"),
}


class PublishedUpdate(NamedTuple):
    """Two versions of a model; `predictions` contains their answers to shared questions."""

    label: str
    versions: tuple[str, str]
    predictions: pd.DataFrame


class Measured(NamedTuple):
    """Value of each measure of an update, and samples of those with an interval."""

    values: dict[str, float]
    samples: dict[str, Sample]

    def bounds(self, name: str, n_updates: int) -> Bounds:
        """Return a statistic with an interval; all `n_updates` hold together with 95 %."""
        sample = self.samples[name]
        return Bounds(sample.value, *sample.interval(LEVEL / n_updates))


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
            "vendor": table["model"].str.split("/").str[0],
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
        rows = answers[answers["checkpoint"].isin(versions)].drop(columns="vendor")
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
    [data] = compared.aligned.values()
    bootstrap = Bootstrap(data.answers, compared.settings)
    by_name = sample_knowledge(data.rated(), bootstrap)
    by_name |= bootstrap.apply(["change_auc"], data.rated())
    samples = {name: next(iter(members.values())) for name, members in by_name.items()}
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
    values |= {name: samples[name].value for name in STATISTICS}
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
    return Measured(values, samples)


def of_unrelated_models(answers: pd.DataFrame) -> dict[str, float]:
    """Return the means of the statistics over pairs of models of different vendors.

    The less accurate model is the earlier one. Pairs that share no question, or have no gained
    or no lost ones, are left out.
    """
    wide = answers.set_index(["checkpoint", "question_id"])[["correct", "confidence"]].unstack()
    order = answers.groupby("checkpoint")["correct"].mean().sort_values().index
    vendors = answers.drop_duplicates("checkpoint").set_index("checkpoint")["vendor"]
    rows = []
    for pair in combinations(order, 2):
        shared = pd.DataFrame(wide.loc[list(pair)]).dropna(axis=1)
        if vendors[pair[0]] == vendors[pair[1]] or shared.empty:
            continue
        correct, confidence = (shared[name].to_numpy() for name in ("correct", "confidence"))
        sets = contrast_sets(correct.astype(np.int8), pair, EvaluationSettings(min_contrast=1))
        if not sets or not sets[0].has_both_directions:
            continue
        [run] = (rated := rate(sets[0], [confidence])).runs
        pooled = (
            [rated.pair.rows.gained, rated.pair.rows.stayed_wrong],
            [rated.pair.rows.stayed_right, rated.pair.rows.lost],
        )
        moved = change_of_ranks(*run.ends)
        gained, lost = (auc_of(moved[a], moved[b]) for a, b in pooled)
        n_gained = rated.pair.counts.gained
        area = auc_of(run.change[:n_gained], run.change[n_gained:])
        rows.append((area, (gained + lost) / 2, gained, lost))
    names = ("change_auc", "moved", "moved_gained", "moved_lost")
    return {"pairs": len(rows), **dict(zip(names, np.mean(rows, axis=0).tolist(), strict=True))}


def auc_of(higher: np.ndarray, lower: np.ndarray) -> float:
    """Return the share of pairs in which the first value is higher; ties count half."""
    return float(np.mean(np.sign(higher[:, None] - lower) / 2 + 0.5))


def by_flips_alone(measured: Sequence[Measured]) -> float:
    """Return the mean change AUC that chance flips alone could give.

    It is ½ + (`FLIPS_ALONE` − ½) times the share of changed answers that `ASKED_AGAIN`
    explains, at most 1 for each update.
    """
    shares = [
        min(
            1.0,
            ASKED_AGAIN
            * update.values["questions"]
            / (update.values["gained"] + update.values["lost"]),
        )
        for update in measured
    ]
    return 0.5 + (FLIPS_ALONE - 0.5) * float(np.mean(shares))


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
    tuned: Sequence[PublishedUpdate],
    unrelated: Mapping[str, float],
) -> pd.DataFrame:
    """Return the rows of docs/data/real_updates.csv: name, value, low and high.

    `whole_lines` are the updates from the first to the last version of each line. They share
    no version, so their mean shows how much the shared versions of `updates` matter.
    `unrelated` are means over pairs of unrelated models.
    """
    by_label = {update.label: update for update in [*updates, *whole_lines, *tuned]}
    measured = {label: measure(update) for label, update in tqdm(by_label.items(), "updates")}
    rows: list[tuple[str, float, float, float]] = []
    for update in [*updates, *tuned]:
        n_updates, row = 1 if update in tuned else len(updates), measured[update.label]
        for name, value in row.values.items():
            ends = row.bounds(name, n_updates)[1:] if name in STATISTICS else (np.nan, np.nan)
            rows.append((f"{slug(update.label)}.{name}", value, *ends))
        bounds = {name: row.bounds(name, n_updates) for name in STATISTICS}
        word = word_of(bounds, SAMPLES).word
        rows.append((f"{slug(update.label)}.word: {word}", 1, np.nan, np.nan))
    for title, family in (("mean", updates), ("mean_of_lines", whole_lines)):
        results = [measured[update.label] for update in family]
        for name in STATISTICS:
            mean = random_effects_mean(
                [result.values[name] for result in results],
                [float(result.samples[name].draws.var(ddof=1)) for result in results],
            )
            rows.append((f"{title}.{name}", *mean))
    flips = by_flips_alone([measured[update.label] for update in updates])
    rows += [("flips_alone.change_auc", flips, np.nan, np.nan)]
    rows += [(f"unrelated.{name}", row, np.nan, np.nan) for name, row in unrelated.items()]
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

    def word(self, label: str) -> str:
        """Return the word for an update."""
        begin = f"{slug(label)}.word: "
        return next(name.removeprefix(begin) for name in self.rows if name.startswith(begin))

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
        "| update | accuracy | gained, lost | knew | moved | knows | moved in gained, lost "
        "| change AUC | word |",
        "|---|--:|--:|--:|--:|--:|--:|--:|---|",
    ]
    for label in names:
        accuracy = " → ".join(number(results(label, f"{end}.accuracy"), 3) for end in ENDS)
        counts = ", ".join(f"{results(label, name):,.0f}" for name in ("gained", "lost"))
        tests = " | ".join(
            ", ".join(results.printed(label, name) for name in group)
            for group in (knowledge.KNEW, ("moved",), knowledge.KNOWS)
        )
        moved = ", ".join(
            number(results(label, f"moved_{group}"), 2) for group in ("gained", "lost")
        )
        area, word = results.printed(label, "change_auc"), results.word(label)
        lines.append(
            f"| {label} | {accuracy} | {counts} | {tests} | {moved} | {area} | {word} |"
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
        ("changes", change_table(results, [*names, TUNED, *TRIPLE])),
        ("use", use_table(results, [*names, TUNED, *TRIPLE])),
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
    """Draw whether every update, and the mean over updates, knew, moved and knows."""
    mpl.use("Agg")
    results, names = ResultsOfUpdates(table), [label for label, _ in labels(LINES)]
    figure, panels = plt.subplots(
        1, 3, figsize=(9.2, 4.6), layout="constrained", sharey=True, sharex=True
    )
    for axes, (name, title) in zip(panels, PANELS.items(), strict=True):
        axes.axvline(0.5, color="0.4", linestyle="--", linewidth=1)
        for y, label in enumerate([*names, ""]):
            key = label or "mean"
            value, (low, high) = results(key, name), results.ends(key, name)
            colour = "#00796b" if low > 0.5 else "0.45"
            axes.plot([low, high], [y, y], color=colour, linewidth=2)
            axes.plot(value, y, "o" if label else "D", color=colour, markersize=7)
            for kind, marker in (("gained", "^"), ("lost", "v")) if name == "moved" else ():
                end = results(key, f"moved_{kind}")
                axes.plot(end, y, marker, color="w", markeredgecolor="0.2", markersize=5)
        axes.set(title=title, xlim=(0.2, 1))
        axes.title.set_fontsize(10)
        axes.spines[["top", "right", "left"]].set_visible(False)
        axes.tick_params(axis="y", length=0)
    panels[0].set_yticks(range(len(names) + 1), [*names, "mean over updates"])
    panels[0].invert_yaxis()
    panels[1].set_xlabel(
        ".5 is chance; triangles: in gained (up) and lost (down) answers alone"
    )
    figure.savefig(file, dpi=130)
    plt.close(figure)


def main() -> None:
    """Read the files, and write the results, the tables and the picture."""
    path, *further = map(Path, sys.argv[1:])
    answers, (tuned, triple) = read_answers(path), map(pd.read_csv, further)
    earlier, later = tuned["checkpoint"].unique()
    of_triple = [
        PublishedUpdate(label, versions, triple[triple["checkpoint"].isin(versions)])
        for label, versions in TRIPLE.items()
    ]
    ends = {
        line: dict(list(models.items())[:: len(models) - 1]) for line, models in LINES.items()
    }
    table = tabulate(
        find_updates(answers, LINES),
        find_updates(answers, ends),
        [PublishedUpdate(TUNED, (earlier, later), tuned), *of_triple],
        of_unrelated_models(answers),
    )
    table.to_csv(DATA, index=False, float_format="%.6g")
    PAGE.write_text(write_tables(table, PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    draw(table, PICTURE)


if __name__ == "__main__":
    main()
