"""The bootstrap of questions: every metric on any contrast sets, under the same draws.

There are three kinds of draws, because one cannot serve all metrics:

- *questions*: a replicate draws as many groups of questions as there are, whatever the labels.
  Metrics of all answers include the sampling error of accuracy, which draws within classes of
  labels would leave out.
- *directions*: with few gained or lost questions such a draw often has none of them. Metrics
  that rest on both have weights from a Bayesian bootstrap, with pseudo-questions, see
  `persistcal.evaluation.draws`.
- *paper*: the paper draws within classes of labels. Only the marks in its tables rest on these,
  see `persistcal.evaluation.paper_draws`.

From `LARGE` questions of the rarer class on, metrics that define `influence` are not resampled.
A replicate is the value plus the influences times the number of draws less one. Groups of
questions are dealt into `PARTS`, which are drawn in place of groups, so that all metrics and
estimators are one product of matrices. docs/validation.md has the coverage.

Draws depend only on the seed, the replicate and the group. Therefore a single ask, crossed
asks, a control and states have the same weights of questions, and their samples are paired.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from persistcal.evaluation import draws
from persistcal.evaluation.aligned import Aligned, RatedSet
from persistcal.evaluation.contrast import ContrastSet, FullSet, OnContrastSet
from persistcal.evaluation.draws import Component, Counts
from persistcal.evaluation.evaluate import compute, count_once, defining, pool
from persistcal.evaluation.metrics.registry import METRICS, Scope, names
from persistcal.evaluation.predictions import AnswerArrays, Array
from persistcal.evaluation.samples import Sample
from persistcal.evaluation.settings import EvaluationSettings, Member

MEMORY = 500_000_000  # bytes: the limit for the replicates of a block
CACHE = 2**24  # bytes of weights that are read again and again
LARGE = 2_000  # effective groups of the rarer class
PARTS = 10_000
AT_ONCE = 500  # replicates of parts; at least, of directions
KEY_DECIMALS = 6  # of the keys of pseudo-questions
LARGEST_BLOCK = 5_000  # replicates: larger blocks are not faster
UNFINISHED = " …"  # ends the name of a part of a step
Samples = dict[Member, Sample]
# Is called with the name of each finished step, and of a part of one if it ends in UNFINISHED
Step = Callable[[str], None]


class Bootstrap:
    """Replicates of metrics of some runs, under draws of the questions that they answered.

    `step` receives how many replicates are finished.
    """

    def __init__(
        self, answers: AnswerArrays, settings: EvaluationSettings, step: Step = lambda _: None
    ) -> None:
        self.answers, self.settings, self.step = answers, settings, step
        self.n_replicates = settings.n_replicates
        self._shape = len(answers.confidence), settings.n_replicates
        _, self._group = np.unique(answers.groups, return_inverse=True)

    def counts(self, questions: NDArray[np.intp], block: range) -> Counts:
        """Return how often each question is drawn, with its group: (n_questions, n)."""
        n_groups = int(self._group.max(initial=-1)) + 1
        drawn = draws.draw_counts(n_groups, self.n_replicates, block, seed=self.settings.seed)
        return drawn[self._group[questions]]

    def weights(self, questions: NDArray[np.intp], block: range) -> Array:
        """Return the weights of questions: (n_questions, n)."""
        seed = self.settings.seed
        return draws.question_weights(
            self.answers.groups, questions, block, seed=seed, among=self.n_replicates
        )

    def is_large(self, classes: Iterable[NDArray[np.intp]]) -> bool:
        """Return whether influences replace draws, given the questions of each class."""
        sizes = [draws.effective_groups(questions, self._group) for questions in classes]
        return min(sizes, default=0) >= LARGE

    def linear(self, influences: Iterable[tuple[NDArray[np.intp], Array]]) -> Array:
        """Return the differences of replicates from values: (n, n_replicates).

        `influences` are the questions of each value and their influences.
        """
        n_groups = int(self._group.max(initial=-1)) + 1
        order, n = np.arange(n_groups), min(n_groups, PARTS)
        if n < n_groups:
            order = np.random.default_rng([self.settings.seed, 5]).permutation(n_groups) % n
        part = order[self._group]
        sums = np.array(
            [np.bincount(part[asked], influence, n) for asked, influence in influences]
        )
        made = np.empty((len(sums), self.n_replicates))
        for start in range(0, self.n_replicates, AT_ONCE):
            block = range(start, min(start + AT_ONCE, self.n_replicates))
            counts = draws.draw_counts(n, self.n_replicates, block, seed=self.settings.seed)
            made[:, block.start : block.stop] = sums @ (counts - 1.0)
        return made

    def _expand(
        self,
        scope: Scope,
        metrics: Iterable[str],
        values: Mapping[str, Array],
        parts: Sequence[Component],
        runs: Sequence[Sequence[FullSet] | Sequence[OnContrastSet]],
    ) -> dict[str, Array]:
        """Return linear replicates of metrics, means over the sets of `runs`, of large studies.

        The runs of all sets are of the questions of `parts`, in this order.
        """
        chosen = [name for name in metrics if METRICS[name].has_influence]
        classes = (q for part in parts for q in np.split(part.questions, [part.n_first]))
        if not chosen or not self.is_large(classes):
            return {}
        questions = np.concatenate([part.questions for part in parts])
        by_piece = (
            [METRICS[name].influence(of_set[i], scope) / len(runs) for of_set in runs]
            for name in chosen
            for i in range(self._shape[0])
        )
        added = self.linear((questions, np.concatenate(pieces)) for pieces in by_piece)
        by_name = zip(chosen, added.reshape(len(chosen), *self._shape), strict=True)
        ends = {name: METRICS[name].bounds or (-np.inf, np.inf) for name in chosen}
        return {
            name: np.clip(values[name] + influences, *ends[name])
            for name, influences in by_name
        }

    def samples(self, values: Array, drawn: Array) -> Samples:
        """Return the sample of each estimator from values of its runs, and replicates of them.

        `values` have the shape (n_runs,) and `drawn` (n_runs, n_replicates). The variance
        between seeds is larger on replicates, by the part that comes from the questions. This
        part is the sample's noise, 0 for one seed and without replicates.
        """
        seeds = [series.seed for series in self.answers.confidence]
        samples = {}
        for member, numbers in self.answers.rows.items():
            by_run, on_replicates, noise = values[numbers], drawn[numbers], 0.0
            if len(numbers) > 1 and not np.isnan(on_replicates).any():
                on_data = by_run.var(ddof=1)
                noise = max(0.0, float(on_replicates.var(axis=0, ddof=1).mean() - on_data))
            by_seed = {seeds[i]: float(values[i]) for i in numbers}
            mean = float(by_run.mean())
            samples[member] = Sample(mean, on_replicates.mean(axis=0), by_seed, noise)
        return samples

    def apply(self, metrics: Collection[str], sets: Sequence[RatedSet]) -> dict[str, Samples]:
        """Measure each estimator by some metrics, plain means over contrast sets.

        Sets that do not define a metric are left out. Replicates are NaN for a metric that has
        none, or if a set has fewer than `min_direction` groups of gained or of lost questions
        and the metric rests on both.
        """
        chosen = [name for name in names("contrast") if name in metrics]
        among = {name: set(defining(name, [rated.pair for rated in sets])) for name in chosen}
        values = self._mean(sets, among, count_once)
        drawn = {name: np.full(self._shape, np.nan) for name in chosen}
        changed = [rated.pair.part for rated in sets]
        linear = self._expand(
            "contrast", chosen, values, changed, [rated.runs for rated in sets]
        )
        left = [name for name in chosen if name not in linear]
        plain = {n: among[n] for n in left if METRICS[n].draws == "questions"}
        largest = max((rated.pair.counts.changed for rated in sets), default=0)
        if plain and sets:
            n_bytes = len(self.answers.questions) + 2 * largest + 2_000
            for block in blocks(self.n_replicates, n_bytes):
                on_replicates = self._mean(sets, plain, partial(self._counts_of, block))
                for name, of_runs in on_replicates.items():
                    drawn[name][:, block.start : block.stop] = of_runs
        both = [name for name in left if METRICS[name].both_directions]
        if both and self.has_both_directions([sets[i].pair for i in among[both[0]]]):
            drawn |= self._directions(both, [sets[i] for i in sorted(among[both[0]])])
        drawn |= linear
        return {name: self.samples(values[name][:, 0], drawn[name]) for name in chosen}

    def apply_full(self, data: Aligned) -> dict[str, Samples]:
        """Measure each estimator by the metrics of all answers."""
        runs, parts = data.on_full, data.parts
        values = compute("full", runs, pool(count_once, parts))
        drawn = {name: np.full(self._shape, np.nan) for name in values}
        plain = [name for name in values if METRICS[name].has_interval]
        drawn |= (linear := self._expand("full", plain, values, parts, [runs]))
        plain = [name for name in plain if name not in linear]
        n_bytes = len(self.answers.questions) + sum(part.size for part in parts) + 2_000
        for block in blocks(self.n_replicates, n_bytes) if plain else ():
            counts = pool(partial(self._counts_of, block), parts)
            for name, of_runs in compute("full", runs, counts, chosen=plain).items():
                drawn[name][:, block.start : block.stop] = of_runs
        return {
            name: self.samples(of_runs[:, 0], drawn[name]) for name, of_runs in values.items()
        }

    def has_both_directions(self, sets: Sequence[ContrastSet]) -> bool:
        """Return whether each set has enough groups of gained and of lost questions."""
        groups = [min(draws.count_groups(pair.part, self.answers.groups)) for pair in sets]
        return min(groups, default=0) >= self.settings.min_direction

    def pseudo(self, member: Member, sets: Sequence[ContrastSet], expected: float) -> Array:
        """Return the weights of an estimator's pseudo-questions, (4, n_replicates).

        They are keyed by its confidences in the changed questions: names have no effect.
        """
        runs = np.array(self.answers.estimators[member])
        stated = [runs[:, [[pair.earlier], [pair.later]], pair.changed] for pair in sets]
        content = [
            np.ascontiguousarray(part).tobytes()
            for pair, rated in zip(sets, stated, strict=True)
            for part in (pair.gained, pair.lost, rated.round(KEY_DECIMALS))
        ]
        return draws.pseudo_weights(
            content, self.n_replicates, seed=self.settings.seed, expected=expected
        )

    def _counts_of(self, block: range, part: Component) -> Counts:
        return self.counts(part.questions, block)

    def _mean(
        self,
        sets: Sequence[RatedSet],
        among: Mapping[str, Collection[int]],
        counts_of: Callable[[Component], Counts],
    ) -> dict[str, Array]:
        """Return metrics of each run under counts, means over the sets that define them."""
        totals: dict[str, Array] = {}
        for number, rated in enumerate(sets):
            chosen = [name for name in among if number in among[name]]
            if chosen:
                values = compute(
                    "contrast", rated.runs, counts_of(rated.pair.part), chosen=chosen
                )
                for name, of_runs in values.items():
                    totals[name] = totals.get(name, 0.0) + of_runs / len(among[name])
        undefined = np.full((len(self.answers.confidence), 1), np.nan)
        return {name: totals.get(name, undefined) for name in among}

    def _directions(self, metrics: Sequence[str], sets: Sequence[RatedSet]) -> dict[str, Array]:
        """Return replicates of metrics that rest on both directions, (n_runs, n_replicates)."""
        answers = self.answers
        pairs = [rated.pair for rated in sets]
        asked = np.unique(np.concatenate([pair.changed for pair in pairs]))
        drawn = {name: np.zeros(self._shape) for name in metrics}
        pseudo = {
            expected: {m: self.pseudo(m, pairs, expected) for m in answers.rows}
            for expected in {METRICS[name].pseudo for name in metrics}
        }
        among = sum(pair.counts.changed for pair in pairs) * drawn[metrics[0]].size
        of_sets = [
            (
                rated.runs,
                np.searchsorted(asked, rated.pair.changed),
                draws.group_sizes(rated.pair.part, answers.groups),
            )
            for rated in sets
        ]
        n_bytes = 8 * (3 * len(asked) + 2 * max(pair.counts.changed for pair in pairs))
        at_most = max(AT_ONCE, CACHE // (8 * len(asked)))
        for block in blocks(self.n_replicates, n_bytes, at_most=at_most):
            columns = slice(block.start, block.stop)
            weights = self.weights(asked, block)
            of_block = {
                expected: np.stack(
                    [by_member[run.member][:, columns] for run in answers.confidence], axis=1
                )
                for expected, by_member in pseudo.items()
            }
            for runs, rows, sizes in of_sets:
                of_changed = weights[rows]
                for name in metrics:
                    extra = draws.Pseudo(of_block[METRICS[name].pseudo], sizes, among)
                    values = METRICS[name].weighted(runs, of_changed, extra)
                    drawn[name][:, columns] += values / len(sets)
            self.step(
                f"{block.stop:,} of {self.n_replicates:,} replicates of changes{UNFINISHED}"
            )
        return drawn


def blocks(n_replicates: int, bytes_each: int, *, at_most: int = LARGEST_BLOCK) -> list[range]:
    """Divide replicates into blocks that fit into MEMORY."""
    size = min(LARGEST_BLOCK, at_most, max(1, MEMORY // bytes_each))
    starts = range(0, n_replicates, size)
    return [range(start, min(start + size, n_replicates)) for start in starts]
