"""All metrics by name. A new module with metrics is imported here."""

from persistcal.evaluation.metrics.base import (
    METRICS,
    Mean,
    Metric,
    MetricKey,
    Scope,
    names,
    statistics_of_change,
)

# In the order of the columns of tables
# isort: off
from persistcal.evaluation.metrics import sign, ranking, calibration  # noqa: F401
# isort: on

__all__ = ["METRICS", "Mean", "Metric", "MetricKey", "Scope", "names", "statistics_of_change"]
