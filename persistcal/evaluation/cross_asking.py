r"""Cross-asking: metrics of change that are at chance if no knowledge changed.

A checkpoint that samples its answers gives some questions a right answer once and a wrong one
the next time. The contrast set of two asks selects such questions, and the confidence in the
given answer moves with them, because the more probable answer is right more often. So Δ₀ᵇ and
change AUC are above chance although nothing has changed.

Cross-asking needs two independent asks, A and B, of each checkpoint. Ask A gives answers,
labels and the contrast set, and ask B the confidence, in B's own answers. Then the roles are
exchanged, and both statistics are averaged:

.. math:: T = \tfrac12 (T_{AB} + T_{BA}).

If both checkpoints have the same distribution of answers and confidences for each question,
then B's pair of confidences is exchangeable given A. Therefore Δ₀ᵇ has the mean 0 and the
change AUC has the mean ½, whatever A selects. Both roles have the same weights of questions in
each replicate, because their statistics share the questions.

Beams have no independent second ask. To ask again after other few-shot examples checks
robustness: the examples are common to all questions, so the null is not exact.
"""

from typing import NamedTuple

import numpy as np

from persistcal.evaluation.aligned import TwoAsks
from persistcal.evaluation.bootstrap import Bootstrap, Samples
from persistcal.evaluation.metrics.registry import statistics_of_change
from persistcal.evaluation.predictions import Ask
from persistcal.evaluation.settings import EvaluationSettings


class Crossed(NamedTuple):
    """The statistics of change of estimators, by two crossed asks.

    `gained` and `lost` are numbers of questions in each role, summed over pairs. `n_left_out`
    counts answers that have a label in one of the asks only.
    """

    samples: dict[str, Samples]
    gained: tuple[int, int]
    lost: tuple[int, int]
    n_left_out: int = 0
    asks: tuple[int, int] = (Ask.WHOLE, Ask.AGAIN)


def cross_ask(two: TwoAsks, settings: EvaluationSettings) -> Crossed:
    """Cross-ask the estimators of two asks.

    A pair of checkpoints counts if the contrast sets of both roles have `min_contrast`
    questions, and needs `min_direction` gained and lost ones in both roles.
    """
    bootstrap = Bootstrap(two.answers[0], settings)
    samples = bootstrap.apply(statistics_of_change(), two.rated())
    counts = np.array([[role.counts[1:] for role in roles] for roles in two.kept], int)
    gained, lost = counts.reshape(-1, 2, 2).sum(axis=0).T.tolist()
    return Crossed(samples, tuple(gained), tuple(lost), two.n_left_out, two.asks)
