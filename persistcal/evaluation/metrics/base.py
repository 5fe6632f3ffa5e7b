"""What a metric is, and the registry that a class enters when it is defined.

The modules of this package import no other package, because the Snakefile and the schema of the
config read the names: a method imports the arithmetic that it needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from persistcal.evaluation.contrast import FullSet, OnContrastSet
    from persistcal.evaluation.draws import Pseudo
    from persistcal.evaluation.predictions import Array

Scope = Literal["contrast", "full"]
Draws = Literal["questions", "directions", "paper"]
GAPS, SHARES = (-1.0, 1.0), (0.0, 1.0)  # bounds

METRICS: dict[str, Metric] = {}  # by name, in the order of the columns of tables


class MetricKey(NamedTuple):
    """A metric as it was measured: with a conditioning, on contrast sets or on all questions.

    Metrics on all questions have the conditioning "odds", though they do not depend on it.
    """

    conditioning: str
    scope: str
    metric: str


class ChanceFlips(NamedTuple):
    """The chance flips that a control predicts for a change, in each direction.

    `runs` are of one estimator and seed on the control's contrast sets, and `weights`, (their
    questions, n_columns), are scaled to the number of questions of the change; a flip counts
    half in each direction. `n_seen` is the number of flips on the data.
    """

    runs: Sequence[OnContrastSet]
    weights: Array
    n_seen: float


class Corrected(NamedTuple):
    """What is left of a metric without chance flips, (n_columns,) each.

    `excess` is 0 if knowledge does not count. The metric of changed knowledge is `dividend`
    divided by `divisor`.
    """

    excess: Array
    dividend: Array
    divisor: Array


class Metric:
    """A metric. A subclass with a name is registered; an incomplete one is refused.

    A subclass defines `contrast`, `full` or both: the value of a run under weights of
    questions, (n_questions,) or (n_questions, n_columns). It is NaN if it is undefined.

    Attributes
    ----------
    name, heading, latex : str
        The name in tables and in the config, as text and in LaTeX.
    draws : {"questions", "directions", "paper"}
        The bootstrap behind intervals and tests: draws of questions whatever their labels;
        weights of gained and of lost questions, for a metric that rests on both, which then
        defines `weighted`; or none besides the paper's marks.
    no_interval : str
        Why a metric with the draws "paper" has no interval and no test.
    bounds : (float, float), optional
        Ends of the metric's range: intervals over seeds stay inside.
    lower_is_better : bool
        Whether smaller values are better.
    conditioned : bool
        Whether the value on a contrast set depends on the conditioning.
    chance : float, optional
        The value of a confidence that follows nothing. A metric that rests on both directions
        and has one is a statistic of change: claims, cross-asking and kinds of change have it,
        and comparisons with a control do if it defines `beyond`.
    """

    name: ClassVar[str]
    heading: ClassVar[str]
    latex: ClassVar[str]
    draws: ClassVar[Draws]
    no_interval: ClassVar[str] = ""
    bounds: ClassVar[tuple[float, float] | None] = None
    lower_is_better: ClassVar[bool] = False
    conditioned: ClassVar[bool] = True
    pseudo: ClassVar[float] = 0.5  # expected weight of a pseudo-question, see `draws`
    chance: ClassVar[float | None] = None

    scopes: ClassVar[list[Scope]] = []  # on which the metric has a value
    has_interval: ClassVar[bool]  # and tests
    has_influence: ClassVar[bool]  # whether replicates can be made of influences
    both_directions: ClassVar[bool]  # whether it rests on gained and on lost questions
    has_beyond: ClassVar[bool]  # whether it can be corrected by a control
    arrow: ClassVar[str]  # the better direction

    def __init_subclass__(cls) -> None:
        """Register a metric when its class is defined, and refuse an incomplete one."""
        own = vars(cls)
        scopes: tuple[Scope, ...] = ("contrast", "full")
        if "name" not in own:
            return
        if "influence" not in own and {"contrast", "full", "weighted"} & own.keys():
            setattr(cls, "influence", Metric.influence)  # noqa: B010 - a parent's is of another value
        cls.scopes = [
            scope
            for scope in scopes
            if hasattr(cls, f"{scope}_values")
            or getattr(cls, scope) is not getattr(Metric, scope)
        ]
        lacking = [key for key in ("heading", "latex", "draws") if not getattr(cls, key, "")]
        if not cls.scopes:
            lacking.append("contrast or full")
        draws = getattr(cls, "draws", "")
        if draws == "paper" and not cls.no_interval:
            lacking.append("no_interval, the reason")
        if draws == "directions" and cls.weighted is Metric.weighted:
            lacking.append("weighted")
        if lacking:
            raise TypeError(f"The metric {cls.name!r} lacks {', '.join(lacking)}.")
        if cls.name in METRICS:
            raise TypeError(f"There are two metrics with the name {cls.name!r}; rename one.")
        cls.has_interval, cls.both_directions = draws != "paper", draws == "directions"
        cls.has_influence = cls.has_interval and cls.influence is not Metric.influence
        cls.has_beyond = cls.beyond is not Metric.beyond
        cls.arrow = "↓" if cls.lower_is_better else "↑"
        METRICS[cls.name] = cls()

    def contrast(self, run: OnContrastSet, weights: NDArray) -> Array:
        """Return the value on a contrast set, for each column of weights."""
        raise NotImplementedError

    def full(self, run: FullSet, weights: NDArray) -> Array:
        """Return the value on all questions, for each column of weights."""
        raise NotImplementedError

    def influence(self, run: Any, scope: Scope) -> Array:  # noqa: ANN401
        """Return the derivative of the value by the weight of each answer or question.

        It is optional. In large studies it replaces resampling, see `Bootstrap`.
        """
        raise NotImplementedError

    def weighted(self, runs: Sequence[OnContrastSet], weights: Array, pseudo: Pseudo) -> Array:
        """Return replicates, (n_runs, n_replicates), under weights and pseudo-questions."""
        raise NotImplementedError

    def beyond(
        self, run: OnContrastSet, weights: Array, chance: ChanceFlips, pseudo: Pseudo | None
    ) -> Corrected:
        """Return the value beyond chance flips, see `persistcal.evaluation.control`.

        Without pseudo-questions (and the sizes of groups) it is the value on the data.
        """
        raise NotImplementedError


class Mean(Metric):
    """A weighted mean over questions; many of them are computed in one product of matrices.

    `contrast_values` or `full_values` return the n values to average. If `balanced`,
    improvements and regressions have equal weight in total.
    """

    draws: ClassVar[Draws] = "questions"
    balanced: ClassVar[bool] = False

    def values(self, run: FullSet | OnContrastSet, scope: Scope) -> Array:
        """Return the values to average."""
        return getattr(self, f"{scope}_values")(run)

    def influence(self, run: Any, scope: Scope) -> Array:  # noqa: ANN401
        """Return how far each value is from the mean, of its direction if `balanced`."""
        import numpy as np

        values = self.values(run, scope)
        classes = np.asarray(run.improvement if self.balanced else np.ones(len(values)), bool)
        made = np.empty(len(values))
        chosen = [rows for rows in (classes, ~classes) if rows.any()]
        for rows in chosen:
            made[rows] = (values[rows] - values[rows].mean()) / rows.sum() / len(chosen)
        return made


class BalancedMean(Mean):
    """The mean over gained questions averaged with the mean over lost questions."""

    draws: ClassVar[Draws] = "directions"
    balanced = True

    def weighted(self, runs: Sequence[OnContrastSet], weights: Array, pseudo: Pseudo) -> Array:
        """Return replicates under weights and pseudo-questions."""
        import numpy as np

        from persistcal.evaluation.draws import balanced_replicates

        values = np.array([self.values(run, "contrast") for run in runs])
        return balanced_replicates(values, runs[0].improvement, weights, *pseudo[:2])

    def beyond(
        self, run: OnContrastSet, weights: Array, chance: ChanceFlips, pseudo: Pseudo | None
    ) -> Corrected:
        """Return what is left of both means without the chance flips of the control."""
        import numpy as np

        from persistcal.evaluation.draws import direction_means

        values = self.values(run, "contrast")
        of_control = np.concatenate([self.values(of, "contrast") for of in chance.runs])
        by_chance, flips = of_control @ chance.weights, chance.weights.sum(axis=0)
        means = direction_means(values, run.improvement, weights, pseudo)
        excess = dividend = divisor = np.zeros(weights.shape[1])
        for mean, rows in zip(means, (run.improvement, ~run.improvement), strict=True):
            n = weights[rows].sum(axis=0)
            excess = excess + (mean - by_chance / n) / 2
            # observed numbers, so that both parts of the ratio are linear in the weights
            surplus = max(np.count_nonzero(rows) - chance.n_seen, 1e-9)
            dividend = dividend + (n * mean - by_chance) / surplus / 2
            divisor = divisor + (n - flips) / surplus / 2
        return Corrected(excess, dividend, divisor)


def statistics_of_change() -> list[str]:
    """Return the metrics that rest on both directions and know their value by chance.

    >>> statistics_of_change()
    ['delta0_balanced', 'change_auc']
    """
    return [n for n, m in METRICS.items() if m.both_directions and m.chance is not None]


def names(scope: Scope) -> list[str]:
    """Return the metrics of a scope in the order of tables.

    >>> names("full")
    ['auc', 'brier', 'smece']
    """
    return [name for name, metric in METRICS.items() if scope in metric.scopes]
