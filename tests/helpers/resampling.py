"""The bootstrap done slowly: rows that are really repeated, and peers' metrics."""

from itertools import chain

import numpy as np
import relplot
from sklearn.metrics import brier_score_loss, roc_auc_score

from persistcal.evaluation.aligned import Aligned
from persistcal.evaluation.contrast import condition
from persistcal.evaluation.draws import draw_sequences, question_blocks
from persistcal.evaluation.paper_draws import count_draws, window

SEED = 5


def draw(parts, n_questions, n_replicates, seed, far=None):
    """Return the counts of each part; with a small `far`, some sequences end too early."""
    far = window(parts, n_questions) if far is None else far
    sequences = draw_sequences(n_questions, range(n_replicates), seed=seed, window=far)
    return [count_draws(part, sequences) for part in parts]


def walk(part, n_questions, seed, replicate):
    """Take from the sequence, one question at a time, until both quotas are met."""
    first = set(part.questions[: part.n_first].tolist())
    second = set(part.questions[part.n_first :].tolist())
    quota = {True: len(first), False: len(second)}
    taken = []
    for question in chain.from_iterable(question_blocks(n_questions, seed, replicate)):
        if question in first or question in second:
            in_first = question in first
            if quota[in_first] > 0:
                quota[in_first] -= 1
                taken.append(int(question))
        if not any(quota.values()):
            return taken


def resampled_metrics(answers, pairs, conditioning, replicate):
    """All eleven metrics of a replicate, from rows that are really repeated."""
    full = Aligned(answers, pairs).parts
    contrast = [pair.part for pair in pairs if pair.kept]
    taken_full = [walk(part, len(answers.questions), SEED, replicate) for part in full]
    taken_pairs = [walk(part, len(answers.questions), SEED, replicate) for part in contrast]
    metrics = {}
    for estimator, runs in answers.estimators.items():
        per_seed = []
        for run in runs:
            stated = [run[k, rows] for k, rows in enumerate(taken_full)]
            labels = [answers.correct[k, rows] for k, rows in enumerate(taken_full)]
            errors = [relplot.smECE(p, z) for p, z in zip(stated, labels, strict=True)]
            right, confidence = np.concatenate(labels), np.concatenate(stated)
            values = {
                ("full", "auc"): roc_auc_score(right, confidence),
                ("full", "brier"): brier_score_loss(right, confidence),
                ("full", "smece"): np.mean(errors),
            }
            by_pair = []
            for pair, rows in zip(pairs, taken_pairs, strict=True):
                original = run[[[pair.earlier], [pair.later]], pair.questions]
                conditioned = np.array(condition(*original, pair.improvement, conditioning))
                positions = [pair.questions.tolist().index(question) for question in rows]
                raw, (earlier, later) = original[:, positions], conditioned[:, positions]
                improved = pair.improvement[positions]
                right = np.where(improved, later, earlier)
                wrong = np.where(improved, earlier, later)
                sign = np.sign(np.where(improved, raw[1] - raw[0], raw[0] - raw[1]))
                gap = right - wrong
                label = np.concatenate([~improved, improved]).astype(int)
                stated = np.concatenate([earlier, later])
                by_pair.append(
                    {
                        "delta0_balanced": (sign[improved].mean() + sign[~improved].mean()) / 2,
                        "delta0": sign.mean(),
                        "delta_balanced": (gap[improved].mean() + gap[~improved].mean()) / 2,
                        "delta": gap.mean(),
                        "change_auc": roc_auc_score(improved, np.round(raw[1] - raw[0], 12)),
                        "auc": roc_auc_score(label, stated),
                        "brier": brier_score_loss(label, stated),
                        "smece": relplot.smECE(earlier, 1.0 - improved),
                    }
                )
            for metric in by_pair[0]:
                values["contrast", metric] = np.mean([pair[metric] for pair in by_pair])
            per_seed.append(values)
        metrics[estimator] = {key: np.mean([v[key] for v in per_seed]) for key in per_seed[0]}
    return metrics
