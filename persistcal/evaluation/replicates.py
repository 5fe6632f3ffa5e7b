"""The samples of all metrics and estimators, and the table that keeps them.

The replicates of each estimator can be computed separately. Replicates of two estimators are
paired if both were drawn from the same answers with the same seed; a digest verifies this.
"""

import hashlib
import logging
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from persistcal.evaluation.aligned import MEMBER, Aligned
from persistcal.evaluation.bootstrap import Bootstrap, Samples, Step
from persistcal.evaluation.draws import Component
from persistcal.evaluation.evaluate import defining, mean_over_seeds, metrics_under
from persistcal.evaluation.metrics.registry import METRICS, MetricKey, names
from persistcal.evaluation.paper_draws import stratified_draws
from persistcal.evaluation.predictions import Array
from persistcal.evaluation.samples import Sample
from persistcal.evaluation.settings import EvaluationSettings

log = logging.getLogger(__name__)

KEY = ["conditioning", "scope", "metric"]
VALUES = ["value", "replicates", "claims", "probes", "improvement", "regression", "drawn"]
VALUES += ["seeds", "by_seed", "noise", "n_effective"]
N_PROBES, MOST_OF_PROBE = 8, 100  # random weights, whole numbers from 1


class MetricSamples(NamedTuple):
    """A metric of every estimator, and what its tests and marks need besides the samples.

    `probes`, (n_estimators, N_PROBES), are values under random weights of the questions: equal
    for estimators that are equal on any questions. For `n_effective` see `effective_questions`.
    `fewest` are the gained and lost questions of the pair with the fewest of the rarer kind, if
    the metric rests on both. `stratified`, (n_estimators, n_replicates), are the paper's draws,
    without columns where no mark needs them.
    """

    samples: Samples
    probes: Array
    n_effective: float
    fewest: tuple[int, int] | None
    stratified: Array

    @property
    def values(self) -> Array:
        """The metric on the data, (n_estimators,)."""
        return np.array([sample.value for sample in self.samples.values()])

    @property
    def draws(self) -> Array:
        """The metric on replicates, (n_estimators, n_replicates)."""
        return np.array([sample.draws for sample in self.samples.values()])


Replicates = dict[MetricKey, MetricSamples]


def replicate(
    data: Aligned, settings: EvaluationSettings, step: Step = lambda _: None
) -> Replicates:
    """Evaluate every estimator on the same bootstrap replicates.

    Metrics that rest on gained and lost questions need `min_direction` of both in each pair.
    With fewer in a pair their replicates are NaN, and a warning names the pair.
    """
    answers = data.answers
    bootstrap = Bootstrap(answers, settings, step)
    found = {
        MetricKey("odds", "full", name): samples
        for name, samples in bootstrap.apply_full(data).items()
    }
    of_sets: dict[str, Samples] = {}
    for conditioning in settings.conditionings:
        needed = [n for n in names("contrast") if METRICS[n].conditioned or n not in of_sets]
        of_sets |= bootstrap.apply(needed, data.rated(conditioning))
        for name in names("contrast"):
            found[MetricKey(conditioning, "contrast", name)] = of_sets[name]
    both = [pair for pair in data.kept if pair.has_both_directions]
    counts = [(pair.counts.gained, pair.counts.lost) for pair in both]
    fewest = min(counts, key=min, default=None)
    if fewest and not bootstrap.has_both_directions(both):
        log.warning(
            "A pair of checkpoints gains %d and loses %d questions: fewer than %d of either "
            "give no interval and no test of %s. Ask more questions.",
            *fewest,
            settings.min_direction,
            ", ".join(m.heading for m in METRICS.values() if m.both_directions),
        )
    rng = np.random.default_rng(settings.seed)
    size = len(answers.questions), N_PROBES
    weights = rng.integers(1, MOST_OF_PROBE + 1, size, np.uint8)
    probed = metrics_under(
        lambda part: weights[part.questions],
        data,
        settings.conditionings,
        metrics=[name for name, metric in METRICS.items() if metric.has_interval],
    )
    stratified = stratified_draws(data, settings, step) if settings.paper_marks else {}
    made = {}
    for key, samples in found.items():
        both_directions = METRICS[key.metric].both_directions
        parts = data.parts
        if key.scope == "contrast":
            parts = [data.kept[n].part for n in defining(key.metric, data.kept)]
        unknown = np.full((len(answers.confidence), N_PROBES), np.nan)
        made[key] = MetricSamples(
            samples,
            mean_over_seeds(probed.get(key, unknown), answers),
            effective_questions(parts, answers.groups, balanced=both_directions),
            fewest if both_directions else None,
            stratified.get(key, np.empty((len(samples), 0))),
        )
    return made


def effective_questions(
    parts: Sequence[Component], groups: NDArray[np.intp], *, balanced: bool
) -> float:
    """Return the effective number of groups of questions of a mean over components.

    It is the sum of the groups' weights divided by the largest weight. Components share
    questions. If both classes have equal total weight (`balanced`), a question of the smaller
    class weighs more.

    >>> pair, alone = Component(np.arange(50), n_first=40), np.arange(50)
    >>> round(effective_questions([pair], alone, balanced=False))
    50
    >>> round(effective_questions([pair], alone, balanced=True))
    10
    """
    weight = np.zeros(1 + groups.max(initial=0))
    for part in parts:
        sizes = [part.n_first, part.n_second] if balanced else [part.size, part.size]
        question_weight = 1 / np.repeat(sizes, [part.n_first, part.n_second])
        np.add.at(weight, groups[part.questions], question_weight)
    return float(len(parts) / weight.max()) if weight.any() else 0.0


class UnpairedError(ValueError):
    """Estimators were resampled from other answers, or with another seed."""


def digest_of_draws(data: Aligned, settings: EvaluationSettings) -> str:
    """Return a digest of all that decides which questions are drawn, and nothing else."""
    answers = data.answers
    keys = ("min_contrast", "min_direction", "n_replicates", "seed", "pairs")
    drawn = [*answers.checkpoints, *(getattr(settings, key) for key in keys)]
    digest = hashlib.sha256(f"{drawn}\n{answers.questions.tolist()}".encode())
    digest.update(answers.correct.tobytes() + answers.groups.tobytes())
    return digest.hexdigest()[:16]


def to_table(replicates: Replicates, drawn: str) -> pd.DataFrame:
    """Return the rows of the table REPLICATES, a row per estimator and metric."""
    rows = []
    for key, of in replicates.items():
        counts = of.fewest or (None, None)
        for i, (member, sample) in enumerate(of.samples.items()):
            arrays = of.stratified[i], sample.draws, of.probes[i]
            seeds = [*sample.by_seed], [*sample.by_seed.values()], sample.noise
            row = (sample.value, *arrays, *counts, drawn, *seeds, of.n_effective)
            rows.append((*member, *key, *row))
    return pd.DataFrame(rows, columns=[*MEMBER, *KEY, *VALUES])


def from_table(table: pd.DataFrame) -> Replicates:
    """Return the replicates of all estimators in rows of one or more tables REPLICATES.

    An UnpairedError lists replicates that were drawn differently.
    """
    by_draw = table.groupby("drawn")["estimator"].unique()
    if len(by_draw) > 1:
        sides = " and ".join(", ".join(map(repr, names)) for names in by_draw)
        raise UnpairedError(
            f"Replicates of {sides} were drawn from other answers, so they cannot be compared "
            "in pairs; run evaluate_estimator again for all of them."
        )
    made: Replicates = {}
    order = {
        m: i for i, m in enumerate(table[MEMBER].drop_duplicates().itertuples(False, None))
    }
    for labels, rows in table.groupby(KEY, sort=False):
        records = sorted(
            rows.to_dict("records"), key=lambda r: order[r["train_dataset"], r["estimator"]]
        )
        samples = {
            (row["train_dataset"], row["estimator"]): Sample(
                row["value"],
                np.asarray(row["claims"], float),
                dict(zip(map(int, row["seeds"]), map(float, row["by_seed"]), strict=True)),
                row["noise"],
            )
            for row in records
        }
        counts = records[0]["improvement"], records[0]["regression"]
        made[MetricKey(*map(str, labels))] = MetricSamples(
            samples,
            np.stack([np.asarray(row["probes"], float) for row in records]),
            float(records[0]["n_effective"]),
            None if pd.isna(counts[0]) else (int(counts[0]), int(counts[1])),
            np.stack([np.asarray(row["replicates"], float) for row in records]),
        )
    return made
