"""The estimators of a study: which answers and scores each of them reads."""

from typing import Any

from study.adapters import Adapters, Scores


class Estimators(Adapters):
    """Needs and inputs of estimators."""

    def _about(self, estimator: str) -> dict[str, Any]:
        return self.config["estimators"][estimator]

    def needs_earlier(self, estimator: str) -> bool:
        """Return whether an estimator reads, learns from or uses training checkpoints."""
        about, recipe = self._about(estimator), self.recipe_of(estimator)
        used = [*about.get("reads", []), about.get("weights_of"), about.get("answers_of")]
        if recipe and isinstance(self.recipes[recipe]["train_on"], str):
            used.append(self.recipes[recipe]["train_on"].removeprefix("each_"))
        return self.is_fitted(estimator) or bool({"earlier", "last_earlier"} & set(used))

    def is_said(self, estimator: str) -> bool:
        """Return whether an estimator reads what was said in words, which may be nothing."""
        about = self._about(estimator)
        return "asks" in about or about.get("function") == "stated"

    def is_evaluated(self, model: str, dataset: str, estimator: str) -> bool:
        """Return whether an estimator has the train split and checkpoints that it needs."""
        if self.is_fitted(estimator) and self.elsewhere(dataset):
            return False
        return bool(self.earlier(model)) or not self.needs_earlier(estimator)

    def _in_groups(self, model: str, groups: list[str], *also: str) -> list[str]:
        read = {*also, *(c for name in groups for c in self.group(model, name))}
        return [c for c in self.group(model, "all") if c in read]

    def checkpoints_read(self, model: str, estimator: str) -> list[str]:
        """Return the checkpoints whose answers an estimator without adapters reads."""
        groups = [*self._about(estimator)["reads"]]
        return self._in_groups(
            model, groups + (["earlier"] if self.is_fitted(estimator) else [])
        )

    def read_at(self, model: str, estimator: str, checkpoint: str) -> list[str]:
        """Return the checkpoints whose answers an estimator reads to rate those of one."""
        about = self._about(estimator)
        groups = [name for name in about["reads"] if name != "evaluation"]
        groups += ["earlier"] if about.get("fitted") else []
        return self._in_groups(model, groups, checkpoint)

    def judged_at(self, model: str, estimator: str, checkpoint: str) -> list[str]:
        """Return those of `read_at` whose labels are read as well."""
        fitted = self._about(estimator).get("fitted")
        return self.read_at(model, estimator, checkpoint) if fitted else [checkpoint]

    def earlier_at(self, model: str, estimator: str, checkpoint: str) -> list[str]:
        """Return the training checkpoints among `read_at`."""
        earlier = self.earlier(model)
        return [c for c in self.read_at(model, estimator, checkpoint) if c in earlier]

    def split_rated(self, model: str, checkpoint: str) -> str:
        """Return the split of a checkpoint's rated answers: estimators are fitted on train."""
        return "train" if checkpoint in self.earlier(model) else "test"

    def splits_to_verify(self, verifier: str, model: str, dataset: str) -> dict[str, str]:
        """Return the split of `dataset` that `verifier` judges the answers to, by checkpoint.

        Estimators are fitted on the train split of the training checkpoints.
        """
        read = {
            checkpoint
            for name, about in self.config["estimators"].items()
            if about.get("verifier") == verifier and self.is_evaluated(model, dataset, name)
            for checkpoint in self.checkpoints_read(model, name)
        }
        return {
            checkpoint: self.split_rated(model, checkpoint)
            for checkpoint in self.checkpoints(model)
            if checkpoint in read
        }

    def scores_used(self, model: str, estimator: str, checkpoint: str) -> tuple[Scores, str]:
        """Return where an estimator's scores at `checkpoint` are, and of whose answers."""
        about, recipe = self._about(estimator), self.recipe_of(estimator) or estimator
        weights, answers = about.get("weights_of"), about.get("answers_of")
        at = self.group(model, weights)[0] if weights else checkpoint
        if answers == weights:  # both of one checkpoint, or both of each its own
            return Scores(at, recipe, "own"), at
        if answers:
            return Scores(at, recipe, answers), self.group(model, answers)[0]
        return Scores(at, recipe, "evaluation"), checkpoint

    def scores_read(self, model: str, estimator: str) -> list[Scores]:
        """Return all scores that an estimator reads, those it is calibrated on first."""
        recipe = self.recipe_of(estimator) or estimator
        calibrated = self.earlier(model) if self._about(estimator).get("posthoc") else []
        train = [Scores(checkpoint, recipe, "train") for checkpoint in calibrated]
        used = [self.scores_used(model, estimator, c)[0] for c in self.evaluation(model)]
        return list(dict.fromkeys([*train, *used]))

    def uses(self, model: str, estimator: str) -> list[dict[str, str]]:
        """Return where an estimator's scores are, for each evaluation checkpoint.

        Keys checkpoint (which they are for), scored_at (whose weights), answers (see
        `Scores`) and answers_of (whose).
        """
        rows = []
        for checkpoint in self.evaluation(model):
            scores, answers_of = self.scores_used(model, estimator, checkpoint)
            row = {"checkpoint": checkpoint, "scored_at": scores.checkpoint}
            rows.append({**row, "answers": scores.answers, "answers_of": answers_of})
        return rows

    @property
    def weighting(self) -> str:
        """Weighting of a checkpoint's answers to one question."""
        decoding = self.config["decoding"]
        return "equal" if decoding["strategy"] == "sample" else decoding["weighting"]

    @property
    def judged_clusters(self) -> int | None:
        """Number of a question's likeliest clusters that are judged; None means all."""
        judge = self.config["judge"]
        if judge["backend"] == "lexical" or judge["clusters"] == "all":
            return None
        if self.has_own_answers:  # on which nothing is trained
            return 1
        return max([1, *(self.recipe(recipe)["answers"] for recipe in self.recipes)])
