"""Weighted metrics, against scikit-learn on repeated rows."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import brier_score_loss, roc_auc_score

from persistcal.evaluation.weighted import auc, balanced_gap, mean_gap, squared_error

stated = st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.75, 1.0])
weighted = st.tuples(stated, st.integers(0, 1), st.integers(0, 3))


@settings(deadline=None)  # the first example can compile loops
@given(st.lists(weighted, min_size=2, max_size=40))
def test_weighted_metrics_equal_sklearn_on_repeated_rows(rows):
    confidence, correct, n_times = np.array(rows).T
    n_times = n_times.astype(int)
    repeated, labels = np.repeat(confidence, n_times), np.repeat(correct, n_times)
    if len(np.unique(labels)) < 2:
        assert np.isnan(auc(confidence, correct, weights=n_times))
    else:
        area = auc(confidence, correct, weights=n_times)
        assert area == pytest.approx(roc_auc_score(labels, repeated))
        error = mean_gap(squared_error(confidence, correct), weights=n_times)
        assert error == pytest.approx(brier_score_loss(labels, repeated))
        balanced = balanced_gap(confidence, correct == 1, weights=n_times)
        assert balanced == pytest.approx(balanced_gap(repeated, labels == 1))
    if len(labels):
        assert mean_gap(confidence, weights=n_times) == pytest.approx(repeated.mean())


def test_metrics_without_answers_or_without_both_labels_are_nan():
    assert np.isnan(auc([0.2, 0.3], [1, 1]))
    assert np.isnan(mean_gap([]))
    assert np.isnan(mean_gap([0.5], weights=[0]))
    assert np.isnan(balanced_gap([0.5, 0.1], [True, True]))
