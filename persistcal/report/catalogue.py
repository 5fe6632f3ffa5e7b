"""Figures and tables of a study that compare no estimators in a table of results.

A function of this package receives the rows of an artifact, and settings by keyword. The names
of its keyword-only parameters choose them from `SETTINGS` of study/views.py. The Snakefile
imports this module, so it imports no other package. No job imports it: another figure must not
make the others again.
"""

from typing import Literal, NamedTuple

Target = Literal["study", "all"]


class View(NamedTuple):
    """A figure or table."""

    name: str  # file name; with `{dataset}` each dataset has a file
    function: str  # such as "figures.accuracy_figure" of this package; else the whole path
    artifact: str  # the table of `persistcal.store.artifacts` that the function reads
    label: str = ""  # short name in Snakemake's report, for figures
    files: str = ""  # key in `ROWS` of workflow/rules/report.smk, by default `artifact`
    target: Target = "study"  # the smallest target that makes it
    # By default the second paragraph of the function's docstring, or its only one. It can have
    # `{dataset}` and other settings in braces.
    caption: str = ""

    @property
    def path(self) -> str:
        """The function with its module and package."""
        is_here = self.function.count(".") == 1
        return f"persistcal.report.{self.function}" if is_here else self.function


FIGURES = (
    View("states", "figures.states_figure", "states", label="states against each other"),
    View("changes", "figures.changes_figure", "changes", label="kinds of change"),
    View("accuracy", "figures.accuracy_figure", "accuracies", label="accuracy over training"),
    View(
        "full_vs_contrast",
        "figures.full_vs_contrast_figure",
        "intervals",
        label="full set against contrast sets",
    ),
    View(
        "leaderboard",
        "figures.leaderboard_figure",
        "intervals",
        files="leaderboard",
        label="every kind of confidence",
    ),
    View(
        "distance",
        "figures.distance_figure",
        "pairs",
        files="distances",
        label="over the distance between checkpoints",
    ),
    View(
        "risk_coverage",
        "update_figures.risk_coverage_figure",
        "predictions",
        label="risk and coverage",
    ),
    View(
        "reliability",
        "update_figures.reliability_figure",
        "predictions",
        label="reliability before and after",
    ),
    View(
        "confidence_shifts",
        "update_figures.shifts_figure",
        "predictions",
        label="confidence in gained and lost questions",
    ),
    View(
        "threshold_curves",
        "update_figures.threshold_figure",
        "predictions",
        label="precision and coverage against the threshold",
    ),
    View(
        "label_curve",
        "update_figures.label_curve_figure",
        "predictions",
        label="labels that certify a threshold",
    ),
)

TABLES = (
    View(
        "pairs",
        "analysis_tables.parts",
        "pairs",
        caption="Metrics on the contrast set of each pair of checkpoints, conditioned by odds, "
        "and whether it is large enough for the means over pairs.",
    ),
    View(
        "min_contrast",
        "analysis_tables.parts",
        "min_contrast",
        caption="Means over the pairs whose contrast sets have at least so many questions, for "
        "each size of a contrast set. Chosen: the pairs that the study keeps.",
    ),
    View(
        "subsets",
        "analysis_tables.parts",
        "subsets",
        caption="Metrics by the margin between the probabilities of an answer and of the "
        "second candidate (in a contrast set, the smaller one of a question's two answers), "
        "and by whether a training question has the same reference answer. Flips: contrast "
        "questions among those that both checkpoints of a pair answered.",
    ),
    View(
        "by_answer",
        "analysis_tables.parts",
        "subsets",
        caption="Metrics on the questions of the contrast sets for which a baseline that only "
        "knows the text of the answers falls, stays or rises from the earlier to the "
        "later checkpoint. The baseline is surer of an answer that is rarer in the "
        "references of the training questions, longer, or less popular with the same "
        "checkpoint.",
    ),
    View(
        "by_category",
        "analysis_tables.parts",
        "subsets",
        files="subsets_by_category",
        caption="Metrics by the category of the questions. The pairs are those that all "
        "questions together keep. Flips: contrast questions among those that both checkpoints "
        "of a pair answered.",
    ),
    View("states", "tables.states", "states"),
    View("corrections", "analysis_tables.corrections", "corrections"),
    View("by_change", "analysis_tables.by_change", "changes"),
    View(
        "thresholds_by_change",
        "analysis_tables.thresholds_by_change",
        "thresholds",
        files="threshold_changes",
    ),
    View("calibration", "tables.calibration", "intervals"),
    View("contrast_set_sizes_{dataset}", "tables.contrast_set_sizes", "contrast_sets"),
    View("unsaid", "tables.unsaid", "unsaid"),
    View("checkpoints", "tables.checkpoints", "accuracies"),
    View(
        "{dataset}_categories",
        "tables.question_categories",
        "questions",
        files="categories",
        target="all",
    ),
    View(
        "{dataset}_examples",
        "tables.question_examples",
        "questions",
        files="examples",
        target="all",
    ),
    View("thresholds", "analysis_tables.thresholds", "thresholds"),
)
