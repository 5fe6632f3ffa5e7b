"""The settings of the paper's analyses, and of their figures and tables."""

from study.answers import Answered
from study.study import Study
from study.views import ViewSettings


def transfer_sets(study: Study, model: str) -> dict[str, dict[str, list[str]]]:
    """Return the training sets of each recipe of the transfer matrices."""
    recipes = study.config["analyses"]["transfer"]["recipes"]
    return {recipe: study.training_sets(model, recipe) for recipe in recipes}


def transfer_set_names(study: Study, model: str) -> dict[str, list[str]]:
    """Return the names of `transfer_sets`."""
    return {recipe: list(sets) for recipe, sets in transfer_sets(study, model).items()}


def variances(study: Study) -> list[Answered]:
    """Return the answers for the variance of hidden states."""
    recipe = study.config["analyses"]["hidden_state_variance"]["recipe"]
    return [
        Answered(model, checkpoint, dataset, "test")
        for model, dataset in study.analysed("hidden_state_variance")
        for checkpoint in study.training_sets(model, recipe)
    ]


class PaperSettings(ViewSettings):
    """Settings that only figures and tables of the paper's analyses have."""

    @property
    def all_checkpoints(self) -> dict[str, dict[str, str]]:
        """The display names of all checkpoints of each model of the analysis."""
        return {
            m: self._study.checkpoint_labels(m)
            for m in self._study.models_analysed(self._files)
        }

    @property
    def transfer_sets(self) -> dict[str, dict[str, dict[str, list[str]]]]:
        """The training sets of the recipes of the transfer matrices, by model."""
        return {m: transfer_sets(self._study, m) for m in self.all_checkpoints}

    @property
    def transfer_recipes(self) -> dict[str, str]:
        """The titles of the recipes of the transfer matrices."""
        return self._config["analyses"]["transfer"]["recipes"]

    @property
    def random_later(self) -> list[str]:
        """The recipes of the transfer matrices with random labels on the later end."""
        recipes = {name: self._study.recipe(name) for name in self.transfer_recipes}
        return [name for name, recipe in recipes.items() if recipe["labels"] == "random_later"]

    @property
    def verifier(self) -> str:
        """The display name of the verifier that the oracle is compared with."""
        return self._compared("verifier")

    @property
    def oracle(self) -> str:
        """The display name of the oracle that the verifier is compared with."""
        return self._compared("oracle")

    def _compared(self, role: str) -> str:
        name = self._config["analyses"]["gcm_headroom"][role]
        return self._study.labels["estimators"][name]
