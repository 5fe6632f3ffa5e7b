"""Evaluate predictions: metrics, bootstrap, tests and states; plan an evaluation.

`persistcal.compare` and the command `persistcal compare` both call `compare_inputs`.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypedDict, Unpack

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from persistcal.api.display import Comparison
from persistcal.evaluation.aligned import Aligned, Subject, align, align_subjects, list_sets
from persistcal.evaluation.evaluate import evaluate as evaluate_all
from persistcal.evaluation.findings import make_findings
from persistcal.evaluation.pipeline import (
    Step,
    compare_study,
    compare_table,
    evaluate_estimators,
    make_claims,
)
from persistcal.evaluation.settings import EVERY, EvaluationSettings, Pairs
from persistcal.evaluation.slices import find_slices, make_slices
from persistcal.evaluation.smooth_ece import smooth_ece as weighted_smooth_ece
from persistcal.judge.accuracy import count_same_answers
from persistcal.readers.inputs import SUBJECT, PredictionTables, make_settings, stack
from persistcal.readers.study import read_predictions
from persistcal.store import artifacts
from persistcal.store.tables import select_rows


class VerdictOptions(TypedDict, total=False):
    """Further options of `compare`, about the verdict."""

    margin: Mapping[str, float]
    by: Sequence[str]


def evaluate(
    predictions: pd.DataFrame,
    checkpoints: Sequence[str] | None = None,
    *,
    min_contrast: int = 20,
    pairs: Pairs = "all",
) -> pd.DataFrame:
    """Compute every metric of every estimator, on all questions and on contrast sets.

    Parameters
    ----------
    predictions : DataFrame
        One row per answer that an estimator judged: checkpoint, question_id, confidence
        (probability in [0, 1] that the answer is correct) and correct (0 or 1). Optional:
        estimator, seed (metrics are averaged over seeds), model and dataset (each pair is
        evaluated on its own) and train_dataset. Other columns are ignored.
    checkpoints : sequence of str, optional
        Evaluation checkpoints, earliest first; by default all, in the order of the rows. Rows
        of other checkpoints are ignored with a warning.
    min_contrast : int, default=20
        Smaller contrast sets are left out of the contrast metrics. If none is left, these
        metrics are NaN, and a warning names the sizes.
    pairs : {"all", "adjacent", "first"} or sequence of (str, str), default="all"
        The pairs of checkpoints that have a contrast set.

    Returns
    -------
    DataFrame
        model, dataset, train_dataset, estimator, conditioning, scope ("full" or
        "contrast"), metric, seed, value and pairs; a row per seed and one with seed "mean".

    Raises
    ------
    ValueError
        If a column is missing, a confidence is not in [0, 1], estimators rate different
        questions, an answer has two labels, or checkpoints spell a question differently. The
        message shows the first such rows.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = {"checkpoint": ["a", "a", "b", "b"], "question_id": [1, 2, 1, 2]}
    >>> rows |= {"confidence": [0.2, 0.6, 0.8, 0.7], "correct": [0, 1, 1, 1]}
    >>> metrics = evaluate(pd.DataFrame(rows), min_contrast=1)
    >>> full = metrics.query("scope == 'full' and metric == 'auc' and seed == 'mean'")
    >>> full["value"].item()
    1.0
    """
    settings = make_settings(min_contrast=min_contrast, pairs=pairs)
    return compute_metrics(read_predictions(predictions, checkpoints, settings), settings)


def contrast_sets(
    predictions: pd.DataFrame,
    checkpoints: Sequence[str] | None = None,
    *,
    min_contrast: int = 20,
    pairs: Pairs = "all",
) -> pd.DataFrame:
    """Count the questions that exactly one checkpoint of a pair answers correctly.

    The parameters are described in `evaluate`.

    Returns
    -------
    DataFrame
        model, dataset, earlier, later, size, improvement, regression, kept (whether the set
        has at least `min_contrast` questions) and same_answers (missing without texts).
    """
    settings = make_settings(min_contrast=min_contrast, pairs=pairs)
    return count_contrast_sets(read_predictions(predictions, checkpoints, settings), settings)


def compare(
    predictions: pd.DataFrame,
    checkpoints: Sequence[str] | None = None,
    *,
    min_contrast: int = 20,
    pairs: Pairs = "all",
    min_direction: int = EvaluationSettings.min_direction,
    n_replicates: int = 10_000,
    seed: int = 17,
    greedy: bool = False,
    **verdict: Unpack[VerdictOptions],
) -> Comparison:
    """Compare estimators by a paired bootstrap over questions, and checkpoints with each other.

    The best estimator is tested against each other estimator of the same training dataset,
    metric by metric. Accuracies of checkpoints are compared by McNemar's exact test, and AUC
    and Brier score of each estimator by the bootstrap. The workflow and the command
    `persistcal compare` give the same numbers with the same settings.

    Parameters
    ----------
    predictions, checkpoints, min_contrast, pairs
        As for `evaluate`. Without a column confidence, accuracies are compared.
    min_direction : int, default=5
        Questions that each pair needs to gain, and to lose, for an interval and a test of the
        metrics that rest on both: Δ₀ᵇ, Δᵇ and the change AUC.
    n_replicates : int, default=10000
        Bootstrap replicates, at least 200; all estimators are evaluated on the same ones.
    seed : int, default=17
        Seed of the replicates.
    greedy : bool, default=False
        Whether the answers are deterministic (greedy, or of temperature 0), so that no answer
        differs by chance.
    margin : mapping of str to float, optional
        The largest fall of accuracy, and difference of mean confidence and accuracy, that count
        as none: {"accuracy": 0.01, "calibration": 0.02} unless given.
    by : sequence of str, optional
        Columns such as a topic, by which the questions are sliced.

    Returns
    -------
    Comparison
        `.verdict()` and `.summary()` are texts, `.tables` contains the tables by name,
        `.table()` lays them out, `.figure()` draws one, and `.to_html()` returns the page.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = {"checkpoint": ["v1"] * 40 + ["v2"] * 40, "question_id": [*range(40)] * 2}
    >>> rows |= {"confidence": [0.9, 0.4] * 40, "correct": [1] * 40 + [0, 1] * 20}
    >>> found = compare(pd.DataFrame(rows), n_replicates=200)
    >>> found.tables["states"].query("metric == 'accuracy'")["difference"].item()
    -0.5
    """
    settings = make_settings(
        min_contrast=min_contrast,
        pairs=pairs,
        min_direction=min_direction,
        n_replicates=n_replicates,
        seed=seed,
        margin=verdict.get("margin"),
    )
    inputs = read_predictions(
        predictions,
        checkpoints,
        settings,
        labels_only=True,
        greedy=greedy,
        by=verdict.get("by", ()),
    )
    if greedy:
        inputs.declare_greedy()
    return compare_inputs(inputs, settings)


def compute_metrics(
    inputs: PredictionTables, settings: EvaluationSettings, step: Step = lambda _: None
) -> pd.DataFrame:
    """Return the table METRICS of all predictions, without a bootstrap."""
    parts = []
    for (model, dataset, name), rows in inputs.predictions.items():
        data = align(rows, inputs.checkpoints[model], settings).warned()
        parts.append((evaluate_all(data, settings), {"model": model, "dataset": dataset}))
        step(name or dataset)
    return stack(parts, artifacts.METRICS)


def count_contrast_sets(inputs: PredictionTables, settings: EvaluationSettings) -> pd.DataFrame:
    """Return the table CONTRAST_SETS of all models and datasets."""
    parts = []
    for subject in inputs.subjects():
        names = inputs.checkpoints[subject["model"]]
        answers, clusters = (select_rows(t, subject) for t in (inputs.answers, inputs.clusters))
        sets = list_sets(answers, names, settings).members
        same = count_same_answers(sets, answers, clusters)
        sets = sets.assign(same_answers=pd.array(same, "Int64"))
        parts.append((sets[artifacts.CONTRAST_SETS.but(*subject)], subject))
    return stack(parts, artifacts.CONTRAST_SETS)


def align_inputs(
    inputs: PredictionTables, settings: EvaluationSettings
) -> dict[Subject, Aligned]:
    """Align the predictions of each model and dataset."""
    by_dataset = dict.fromkeys((dataset for _, dataset, _ in inputs.predictions), settings)
    return align_subjects([*inputs.predictions.values()], inputs.checkpoints, by_dataset)


def compare_inputs(
    inputs: PredictionTables,
    settings: EvaluationSettings,
    step: Step = lambda _: None,
    ready: Callable[[dict[str, pd.DataFrame]], object] = lambda _: None,
) -> Comparison:
    """Evaluate, resample and compare all predictions; `ready` is called with made tables."""
    inputs.check_pairs(settings.pairs)
    tables: dict[str, pd.DataFrame] = {}

    def add(name: str, table: pd.DataFrame) -> None:
        tables[name] = table
        ready({name: table})

    by_dataset = dict.fromkeys((dataset for _, dataset, _ in inputs.predictions), settings)
    aligned = align_inputs(inputs, settings)
    slices = {}
    if inputs.slices is not None:  # refused before the bootstrap
        slices = {
            subject: find_slices(inputs.slices, subject[1], data, settings)
            for subject, data in aligned.items()
        }
    files = {subject: iter(data.by_file()) for subject, data in aligned.items()}
    results, subjects = [], []
    for model, dataset, name in inputs.predictions:
        subjects.append({"model": model, "dataset": dataset})

        def finish(done: str, estimator: str = name or dataset) -> None:
            step(f"{estimator}, {done}")

        data = next(files[model, dataset])
        results.append(evaluate_estimators(data, settings, finish))
    metrics, intervals, drawn = (
        stack(list(zip(tables, subjects, strict=True)), kind)
        for tables, kind in zip(
            zip(*results, strict=True),
            (artifacts.METRICS, artifacts.INTERVALS, artifacts.REPLICATES),
            strict=True,
        )
    )
    comparisons = [
        (str(model), str(dataset), [[(t, EVERY)] for t in rows["train_dataset"].unique()])
        for (model, dataset), rows in drawn.groupby(SUBJECT, sort=False)
    ]
    add("metrics", metrics)
    add(
        "significance", stack([(compare_table(drawn, comparisons), {})], artifacts.SIGNIFICANCE)
    )
    add("intervals", intervals)
    determinism = "declared" if inputs.is_greedy else ""
    claims, placebos = make_claims(aligned, drawn, by_dataset, determinism=determinism)
    add("claims", stack([(claims, {})], artifacts.CLAIMS))
    add("placebos", stack([(placebos, {})], artifacts.PLACEBOS))
    add("contrast_sets", count_contrast_sets(inputs, settings))
    compared = compare_study(aligned, inputs.answers, by_dataset, controls={}, step=step)
    for name, table in compared._asdict().items():
        if name != "changes":  # kinds of change have names in a study only
            add(name, stack([(table, {})], getattr(artifacts, name.upper())))
    findings = make_findings(
        aligned, tables["claims"], tables["states"], tables["thresholds"], by_dataset
    )
    if slices:
        sliced = make_slices(aligned, slices, tables["thresholds"], by_dataset)
        findings = pd.concat([findings, sliced], ignore_index=True)
    add("findings", findings)
    return Comparison(inputs, settings, tables, drawn, aligned)


def smooth_ece(correct: ArrayLike, confidence: ArrayLike) -> float:
    """Return SmoothECE, the calibration error that needs no bins.

    Parameters
    ----------
    correct : array-like of shape (n_answers,)
        0 or 1.
    confidence : array-like of shape (n_answers,)
        Stated probability that each answer is correct, in [0, 1].

    Returns
    -------
    float
        In [0, 1]; 0 is perfect.

    References
    ----------
    .. [1] Błasiok and Nakkiran, "Smooth ECE: Principled Reliability Diagrams
       via Kernel Smoothing", ICLR 2024. https://arxiv.org/abs/2309.12236

    Examples
    --------
    Half of the answers at confidence 0.9 are wrong:

    >>> round(smooth_ece([0, 1] * 5, [0.9] * 10), 3)
    0.4
    """
    labels, stated = np.asarray(correct), np.asarray(confidence)
    try:
        if np.iscomplexobj(stated) or np.iscomplexobj(labels):
            raise TypeError("complex numbers")
        stated = stated.astype(float)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"A confidence is not a number ({error}); give probabilities."
        ) from None
    if stated.shape != labels.shape or stated.ndim != 1:
        raise ValueError(
            f"correct has the shape {labels.shape} and confidence {stated.shape}; give one "
            "number of each per answer."
        )
    if not np.isin(labels, [0, 1]).all():
        raise ValueError(
            "A label is neither 0 nor 1; the order is smooth_ece(correct, confidence), as in "
            "scikit-learn."
        )
    if not ((stated >= 0) & (stated <= 1)).all():
        raise ValueError("A confidence is not in [0, 1]; give probabilities.")
    return float(weighted_smooth_ece(stated, labels))


def plan(
    questions: int,
    gained: int,
    lost: int,
    *,
    difference: float | None = None,
    **assumed: Any,  # noqa: ANN401
) -> pd.DataFrame:
    """Return the smallest differences that a study finds with a power of 80 %.

    For estimators, these are differences that `persistcal.compare` claims in 80 % of such
    studies, by simultaneous intervals of all pairs of estimators. For one estimator, they are
    the AUC with which it passes one test of *knew*, *moved* or *knows*, and all five. How many
    questions change is random.

    Parameters
    ----------
    questions : int
        Number of questions that the study asks.
    gained, lost : int
        Expected numbers of questions that only the later and only the earlier checkpoint
        answers correctly.
    difference : float, optional
        Return also how many questions find this difference.
    accuracy : float, default=0.5
        Accuracy of the earlier checkpoint.
    agreement : float, default=0.7
        Share of gained and lost questions on which two estimators' confidences change in the
        same direction, right or wrong.
    auc : float, default=0.65
        Approximate contrast AUC of the estimators.
    estimators : int, default=2
        Number of estimators that are compared with each other.
    ties : float, default=0.0
        Share of these questions on which an estimator's confidence stays equal.

    Returns
    -------
    DataFrame
        measure, difference (NaN if the study finds none) and questions (missing if two
        estimators cannot differ by `difference`).

    Raises
    ------
    ValueError
        If a count is not a whole number from 1 to `questions`, or a share is not between 0 and
        1.

    Examples
    --------
    >>> plan(2000, 220, 38)["difference"].round(3).tolist()
    [0.023, 0.273, 0.089, 0.583, 0.677]
    """
    from persistcal.evaluation.power import Findable, Guess, findable  # imports scipy.stats

    guess = Guess(questions, gained, lost, **assumed)
    table = pd.DataFrame(findable(guess, difference), columns=Findable._fields)
    return table.astype({"questions": "Int64"})
