"""Large studies: influences in one product instead of draws of questions."""

import numpy as np
import pytest

from benchmarks.large_studies import draw_world, measure
from persistcal.evaluation import bootstrap
from persistcal.evaluation.bootstrap import Bootstrap
from persistcal.evaluation.contrast import FullSet, OnContrastSet
from persistcal.evaluation.evaluate import compute
from persistcal.evaluation.metrics.registry import METRICS
from persistcal.evaluation.settings import EvaluationSettings


@pytest.mark.parametrize("world", ["10 % right, ties", "groups of 5"])
def test_influences_give_nearly_the_intervals_of_drawn_questions(world, monkeypatch):
    answers = draw_world(world, 2500, np.random.default_rng(3))
    settings = EvaluationSettings(n_replicates=2000)
    drawn = measure(answers, settings)  # too few questions for influences
    for n_parts in (10_000, 400):
        monkeypatch.setattr(bootstrap, "LARGE", 0)
        monkeypatch.setattr(bootstrap, "PARTS", n_parts)
        linear = measure(answers, settings)
        assert list(linear) == list(drawn) and len(linear) == 18
        for metric, (value, low, high) in drawn.items():
            assert linear[metric][0] == value
            ends = pytest.approx((low, high), abs=0.12 * (high - low))
            assert linear[metric][1:] == ends, metric
        assert sum(linear[metric] != drawn[metric] for metric in drawn) > 9  # not of means


@pytest.mark.parametrize("scope", ["full", "contrast"])
def test_the_influence_of_a_question_is_the_change_of_the_metric_with_its_weight(scope):
    rng = np.random.default_rng(0)
    earlier, later = rng.random((2, 30)).round(1)  # with ties
    gained = rng.random(30) < 0.4
    run = OnContrastSet(earlier, later, (later - earlier).round(1), gained)
    if scope == "full":
        run = FullSet(earlier, gained, [slice(0, 30)])
    names = [n for n, m in METRICS.items() if scope in m.scopes and m.has_influence]
    assert set(names) == {n for n in METRICS if scope in METRICS[n].scopes} - {"smece"}
    step = 1e-6
    weights = np.hstack([np.eye(30), -np.eye(30)]) * step + 1
    for name, [values] in compute(scope, [run], weights, chosen=names).items():
        slopes = (values[:30] - values[30:]) / 2 / step
        assert METRICS[name].influence(run, scope) == pytest.approx(slopes, abs=1e-8), name


def test_large_is_a_study_with_many_groups_of_similar_size_in_the_rarer_class():
    def is_large(n_first, groups):
        answers = draw_world("plain", len(groups), np.random.default_rng(0))
        of = Bootstrap(answers._replace(groups=groups), EvaluationSettings())
        return of.is_large(np.split(np.arange(len(groups)), [n_first]))

    alone = np.arange(6000)
    assert is_large(2000, alone) and not is_large(1999, alone)
    assert not is_large(3000, alone // 2)
    assert not is_large(3000, np.maximum(alone - 900, 0))  # one group of 900 questions
