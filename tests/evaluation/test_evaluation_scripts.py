"""The scripts around evaluation, where there is nothing to evaluate."""

import logging

from assess_significance import assess_significance
from compute_metrics import compute_metrics

from persistcal import artifacts


def test_without_predictions_there_are_empty_tables_and_a_warning(tmp_path, caplog):
    predictions = tmp_path / "predictions.parquet"
    artifacts.write(artifacts.empty(artifacts.PREDICTIONS), predictions, artifacts.PREDICTIONS)
    settings = {
        "model": "m",
        "dataset": "quiz",
        "checkpoints": ["a", "b"],
        "min_contrast": 1,
    }
    with caplog.at_level(logging.WARNING):
        compute_metrics(predictions, tmp_path / "m.parquet", tmp_path / "c.parquet", **settings)
        assess_significance(
            [predictions],
            tmp_path / "s.parquet",
            tmp_path / "i.parquet",
            **settings,
            blocks=[[("quiz", "oracle"), ("quiz", "self_consistency")]],
            conditioning=["odds"],
            n_replicates=10,
            seed=0,
        )
    for name, table in [
        ("m", artifacts.METRICS),
        ("c", artifacts.CONTRAST_SETS),
        ("s", artifacts.SIGNIFICANCE),
        ("i", artifacts.INTERVALS),
    ]:
        assert artifacts.read(tmp_path / f"{name}.parquet", table).empty
    assert len(caplog.records) == 2
