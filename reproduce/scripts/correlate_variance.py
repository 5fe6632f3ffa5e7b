"""Correlate the variance of hidden states over seeds with the order of checkpoints."""

from persistcal.store.artifacts import Correlations, Variances
from persistcal.store.jobs import log, run
from reproduce.tables import hidden_state_table
from reproduce.transfer import correlations_by_layer


def correlate_variance(
    variances: Variances, *, labels: dict[str, dict[str, str]], last_layer: str
) -> tuple[str, Correlations]:
    """Return mean and median correlation of each layer, as a LaTeX table and as rows."""
    rows = correlations_by_layer(variances)
    log.info("%d layers, mean ρ %.3f", len(rows), rows["mean_rho"].mean())
    text = hidden_state_table(rows, labels=labels, last_layer=last_layer)
    return text, rows


if __name__ == "__main__":
    run(correlate_variance, snakemake)
