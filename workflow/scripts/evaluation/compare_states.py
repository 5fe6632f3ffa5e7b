"""Compare the checkpoints of each model, and the models, on one dataset."""

from persistcal.evaluation import states as comparisons
from persistcal.evaluation.contrast import Pairs
from persistcal.store.artifacts import STATES, TRENDS, Predictions, States, Trends, empty
from persistcal.store.jobs import log, run


def compare_states(
    predictions: Predictions,
    *,
    dataset: str,
    checkpoints: dict[str, list[str]],
    pairs: Pairs,
    n_replicates: int,
    seed: int,
) -> tuple[States, Trends]:
    """Return differences between states, and trends, see `comparisons.compare_states`."""
    by_model = {str(model): rows for model, rows in predictions.groupby("model", sort=False)}
    if not by_model:
        log.warning("There are no predictions on %s, so nothing to compare", dataset)
        return empty(STATES), empty(TRENDS)
    states, trends = comparisons.compare_states(
        by_model,
        checkpoints,
        dataset=dataset,
        pairs=pairs,
        n_replicates=n_replicates,
        seed=seed,
    )
    log.info("%d differences between states, %d trends", len(states), len(trends))
    return states, trends


if __name__ == "__main__":
    run(compare_states, snakemake)
