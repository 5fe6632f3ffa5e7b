"""The paper's analyses: settings, figures and tables. The Snakefile imports this module."""

from collections.abc import Callable
from typing import Any

from persistcal.report.catalogue import View
from study.answers import Answered
from study.study import Study
from study.views import SETTINGS, Setting, ViewContext


def transfer_sets(study: Study, model: str) -> dict[str, dict[str, list[str]]]:
    """Return the training sets of each recipe of the transfer matrices."""
    recipes = study.config["analyses"]["transfer"]["recipes"]
    return {recipe: study.training_sets(model, recipe) for recipe in recipes}


def variances(study: Study) -> list[Answered]:
    """Return the answers for the variance of hidden states."""
    recipe = study.config["analyses"]["hidden_state_variance"]["recipe"]
    return [
        Answered(model, checkpoint, dataset, "test")
        for model, dataset in study.analysed("hidden_state_variance")
        for checkpoint in study.training_sets(model, recipe)
    ]


def _analysed(read: Callable[[Study, str], Any]) -> Setting:
    """Return a setting that has a value for each model of the analysis."""
    return lambda s: {m: read(s.study, m) for m in s.study.models_analysed(s.files)}


def _recipes(subject: ViewContext) -> dict[str, str]:
    """Return the titles of the recipes of the transfer matrices."""
    return subject.study.config["analyses"]["transfer"]["recipes"]


def _compared(role: str) -> Setting:
    """Return the display name of the verifier or the oracle that are compared."""
    return lambda s: s.study.labels["estimators"][
        s.study.config["analyses"]["gcm_headroom"][role]
    ]


# Settings that only figures and tables of the paper's analyses have
PAPER_SETTINGS: dict[str, Setting] = {
    **SETTINGS,
    "all_checkpoints": _analysed(Study.checkpoint_labels),
    "transfer_sets": _analysed(transfer_sets),
    "transfer_recipes": _recipes,
    # Recipes with random labels on the later end
    "random_later": lambda s: [
        name for name in _recipes(s) if s.study.recipe(name)["labels"] == "random_later"
    ],
    "verifier": _compared("verifier"),
    "oracle": _compared("oracle"),
}

FIGURES = (
    View(
        name="transfer_{dataset}",
        function="reproduce.figures.transfer_figure",
        artifact="transfer",
        target="all",
        label="transfer between checkpoints, {dataset}",
        caption=(
            "Full-set AUC of adapters trained at one checkpoint (left: on it alone; right: on "
            "two neighbours, the later one's labels replaced by coin flips) and used at every "
            "checkpoint."
        ),
    ),
    View(
        name="gcm_headroom",
        function="reproduce.figures.headroom_figure",
        artifact="headroom",
        target="all",
        label="headroom of the external verifier",
        caption=(
            "Gain of oracle training over an external verifier in contrast-set AUC, with its "
            "95 % bootstrap interval, against how often the verifier's backbone is wrong "
            "about the same questions."
        ),
    ),
)
TABLES = (
    View(
        name="weight_similarity",
        function="reproduce.tables.weight_similarity",
        artifact="weight_similarities",
        files="weight_similarity",
        target="all",
        caption="Cosine similarity of the flattened weights of each two checkpoints.",
    ),
)
