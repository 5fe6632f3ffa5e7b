"""The files that jobs read and the settings that they receive, as functions of wildcards.

`study.study` decides what is evaluated, trained and answered. A method belongs here if it names
files, or makes the parameters of a job.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from snakemake.exceptions import WorkflowError
from snakemake.io import ancient, expand

from persistcal.confidence.estimators.catalogue import file_of, registration_of
from persistcal.confidence.registry import UNCHANGED_KEYS
from persistcal.judge.human_labels import human_labels_digest
from persistcal.judge.messages import ONE, TOGETHER, split_prompt
from persistcal.models.checkpoint import local_digests
from persistcal.questions.catalogue import SHARED_KEYS
from persistcal.questions.labels import JudgeError
from persistcal.questions.splits import AGAIN, split_of_questions
from persistcal.questions.templates import check_fields
from persistcal.store.code import code_digest
from persistcal.store.files import Digests
from study.checkpoints import PRICES, Config
from study.confidences import split_scored
from study.paths import Paths, files_of_rows, one_of
from study.study import Study

Files = list[str]
RATED = ("question", "answer")  # fields of a prompt about an answer
VLLM_BATCH = 128  # questions that vLLM decodes together if `batch_size` is auto


def existing(path: str, remedy: str) -> str:
    """Return `path` if it exists. Snakemake's own message would list every output."""
    if not Path(path).exists():
        raise WorkflowError(f"config: {path} does not exist; {remedy}.")
    return path


class Inputs:
    """Files and settings of the jobs of one study."""

    def __init__(self, study: Study, root: Path) -> None:
        self.study, self.root = study, root
        self.config = study.config
        self.paths = Paths(study.config["results"])

    def find_file(self, path: str) -> str:
        """Return a file of the user's (working directory) or else of the project's."""
        return next((str(p) for p in (Path(path), self.root / path) if p.exists()), path)

    def contents_of(self, *paths: str) -> list[str]:
        """Return digests of the user's files, because an older file can replace a newer one."""
        digests = Digests(f"{self.config['results']}/.digests")
        return [digests.sha256(Path(path)) for path in paths if Path(path).exists()]

    def read_prompt(
        self, path: str, key: str, needed: Sequence[str] = RATED, optional: Sequence[str] = ()
    ) -> str:
        """Return the text of the prompt that the config names under `key`; check its fields."""
        prompt = self._read(path, key)
        try:
            check_fields(prompt, f"config: {key} ({path})", needed, optional)
        except ValueError as error:
            raise WorkflowError(f"{error}.") from None
        return prompt

    def _read(self, path: str, key: str) -> str:
        """Return the text of the file that the config names under `key`."""
        file = Path(self.find_file(path))
        if not file.exists():
            raise WorkflowError(f"config: {key} is {path}, and there is no such file.")
        return file.read_text(encoding="utf-8")

    def confidence_prompt(self) -> str:
        """Return the prompt about an answer; per job, or Snakemake would fill its braces."""
        return self.read_prompt(self.config["prompts"]["confidence"], "prompts.confidence")

    # Questions

    def questions_asked(self, model: str, checkpoint: str, dataset: str) -> str:
        """Return the questions as a checkpoint is asked them: with passages or without."""
        has_context = "context" in self.study.state(model, checkpoint)
        path = self.paths.contexts if has_context else self.paths.questions
        return path.format(model=model, checkpoint=checkpoint, dataset=dataset)

    def questions_of_each(self, model: str, checkpoints: Files, dataset: str) -> Files:
        """Return the plain questions, and the questions with context of each checkpoint."""
        files = [self.questions_asked(model, c, dataset) for c in checkpoints]
        plain = self.paths.questions.format(dataset=dataset)
        return list(dict.fromkeys([plain, *files]))

    def source_settings(self, dataset: str) -> Config:
        """Return the keys of a dataset that decide its questions."""
        entry = self.config["datasets"][dataset]
        settings = {key: entry[key] for key in entry if key not in SHARED_KEYS}
        if "categories" in settings:  # the project's unless the user has a file of that name
            settings["categories"] = self.find_file(settings["categories"])
        return settings

    def source_files(self, dataset: str) -> Files:
        """Return the files of a source that its jobs read; optional ones can be missing."""
        settings = self.source_settings(dataset)
        files = [settings[key] for key in ("file", "categories") if key in settings]
        optional = self.study.source(dataset).file_is_optional
        return [file for file in files if not optional or Path(file).exists()]

    def source_contents(self, dataset: str) -> list[str]:
        """Return the digests of the files of a source."""
        return self.contents_of(*self.source_files(dataset))

    def context_file(self, model: str, checkpoint: str) -> str:
        """Return the user's file of the passages of a checkpoint."""
        key = f"models.{model}.checkpoints.{checkpoint}.context.file"
        file = self.study.state(model, checkpoint)["context"]["file"]
        return existing(file, f"correct {key}")

    def contents_of_context(self, model: str, checkpoint: str) -> list[str]:
        """Return the digest of the file of the passages."""
        return self.contents_of(self.study.state(model, checkpoint)["context"]["file"])

    def context_prompt(self, model: str, checkpoint: str) -> str:
        """Return the prompt that puts a passage before a question."""
        key = f"models.{model}.checkpoints.{checkpoint}.context.prompt"
        path = self.study.state(model, checkpoint)["context"]["prompt"]
        return self.read_prompt(path, key, ["passage", "question"])

    # Checkpoints

    def made_by(self, made: str) -> str:
        """Return a regular expression of models, each before a checkpoint that is `made` so."""
        study = self.study
        names = {
            m: [c for c in study.known_checkpoints(m) if study.made_by(m, c) == made]
            for m in study.models_made
        }
        patterns = (f"{re.escape(m)}(?=/(?:{one_of(c)})[./])" for m, c in names.items() if c)
        return "|".join(patterns) or "(?!)"

    def made_files(self, model: str, checkpoint: str) -> Files:
        """Return the files of a checkpoint that is made here; empty if others made it.

        Jobs that read the files list them as inputs, so that deleted files are made again.
        Times of files do not matter, because the record contains their digests.
        """
        made = self.study.made_by(model, checkpoint)
        if made == "merge":
            parts = self.study.made_from(model, checkpoint)
            return [path for part in parts for path in self.made_files(model, part)]
        pretrained = [self.paths.weights, *self.paths.beside_weights]
        files = {"repo": [], "pretraining": pretrained}
        paths = files.get(made, [self.paths.changed, *self.paths.beside_changed])
        filled = expand(paths, model=model, checkpoint=checkpoint)
        return [ancient(path) for path in filled]

    def local_files(self, model: str, checkpoint: str) -> Any:  # noqa: ANN401
        """Return digests of the files of local folders; empty for repositories."""
        state = self.study.state(model, checkpoint)
        sources = [s for s in (state, state.get("adapter")) if s and "revision" in s]
        record = self.paths.checkpoint.format(model=model, checkpoint=checkpoint)
        digests = [local_digests(Path(s["repo"]) / s["revision"], record) for s in sources]
        return digests[0] if len(digests) == 1 else digests

    def pretraining(self, model: str) -> Config:
        """Return how the checkpoints of `model` are made."""
        return self.config["models"][model]["pretraining"]

    def pretraining_prompt(self, model: str) -> str:
        """Return the prompt that the pre-training shows."""
        path = self.pretraining(model).get("prompt")
        return (
            self.read_prompt(path, "pretraining.prompt") if path else self.confidence_prompt()
        )

    def facts_to_learn(self, model: str) -> Files:
        """Return the facts of the datasets of the pre-training."""
        return expand(self.paths.facts, dataset=self.pretraining(model)["datasets"])

    def previous_weights(self, model: str, checkpoint: str) -> dict[str, Any]:
        """Return the files of the previous checkpoint; empty for the first."""
        name = self.study.previous_checkpoint(model, checkpoint)
        if not name:
            return {}
        weights, *further_files = self.made_files(model, name)
        record = self.paths.checkpoint.format(model=model, checkpoint=name)
        return {"previous": weights, "beside_previous": [*further_files, record]}

    def checkpoint_to_change(self, model: str, checkpoint: str) -> dict[str, Any]:
        """Return the record of the checkpoint that is changed, and its files if made here."""
        start = self.study.state(model, checkpoint)["change"]["of"]
        record = self.paths.checkpoint.format(model=model, checkpoint=start)
        return {"before": record, "beside_before": self.made_files(model, start)}

    def questions_of_change(self, model: str, checkpoint: str) -> Files:
        """Return the training questions of a change."""
        change = self.study.state(model, checkpoint)["change"]
        datasets = change.get("datasets", self.study.chosen["datasets"])
        return expand(self.paths.questions, dataset=datasets)

    def first_tokenizer(self, model: str) -> str:
        """Return the tokenizer of the first checkpoint, which the whole pre-training uses."""
        path = self.paths.weights.replace("model.safetensors", "tokenizer.json")
        first = self.study.pretrained(model)[0]
        return ancient(path.format(model=model, checkpoint=first))

    def retraining(self, model: str, checkpoint: str) -> Config:
        """Return the pre-training, without the facts that a retraining leaves out."""
        usual = self.pretraining(model)
        change = self.study.state(model, checkpoint)["change"]
        return usual | {"without": [*usual.get("without", []), *change["without"]]}

    # Answers and their labels

    def few_shot(
        self, model: str, checkpoint: str, dataset: str, split: str = "test"
    ) -> Config:
        """Return the settings of the few-shot prompt; a second ask has other examples."""
        state = self.study.state(model, checkpoint)
        example_set = state.get("examples", 0)
        example_set += self.study.sets_of_examples if split == AGAIN else 0
        return {
            **({"example_set": example_set} if example_set else {}),  # the first set has no key
            "n_examples": self.config["prompts"]["few_shot"],
            "by_category": self.study.source(dataset).examples_by_category,
            "chat": state["chat"],
        }

    def draws(self, model: str, checkpoint: str) -> Config:
        """Return number and settings of a question's samples; a checkpoint can set its seed."""
        keys = ("n_samples", "temperature", "top_p", "seed", "max_new_tokens")
        drawn = {**self.config["decoding"], **self.study.state(model, checkpoint)}
        return {key: drawn[key] for key in keys}

    def search(self, model: str, checkpoint: str) -> Config:
        """Return how a checkpoint's answers are searched for or sampled."""
        drawn, decoding = self.draws(model, checkpoint), self.config["decoding"]
        samples = decoding["strategy"] == "sample"
        sampling = {key: drawn[key] for key in ("temperature", "top_p", "seed")}
        is_auto = decoding["batch_size"] == "auto"
        return {
            "n_beams": decoding["n_samples" if samples else "n_beams"],
            "draw": sampling if samples else None,
            **{key: decoding[key] for key in ("max_new_tokens", "batch_size", "memory_gb")},
            # vLLM manages its own memory and is slow with small batches.
            **({"batch_size": VLLM_BATCH} if decoding["backend"] == "vllm" and is_auto else {}),
        }

    def api_settings(self, model: str, checkpoint: str) -> Config:
        """Return the address and the prices of a checkpoint behind an API."""
        api = self.study.api(model, checkpoint)
        settings = {key: api[key] for key in (*PRICES, "api_key_env") if key in api}
        section = f"models.{model}.checkpoints.{checkpoint}.api"
        return {"section": section, **self.config["api"], **settings}

    def label_settings(self) -> Config:
        """Return the settings of the judge that decide labels, with the text of the prompt."""
        judge = self.config["judge"]
        if not self.study.judge.asks_server:
            return {key: judge[key] for key in ("backend", *self.study.judge.needs)}
        together = judge.get("together")
        name = "judge_together" if together else "judge"
        path = self.config["prompts"][name]
        prompt = self._read(path, f"prompts.{name}")
        try:
            split_prompt(prompt, TOGETHER if together else ONE)
        except JudgeError as error:
            sentence = str(error).replace("The judge's prompt", f"prompts.{name} ({path})")
            raise WorkflowError(f"config: {sentence}") from None
        settings = {key: judge[key] for key in ("endpoint", "labels") if key in judge}
        request = judge.get("request", {})
        return {"model": judge["model"], "prompt": prompt, "request": request, **settings}

    def judge_settings(self) -> Config:
        """Return all settings of the judge, such as a server's address and limits."""
        return {key: value for key, value in self.config["judge"].items() if key != "clusters"}

    def human_labels(self, model: str, checkpoint: str, dataset: str, split: str) -> str:
        """Return a digest of a person's labels since the job first ran."""
        consulted = self.paths.consulted.format(
            model=model, checkpoint=checkpoint, dataset=dataset, split=split
        )
        return human_labels_digest(
            f"{self.paths.results}/judge/queue.csv",
            consulted,
            stop=self.config["judge"].get("undecided") == "stop",
        )

    # Adapters and their scores

    def training_plan(self, model: str, recipe: str, trained_on: str) -> Config:
        """Return the answers that adapters learn from, and their checkpoints."""
        settings = self.study.recipe(recipe)
        return {
            "checkpoints": self.study.trained_on(model, recipe, trained_on),
            "sources": self.study.data_checkpoints(model, recipe, trained_on),
            "prompt": self.confidence_prompt(),
            **{key: settings[key] for key in ("data", "labels", "n_answers")},
        }

    def questions_of_training(
        self, model: str, recipe: str, trained_on: str, dataset: str
    ) -> Files:
        """Return the questions as each checkpoint that is trained on is asked them."""
        names = self.study.trained_on(model, recipe, trained_on)
        return self.questions_of_each(model, names, dataset)

    def clusters_to_score(
        self, model: str, checkpoint: str, dataset: str, recipe: str, answers: str
    ) -> Files:
        """Return the answers that a file of scores is about."""
        rows = self.study.scorings(model, checkpoint, dataset, recipe, answers)
        names = dict.fromkeys(row["answers_of"] for row in rows)
        wildcards = {"model": model, "dataset": dataset, "split": split_scored(answers)}
        return expand(self.paths.clusters, checkpoint=names, **wildcards)

    def adapters_that_score(
        self, model: str, checkpoint: str, dataset: str, recipe: str, answers: str
    ) -> Files:
        """Return the adapters of each scoring, in their order."""
        rows = self.study.scorings(model, checkpoint, dataset, recipe, answers)
        weights = f"{self.paths.adapter}/adapter_model.safetensors"
        return [
            weights.format(**{**row, "model": model, "dataset": row["train_dataset"]})
            for row in rows
        ]

    def scoring_settings(self, answers: str) -> Config:
        """Return the split that is scored, and how."""
        return {
            "split": split_of_questions(split_scored(answers)),
            "prompt": self.confidence_prompt(),
            "batch_size": self.config["scoring"]["batch_size"],
            "head": self.config["scoring"]["head"],
            "dtype": self.config["training"]["dtype"],
        }

    # Estimators

    def verifier_files(self, verifier: str) -> dict[str, Any]:
        """Return the checkpoint that judges, its files if made here, and its adapter."""
        entry = self.config["verifiers"][verifier]
        wildcards = {"model": entry["model"], "checkpoint": entry["checkpoint"]}
        files: dict[str, Any] = {"checkpoint": self.paths.checkpoint.format(**wildcards)}
        files["pretrained"] = self.made_files(**wildcards)
        if entry.get("adapter"):
            files["adapter"] = self.paths.verifier_adapter.format(verifier=verifier)
        return files

    def verifier_prompt(self, verifier: str) -> Config:
        """Return the prompt of a verifier."""
        entry = self.config["verifiers"][verifier]
        template = self.read_prompt(entry["prompt"], f"verifiers.{verifier}.prompt")
        return {"template": template, **{key: entry[key] for key in ("chat_template", "word")}}

    def adapter_files(self, verifier: str) -> dict[str, str]:
        """Return digests of a local folder's files; empty for repositories."""
        adapter = self.config["verifiers"][verifier]["adapter"]
        folder = Path(adapter["repo"]) / adapter["revision"]
        return local_digests(folder, self.paths.verifier_adapter.format(verifier=verifier))

    def further_files(
        self, model: str, dataset: str, estimator: str, checkpoint: str = ""
    ) -> dict[str, Any]:
        """Return the files that an estimator can read in addition to answers.

        Estimators that read weights get the questions as each checkpoint is asked them.
        """
        entry = self.config["estimators"][estimator]
        read: dict[str, Any] = {"questions": self.paths.questions.format(dataset=dataset)}
        if entry.get("reads_weights"):
            names = self.study.checkpoints_read(model, estimator, checkpoint)
            if rater := self.study.rater(model, estimator):
                names = list(dict.fromkeys([*names, rater]))
            read["questions"] = self.questions_of_each(model, names, dataset)
            read["checkpoints"] = expand(self.paths.checkpoint, model=model, checkpoint=names)
        if entry.get("compares_answers"):
            uses_model = self.study.compares_by_model and not self.study.has_own_options
            read["entailment_model"] = self.paths.entailment_model if uses_model else []
        if "verifier" in entry:
            wildcards = {"model": model, "dataset": dataset, "verifier": entry["verifier"]}
            read["verified"] = self.paths.verified.format(**wildcards)
        return read

    def estimator_digest(self, estimator: str) -> str:
        """Return the digest of the file of an estimator, which a script imports by its name."""
        function = self.config["estimators"][estimator]["function"]
        file = existing(str(file_of(function)), "correct the estimator's function")
        return code_digest(Path(file), self.root)

    def estimator_prompt(self, estimator: str) -> str:
        """Return an estimator's prompt, or the usual one."""
        entry = self.config["estimators"][estimator]
        if "prompt" not in entry:
            return self.confidence_prompt()
        optional = ["answer", "scale"] if "scale" in entry else ["answer"]
        fields = (["question"], optional) if "asks" in entry else (RATED,)
        return self.read_prompt(entry["prompt"], f"estimators.{estimator}.prompt", *fields)

    def estimation(
        self,
        model: str,
        dataset: str,
        estimator: str,
        checkpoint: str = "",
        answers: str = "own",
    ) -> Config:
        """Return the settings of a job that rates the answers of all checkpoints, or of one."""
        study, entry = self.study, self.config["estimators"][estimator]
        settings = {key: entry[key] for key in UNCHANGED_KEYS if key in entry}
        if rater := study.rater(model, estimator):
            settings |= {"rater": rater, "few_shot": self.few_shot(model, rater, dataset)}
        read = study.checkpoints_read(model, estimator, checkpoint)
        earlier = study.earlier(model)
        settings |= {
            "read": read,
            "earlier": [name for name in earlier if name in read] if checkpoint else earlier,
            "evaluation": [checkpoint] if checkpoint else study.evaluation(model),
        }
        if checkpoint:
            settings["split"] = split_scored(answers)
        else:
            settings["further_asks"] = list(study.splits_rated(estimator))[1:]
            settings["posthoc"] = entry.get("posthoc")
        return {
            "estimator": estimator,
            "function": entry["function"],
            **registration_of(entry["function"]).for_jobs(),
            "dataset": dataset,
            "equivalence": self.config["equivalence"],
            "compares_answers": entry.get("compares_answers", False),
            "sampled": self.config["decoding"]["strategy"] == "sample",
            "prompt": self.estimator_prompt(estimator),
            **settings,
        }

    def asking(self, model: str, checkpoint: str, estimator: str) -> Config:
        """Return how an estimator asks a checkpoint about its answers."""
        entry, decoding = self.config["estimators"][estimator], self.config["decoding"]
        is_served = bool(self.study.api(model, checkpoint))
        on_a_gpu = {key: decoding[key] for key in ("batch_size", "memory_gb")}
        return {
            "prompt": self.estimator_prompt(estimator),
            **entry["asks"],
            "seed": self.draws(model, checkpoint)["seed"],
            "chat": self.study.state(model, checkpoint)["chat"],
            "scale": list(entry.get("scale", {})),
            **({} if is_served else on_a_gpu),
        }

    def replies_read(self, model: str, dataset: str, estimator: str) -> Files:
        """Return the replies of each rated checkpoint; empty if an estimator asks nothing."""
        if "asks" not in self.config["estimators"][estimator]:
            return []
        wildcards = {"model": model, "dataset": dataset, "estimator": estimator}
        rows = self.study.answers_rated(model, estimator)
        return [self.paths.replies.format(**wildcards, **row._asdict()) for row in rows]

    # Evaluation, tables and the page

    def predictions(self, model: str, dataset: str) -> Files:
        """Return the predictions of the study about one model and dataset."""
        rows = [row for row in self.study.evaluated if row[:2] == (model, dataset)]
        return files_of_rows(self.paths.predictions, rows)

    def questions_of_subsets(self, dataset: str) -> Files:
        """Return the questions of a dataset and of its training datasets."""
        names = dict.fromkeys([dataset, *self.study.train_datasets(dataset)])
        return expand(self.paths.questions, dataset=names)

    def shown_on_page(self, pattern: str) -> Files:
        """Fill `pattern` for the answers that the page shows."""
        rows = [] if self.study.chosen["predictions"] else self.study.answered
        return list(dict.fromkeys(files_of_rows(pattern, rows)))

    def weights_on_page(self, pattern: str) -> Files:
        """Fill `pattern` for each checkpoint on the page that is run here."""
        rows = self.study.answered if self.study.runs_models else []
        local_rows = [row for row in rows if not self.study.api(row.model, row.checkpoint)]
        return list(dict.fromkeys(files_of_rows(pattern, local_rows)))

    # Files from elsewhere

    def answer_files(self) -> list[dict[str, str]]:
        """Return the files of the user's answers, and values for columns that they lack."""
        answers = self.study.chosen["answers"]
        return [{"file": answers}] if isinstance(answers, str) else answers

    def answers_wanted(self) -> Config:
        """Return the answers that the study reads, and the needs of its estimators."""
        study, catalogue = self.study, self.config["estimators"]
        functions = {
            name: catalogue[name]["function"]
            for name in study.chosen["estimators"]
            if "function" in catalogue[name]
        }
        return {
            "datasets": list(self.config["datasets"]),
            "answered": [
                dict(zip(("model", "checkpoint", "dataset"), row, strict=True))
                for row in study.checkpoints_asked
            ],
            "needed": {
                m: {c: study.splits_needed(m, c) for c in study.checkpoints(m)}
                for m in study.chosen["models"]
            },
            "needs": {name: registration_of(f).needs for name, f in functions.items()},
        }
