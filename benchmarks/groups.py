"""Claims about questions that share facts, with and without their groups.

Four or eight questions share a fact: their labels change together, and so does the confidence
in their answers, which follows nothing; or their answers are right together as often as a
calibrated confidence says.

    python -m benchmarks.groups [--studies 400] [--replicates 300]

writes the table of docs/validation.md: false claims that confidence moved, and that it is
not calibrated, in per cent of the studies.
"""

import argparse

import numpy as np
import pandas as pd

from benchmarks.knew_moved_knows import STATES
from persistcal.evaluation.aligned import Aligned
from persistcal.evaluation.bootstrap import Bootstrap
from persistcal.evaluation.contrast import contrast_sets
from persistcal.evaluation.knowledge import CHANCE, sample_knowledge
from persistcal.evaluation.predictions import AnswerArrays, Series
from persistcal.evaluation.reliability import checkpoint_calibration
from persistcal.evaluation.settings import EvaluationSettings

N_QUESTIONS = 400
RUN = Series("quiz", "estimator", 0)


def draw_study(size: int, rng: np.random.Generator) -> AnswerArrays:
    """Return answers of two checkpoints, with groups of `size` questions."""
    groups = np.repeat(np.arange(N_QUESTIONS // size), size)
    n_groups = N_QUESTIONS // size
    base = rng.random(n_groups) < 0.5
    changed = rng.random(n_groups) < 0.4
    moves = 0.2 * rng.normal(size=n_groups)[groups] + 0.02 * rng.normal(size=N_QUESTIONS)
    names = np.array([f"q{number:04}" for number in range(N_QUESTIONS)], object)
    correct = np.array([base[groups], (base ^ changed)[groups]], np.int8)
    confidence = np.array([np.full(N_QUESTIONS, 0.5), 0.5 + moves.clip(-0.5, 0.5)])
    return AnswerArrays(STATES, names, correct, {RUN: confidence}, groups)


def is_moved(answers: AnswerArrays, settings: EvaluationSettings) -> bool:
    """Return whether the interval of *moved* is above chance."""
    sets = contrast_sets(answers.correct, STATES, settings)
    rated = Aligned(answers, sets).rated()
    sample = sample_knowledge(rated, Bootstrap(answers, settings))["moved"][RUN.member]
    return sample.interval()[0] > CHANCE


def false_claims(size: int, *, studies: int, replicates: int) -> dict[str, float]:
    """Return shares of studies with a false claim, without and with the groups."""
    made: list[dict[str, bool]] = []
    for number in range(studies):
        rng = np.random.default_rng([size, number])
        answers = draw_study(size, rng)
        alone = answers._replace(groups=np.arange(N_QUESTIONS))
        settings = EvaluationSettings(min_contrast=1, n_replicates=replicates, seed=number)
        stated = rng.random(N_QUESTIONS // size)[answers.groups]
        right = (rng.random(N_QUESTIONS // size) < stated[::size])[answers.groups]
        row = {}
        for name, groups in (("ignored", alone.groups), ("given", answers.groups)):
            grouped = answers._replace(groups=groups)
            row[f"moved_{name}"] = is_moved(grouped, settings)
            tested = checkpoint_calibration([stated], right, groups, seed=number, n_draws=100)
            row[f"not_calibrated_{name}"] = tested.p_calibrated < 0.05
        made.append(row)
    return (100 * pd.DataFrame(made).mean()).round(1).to_dict()


def main() -> None:
    """Write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", type=int, default=400)
    parser.add_argument("--replicates", type=int, default=300)
    parser.add_argument("--to", default="benchmarks/outputs/groups.csv")
    options = vars(parser.parse_args())
    path = options.pop("to")
    rows = [{"size": size, **false_claims(size, **options)} for size in (1, 4, 8)]
    pd.DataFrame(rows).to_csv(path, index=False)


if __name__ == "__main__":
    main()
