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
    caption: str  # with `{dataset}` and other settings in braces
    label: str = ""  # short name in Snakemake's report, for figures
    files: str = ""  # key in `ROWS` of workflow/rules/report.smk, by default `artifact`
    target: Target = "study"  # the smallest target that makes it

    @property
    def path(self) -> str:
        """The function with its module and package."""
        is_here = self.function.count(".") == 1
        return f"persistcal.report.{self.function}" if is_here else self.function


FIGURES = (
    View(
        name="states",
        function="figures.states_figure",
        artifact="states",
        label="states against each other",
        caption=(
            "Differences between two checkpoints of a model, or the last ones of two models, "
            "on the questions that both answered: accuracy, and AUC, Brier score and "
            "SmoothECE of each estimator on all questions. Bars are 95 % intervals. Dashed: "
            "no difference."
        ),
    ),
    View(
        name="changes",
        function="figures.changes_figure",
        artifact="changes",
        label="kinds of change",
        caption=(
            "Whether confidence follows each kind of change: Δ₀ᵇ and AUC on the questions "
            "whose correctness it changes, those that the later checkpoints gained (+) and "
            "lost (−). Bars are 95 % intervals over questions, and over seeds where an "
            "estimator has them. Dashed: confidence that follows nothing; for the contrast "
            "AUC, the end-correct baseline."
        ),
    ),
    View(
        name="accuracy",
        function="figures.accuracy_figure",
        artifact="accuracies",
        label="accuracy over training",
        caption=(
            "Accuracy on the test questions over training. Estimators may learn from the "
            "training checkpoints and are evaluated on the evaluation checkpoints."
        ),
    ),
    View(
        name="full_vs_contrast",
        function="figures.full_vs_contrast_figure",
        artifact="intervals",
        label="full set against contrast sets",
        caption=(
            "How well the change of confidence separates gained from lost questions (change "
            "AUC), and how well confidence ranks right above wrong answers on all questions. "
            "A confidence that does not follow knowledge has a change AUC of 0.5, however good "
            "it is on all questions, if no answer flips by itself."
        ),
    ),
    View(
        name="leaderboard",
        function="figures.leaderboard_figure",
        artifact="intervals",
        files="leaderboard",
        label="every kind of confidence",
        caption=(
            "Every kind of confidence, the one that follows knowledge best on top: Δ₀ᵇ and "
            "AUC on questions whose correctness changes between checkpoints (contrast sets), "
            "and AUC on all questions (full set). Bars are 95 % bootstrap intervals of single "
            "estimators: the table of the same name marks those that cannot be distinguished "
            "from the best. Colours are families; on the dashed lines, confidence follows "
            "nothing, which for the contrast-set AUC is the end-correct baseline."
        ),
    ),
    View(
        name="distance",
        function="figures.distance_figure",
        artifact="pairs",
        files="distances",
        label="over the distance between checkpoints",
        caption=(
            "How well estimators notice a change, over the distance of the two checkpoints of "
            "a pair: means over pairs of that distance, with one standard deviation to either "
            "side. Dashed: chance. For the contrast AUC, chance is the end-correct baseline."
        ),
    ),
    View(
        name="risk_coverage",
        function="update_figures.risk_coverage_figure",
        artifact="predictions",
        label="risk and coverage",
        caption=(
            "Share of wrong answers among the most confident ones (risk) over their share of "
            "all answers (coverage), means over seeds. Dashed: a model's first evaluation "
            "checkpoint; solid: its last one. Lower is better. At most five estimators are "
            "drawn."
        ),
    ),
    View(
        name="reliability",
        function="update_figures.reliability_figure",
        artifact="predictions",
        label="reliability before and after",
        caption=(
            "Is an answer right as often as its confidence says? Accuracy about each "
            "confidence, smoothed as in SmoothECE, mean over seeds. Dashed: a model's first "
            "evaluation checkpoint; solid: its last one, with a 95 % band. On the "
            "diagonal, confidence is calibrated. At most five estimators are drawn."
        ),
    ),
    View(
        name="confidence_shifts",
        function="update_figures.shifts_figure",
        artifact="predictions",
        label="confidence in gained and lost questions",
        caption=(
            "Did confidence move the right way? Confidence at a model's first evaluation "
            "checkpoint (dashed) and at its last one (filled), in questions that were gained, "
            "lost or unchanged. Confidence that follows knowledge moves to the right in gained "
            "and to the left in lost questions. At most five estimators are drawn."
        ),
    ),
    View(
        name="threshold_curves",
        function="update_figures.threshold_figure",
        artifact="predictions",
        label="precision and coverage against the threshold",
        caption=(
            "What each threshold gives: the share of right answers among those at or above it "
            "(precision, thick) and the share of questions that are answered (coverage, thin), "
            "means over seeds. Dashed: a model's first evaluation checkpoint; "
            "solid: its last one. Vertical: the thresholds that the first checkpoint selects. "
            "Shaded: thresholds that the labels of the last checkpoint certify, by Learn then "
            "Test. At most five estimators are drawn."
        ),
    ),
    View(
        name="label_curve",
        function="update_figures.label_curve_figure",
        artifact="predictions",
        label="labels that certify a threshold",
        caption=(
            "How many labelled answers of a model's last evaluation checkpoint certify a "
            "threshold: the share of random sheets of each size that certify one, and the "
            "median share of questions that it answers. An estimator's first seed; at most "
            "five estimators are drawn."
        ),
    ),
)

TABLES = (
    View(
        name="pairs",
        function="analysis_tables.parts",
        artifact="pairs",
        caption=(
            "Metrics on the contrast set of each pair of checkpoints, conditioned by odds, "
            "and whether it is large enough for the means over pairs."
        ),
    ),
    View(
        name="min_contrast",
        function="analysis_tables.parts",
        artifact="min_contrast",
        caption=(
            "Means over the pairs whose contrast sets have at least so many questions, for "
            "each size of a contrast set. Chosen: the pairs that the study keeps."
        ),
    ),
    View(
        name="subsets",
        function="analysis_tables.parts",
        artifact="subsets",
        caption=(
            "Metrics by the margin between the probabilities of an answer and of the second "
            "candidate (in a contrast set, the smaller one of a question's two answers), and "
            "by whether a training question has the same reference answer. Flips: contrast "
            "questions among those that both checkpoints of a pair answered."
        ),
    ),
    View(
        name="by_answer",
        function="analysis_tables.parts",
        artifact="subsets",
        caption=(
            "Metrics on the questions of the contrast sets for which a baseline that only "
            "knows the text of the answers falls, stays or rises from the earlier to the "
            "later checkpoint. The baseline is surer of an answer that is rarer in the "
            "references of the training questions, longer, or less popular with the same "
            "checkpoint."
        ),
    ),
    View(
        name="by_category",
        function="analysis_tables.parts",
        artifact="subsets",
        files="subsets_by_category",
        caption=(
            "Metrics by the category of the questions. The pairs are those that all questions "
            "together keep. Flips: contrast questions among those that both checkpoints of a "
            "pair answered."
        ),
    ),
    View(
        name="states",
        function="tables.states",
        artifact="states",
        caption=(
            "Differences between two checkpoints of a model, or the last ones of two models, "
            "with 95 % intervals and p-values."
        ),
    ),
    View(
        name="corrections",
        function="analysis_tables.corrections",
        artifact="corrections",
        caption="Numbers by the judge's labels, and corrected by a person's.",
    ),
    View(
        name="by_change",
        function="analysis_tables.by_change",
        artifact="changes",
        caption=("Kinds of change, and whether confidence follows each, with 95 % intervals."),
    ),
    View(
        name="thresholds_by_change",
        function="analysis_tables.thresholds_by_change",
        artifact="thresholds",
        files="threshold_changes",
        caption="Kinds of change, and whether thresholds survive each.",
    ),
    View(
        name="calibration",
        function="tables.calibration",
        artifact="intervals",
        caption=(
            "SmoothECE of each estimator with its noise floor, the value of a calibrated "
            "estimator with these confidences, and the p-value of calibration."
        ),
    ),
    View(
        name="contrast_set_sizes_{dataset}",
        function="tables.contrast_set_sizes",
        artifact="contrast_sets",
        caption=(
            "Questions that one checkpoint of {dataset} answers correctly and another one "
            "does not. Sets of fewer than {min_contrast} questions are dropped."
        ),
    ),
    View(
        name="unsaid",
        function="tables.unsaid",
        artifact="unsaid",
        caption="Answers without a readable stated confidence.",
    ),
    View(
        name="checkpoints",
        function="tables.checkpoints",
        artifact="accuracies",
        caption=(
            "Training tokens of the checkpoints and their accuracy on the test questions."
        ),
    ),
    View(
        name="{dataset}_categories",
        function="tables.question_categories",
        artifact="questions",
        files="categories",
        target="all",
        caption=(
            "Categories of the questions of {dataset} that are asked, and how many there are "
            "of each."
        ),
    ),
    View(
        name="{dataset}_examples",
        function="tables.question_examples",
        artifact="questions",
        files="examples",
        target="all",
        caption=(
            "Two test questions of each category of {dataset}, with their reference answers."
        ),
    ),
    View(
        name="thresholds",
        function="analysis_tables.thresholds",
        artifact="thresholds",
        caption=(
            "Thresholds that reach a precision on the earlier checkpoint, and whether they "
            "keep it on the later one."
        ),
    ),
)
