"""The result of a comparison, and how it is shown: sentences, tables, figures and the page."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from importlib import import_module
from inspect import signature
from typing import TYPE_CHECKING, Any

import pandas as pd

import persistcal
from persistcal.answers.options import has_options
from persistcal.api.gate import versions_alone
from persistcal.confidence.estimators.catalogue import OF_ANSWERS
from persistcal.evaluation.aligned import Aligned
from persistcal.evaluation.gate import Gate, check_policy, close_gate
from persistcal.evaluation.metrics.registry import names as metric_names
from persistcal.evaluation.settings import EvaluationSettings
from persistcal.judge.accuracy import accuracies
from persistcal.readers.inputs import IMPORTED, SUBJECT, PredictionTables, stack
from persistcal.report.catalogue import FIGURES
from persistcal.report.grid import BEST_SET, as_csv, fill_cells, lay_out
from persistcal.report.latex import results_table
from persistcal.report.layout import Description
from persistcal.report.page.about import about
from persistcal.report.page.compose import Origin, compose, summary
from persistcal.report.page.contents import Contents, Shown, Stage, StudyTables, gather
from persistcal.report.page.verdict import (
    CommandWords,
    gate_record,
    verdict_record,
    verdict_text,
    verdicts,
)
from persistcal.report.phrases import gate_line
from persistcal.report.tables import calibration, contrast_set_sizes
from persistcal.report.tables import states as table_of_states
from persistcal.store import artifacts
from persistcal.store.tables import TableFiles

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas.io.formats.style import Styler

SCHEMA_VERSION = 1  # version of the JSON of a verdict
GIVEN = (
    "min_contrast",
    "pairs",
    "min_direction",
    "n_replicates",
    "seed",
    "margin",
)  # to `compare`
FIGURE_NAMES = (
    "full_vs_contrast",
    "states",
    "reliability",
    "confidence_shifts",
    "threshold_curves",
    "label_curve",
    "risk_coverage",
)
BLOCK = [*SUBJECT, "train_dataset"]
# The first metrics of the table of that name, which has every metric
LEADING = ("delta0_balanced", "change_auc")
ALL_ESTIMATORS: dict[str, Any] = {
    "caption": "All metrics of every estimator. Bold: best of the block; underlined: cannot be "
    "distinguished from the best (simultaneous 95 % intervals of all pairs, bootstrap of "
    "questions).",
    "marks": "best_set",
    "layout": "models_as_blocks",
    "conditioning": "odds",
    "columns": {
        "contrast": sorted(metric_names("contrast"), key=lambda name: name not in LEADING),
        "full": metric_names("full"),
    },
    "blocks": [{}],
}


@dataclass(frozen=True)
class Comparison:
    """Metrics, tests and intervals of estimators and checkpoints.

    Attributes
    ----------
    inputs, settings
        The compared tables, and the settings of the comparison.
    tables : dict of str to DataFrame
        "metrics", "significance", "intervals", "claims", "contrast_sets", "states", "trends",
        "pairs", "min_contrast", "thresholds", "threshold_cells", "confident_regressions",
        "selective" and "findings": the tables of the same names that the workflow writes.
    replicates : DataFrame
        The bootstrap replicates of each estimator.
    aligned : mapping of (str, str) to Aligned
        The answers of each model and dataset.
    """

    inputs: PredictionTables
    settings: EvaluationSettings
    tables: dict[str, pd.DataFrame]
    replicates: pd.DataFrame
    aligned: Mapping[tuple[str, str], Aligned]

    def verdict(self, *given: str) -> str:
        """Return the changes, an answer per question and estimator, and the next step.

        `given` are the words of a command that reads the same files, and its options.
        """
        texts = [
            verdict_text(verdict, CommandWords(*given)) for verdict in verdicts(self._contents)
        ]
        notes = "\n".join(self.inputs.assumptions(self.settings))
        return "\n\n".join([*texts, notes])

    def _repr_html_(self) -> str:
        """Return the verdict as a notebook shows it."""
        return f"<pre>{escape(self.verdict())}</pre>"

    def verdict_record(self, *given: str, gate: Gate | None = None) -> dict[str, Any]:
        """Return the verdict, and the rulings of a release gate, as values for JSON.

        `given` are as for `verdict`.
        """
        return {
            "schema_version": SCHEMA_VERSION,
            "version": persistcal.__version__,
            "inputs": self.inputs.digests,
            "left_out": self.inputs.left_out,
            "notes": self.inputs.assumptions(self.settings),
            "gate": gate and gate_record(gate),
            "verdicts": [
                verdict_record(verdict, CommandWords(*given))
                for verdict in verdicts(self._contents)
            ],
        }

    def gate(
        self,
        policy: Mapping[str, float | str],
        by_dataset: Mapping[str, Mapping[str, float | str]] | None = None,
        *,
        estimators: Sequence[str] = (),
    ) -> Gate:
        """Return whether the update passes a policy, fails it, or leaves it undecided.

        Parameters
        ----------
        policy : mapping of str to float or str
            Any of "accuracy" (the smallest change), "calibration" (the largest difference of
            mean confidence and accuracy), "threshold" (the precision of this comparison) and
            "confidence" ("followed").
        by_dataset : mapping of str to mapping, optional
            Limits that replace those of `policy` on a dataset.
        estimators : sequence of str, optional
            The estimators in use; by default all but baselines.
        """
        rules = {name: check_policy(limits) for name, limits in (by_dataset or {}).items()}
        return close_gate(
            self.tables["findings"],
            check_policy(policy) if policy or not rules else {},
            by_dataset=rules,
            estimators=estimators,
            unpaired=versions_alone(self.inputs),
        )

    def summary(self) -> str:
        """Return the findings in sentences, a table of all metrics, and the assumptions."""
        return "\n".join([summary(self._contents), *self.inputs.assumptions(self.settings)])

    def to_html(self, gate: Gate | None = None, *given: str) -> str:
        """Return the page: findings, charts, and every answer, in one HTML file.

        The page repeats the result of a release gate, `gate`. `given` is as for `verdict`.
        """
        terms = about(self._contents, commit="", weights={})
        terms += [("Assumed", note) for note in self.inputs.notes]
        chosen = {name: getattr(self.settings, name) for name in GIVEN}
        settings = {"checkpoints": self.inputs.checkpoints, **chosen}
        text = json.dumps(settings, indent=2, ensure_ascii=False)
        line = gate_line(gate) if gate else ""
        return compose(self._contents, Origin(terms, [], text, line, CommandWords(*given)))

    def figure(self, name: str = "full_vs_contrast") -> "Figure":
        """Draw a figure of the workflow.

        Parameters
        ----------
        name : str, default="full_vs_contrast"
            "full_vs_contrast": the change AUC against the AUC on all questions, and "states":
            the differences between checkpoints, both with 95 % intervals. Of the first and the
            last checkpoint: "reliability"; "confidence_shifts", histograms of confidence in
            gained, lost and unchanged questions; "threshold_curves", precision and coverage at
            each threshold; "label_curve", how many labels certify a threshold; and
            "risk_coverage".
        """
        views = {view.name: view for view in FIGURES if view.name in FIGURE_NAMES}
        if name not in views:
            raise ValueError(f"name is {name!r}; give one of {', '.join(FIGURE_NAMES)}.")
        view, labels = views[name], self.labels
        module, function = view.function.split(".")
        settings: dict[str, Any] = {
            **labels,
            "checkpoints": self._checkpoint_names,
            "labels": labels,
            "only": list(labels["estimators"]),
            "threshold": {k: getattr(self.settings, k) for k in ("precision", "delta")},
        }
        rows = self.tables.get(view.artifact, self.inputs.all_predictions)
        draw = getattr(import_module(f"persistcal.report.{module}"), function)
        options = {key: settings[key] for key in settings if key in signature(draw).parameters}
        return draw(rows, **options)

    def table(self, *, conditioning: str = "odds") -> "Styler":
        """Lay the metrics of all estimators out as the paper's tables do.

        Parameters
        ----------
        conditioning : {"odds", "fitted"}, default="odds"
            Conditioning of the contrast metrics.

        Returns
        -------
        pandas Styler
            A row per estimator and a column per metric. The best value is bold; values that
            cannot be distinguished from it by simultaneous intervals are underlined. `.data`
            contains the numbers.
        """
        metrics = self.tables["metrics"]
        if conditioning not in set(metrics["conditioning"]):
            raise ValueError(f"conditioning is {conditioning!r}; give 'odds' or 'fitted'.")
        mean = metrics[metrics["seed"] == "mean"]
        is_shown = (mean["scope"] == "contrast") & (mean["conditioning"] == conditioning)
        columns = {
            "contrast": list(mean.loc[is_shown, "metric"].unique()),
            "full": list(mean.loc[mean["scope"] == "full", "metric"].unique()),
        }
        layout = {"layout": "models_as_blocks", "blocks": [{}]}
        described = {"columns": columns, "conditioning": conditioning, "marks": BEST_SET}
        cells = self._all_cells(layout | described)
        rows = {
            (*block, row.estimator): row.cells
            for block, group in cells.groupby(BLOCK, sort=False)
            for grid in lay_out(group, layout, labels={})
            for row in grid.rows()
        }
        index = pd.MultiIndex.from_tuples(rows, names=[*BLOCK, "estimator"])
        heads = [(scope, metric) for scope, names in columns.items() for metric in names]
        across = pd.MultiIndex.from_tuples(heads, names=["scope", "metric"])
        grid = pd.DataFrame(list(rows.values()), index=index, columns=across)
        bold, line = "font-weight: bold", "text-decoration: underline"
        css = grid.map(lambda cell: "; ".join([bold] * cell.best + [line] * cell.underlined))
        values = grid.map(lambda cell: cell.value)
        return values.style.format("{:.3f}").apply(lambda _: css, axis=None)

    def _all_cells(self, description: Description) -> pd.DataFrame:
        """Return the cells of a table of all estimators, a section per training dataset."""
        metrics = self.tables["metrics"]
        sections = metrics[BLOCK].drop_duplicates().itertuples(index=False)
        parts = [
            fill_cells(
                metrics,
                self.tables["significance"],
                {**description, "transfer": train_dataset != dataset},
                models=[model],
                datasets={dataset: [train_dataset] if train_dataset != dataset else []},
                missing_ok=True,
            )
            for model, dataset, train_dataset in sections
        ]
        return pd.concat(parts, ignore_index=True)

    @property
    def labels(self) -> dict[str, dict[str, str]]:
        """The display names of models, datasets and estimators."""
        rows = self.inputs.all_predictions
        subjects = {
            f"{kind}s": {name: name for name in rows[kind].unique()} for kind in SUBJECT
        }
        estimators = {name: OF_ANSWERS.get(name, name) for name in rows["estimator"].unique()}
        return {**subjects, "estimators": estimators}

    @property
    def _checkpoint_names(self) -> dict[str, dict[str, str]]:
        return {
            model: {n: n for n in names} for model, names in self.inputs.checkpoints.items()
        }

    @cached_property
    def _contents(self) -> Contents:
        """Everything that the page shows."""
        inputs = self.inputs
        further = {
            "accuracies": accuracies(inputs.questions, inputs.labels),
            "transfer": stack([], artifacts.TRANSFER),
            "variance": stack([], artifacts.CORRELATIONS),
            "headroom": stack([], artifacts.HEADROOM),
            "similarity": stack([], artifacts.WEIGHT_SIMILARITIES),
            "pairs": self.tables["pairs"],
        }
        made = StudyTables(
            inputs.all_predictions,
            self.replicates,
            self.tables["intervals"],
            self.tables["findings"],
            inputs.questions,
            inputs.clusters,
            inputs.labels,
            checkpoints=[],
            tables=list(self._printed_tables()),
            slices=inputs.slices,
            **further,
        )
        return gather(made, self._shown, self.aligned)

    def _printed_tables(self) -> Iterator[TableFiles]:
        """Yield the tables that the page shows."""
        labels = self.labels
        if len(self.tables["metrics"]):
            cells = self._all_cells(ALL_ESTIMATORS)
            grids = lay_out(cells, ALL_ESTIMATORS, labels=labels)
            caption = ALL_ESTIMATORS["caption"]
            tex = results_table(grids, caption=caption, label="all-estimators")
            yield TableFiles("all_estimators", as_csv(cells, "all_estimators"), tex)
        shared: dict[str, Any] = {"checkpoints": self._checkpoint_names, "labels": labels}
        sets, minimum = self.tables["contrast_sets"], self.settings.min_contrast
        printed = {
            f"contrast_set_sizes_{dataset}": contrast_set_sizes(
                sets,
                dataset=dataset,
                checkpoints=self._checkpoint_names,
                min_contrast=minimum,
                models=labels["models"],
                datasets=labels["datasets"],
            )
            for dataset in labels["datasets"]
            if (sets["dataset"] == dataset).any()
        }
        if len(self.tables["intervals"]):
            printed["calibration"] = calibration(self.tables["intervals"], labels=labels)
        if len(self.tables["states"]):
            printed["states"] = table_of_states(self.tables["states"], **shared)
        if len(self.tables["thresholds"]):
            yield TableFiles("thresholds", self.tables["thresholds"].to_csv(index=False), "")
        for name, made in printed.items():
            yield TableFiles(name, made.rows.to_csv(index=False), made.tex)

    @property
    def _shown(self) -> Shown:
        """Names and settings that the page shows besides the tables."""
        judge = "lexical"
        if IMPORTED in {name for _, _, name in self.inputs.predictions}:
            judge = "none (labels of the files)"
        elif has_options(self.inputs.questions):
            judge = "none (the right options of the questions)"
        labels = self.labels
        stages = {
            model: {name: Stage(name) for name in names}
            for model, names in self.inputs.checkpoints.items()
        }
        return Shown(
            labels,
            stages,
            dict.fromkeys(labels["datasets"], self.settings),
            judge=judge,
            results=".",
            descriptions={"all_estimators": ALL_ESTIMATORS},
        )
