"""Paths of the files that several rules name, and how rules call typed functions.

Parameters of the functions receive the wildcards of the same names.
"""

import inspect
import re
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from snakemake.io import expand

# Files of a checkpoint made by the workflow, besides its weights
MODEL_FILES = "config.json generation_config.json tokenizer.json tokenizer_config.json".split()


class Paths:
    """Patterns of files below the folder of results, with their wildcards in braces."""

    def __init__(self, results: str) -> None:
        self.results = results
        self.logs = f"{results}/logs"
        self.questions = f"{results}/questions/{{dataset}}.parquet"
        self.facts = f"{results}/facts/{{dataset}}.parquet"
        self.given_labels = f"{results}/given_labels/{{dataset}}.parquet"
        self.checkpoint = f"{results}/checkpoints/{{model}}/{{checkpoint}}.json"
        self.entailment_model = f"{results}/entailment/model.json"

        pretrained = f"{results}/pretrained/{{model}}/{{checkpoint}}"
        self.weights = f"{pretrained}/model.safetensors"
        further = [*MODEL_FILES, "optimizer.safetensors"]
        self.beside_weights = [f"{pretrained}/{name}" for name in further]
        changed = f"{results}/changed/{{model}}/{{checkpoint}}"
        self.changed = f"{changed}/model.safetensors"
        self.beside_changed = [f"{changed}/{name}" for name in MODEL_FILES]

        answered = "{model}/{checkpoint}/{dataset}"
        self.contexts = f"{results}/contexts/{answered}.parquet"
        # A file per split, so that a target makes only the splits that it reads
        self.answered = f"{answered}/{{split}}"
        self.beams = f"{results}/beams/{self.answered}.parquet"
        self.clusters = f"{results}/clusters/{self.answered}.parquet"
        self.labels = f"{results}/labels/{self.answered}.parquet"
        self.answers = f"{results}/answers/{self.answered}.parquet"
        self.replies = f"{results}/replies/{self.answered}/{{estimator}}.parquet"
        self.scores = f"{results}/scores/{answered}/{{recipe}}/{{answers}}.parquet"
        self.consulted = f"{results}/judge/consulted/{self.answered}.csv"

        trained = "{model}/{dataset}/{recipe}/{trained_on}/seed{seed}"
        self.adapter = f"{results}/adapters/{trained}"
        self.verified = f"{results}/verified/{{verifier}}/{{model}}/{{dataset}}.parquet"
        self.verifier_adapter = f"{results}/verifiers/{{verifier}}/adapter.json"

        evaluated = "{model}/{dataset}/{estimator}.parquet"
        self.confidences = f"{results}/confidences/{evaluated}"
        self.predictions = f"{results}/predictions/{evaluated}"
        self.unsaid = f"{results}/unsaid/{evaluated}"
        self.metrics = f"{results}/metrics/{evaluated}"
        self.replicates = f"{results}/replicates/{evaluated}"
        self.intervals = f"{results}/intervals/{evaluated}"
        self.contrast_members = f"{results}/contrast_members/{{model}}/{{dataset}}.parquet"
        self.contrast_sets = f"{results}/contrast_sets/{{model}}/{{dataset}}.parquet"


Function = Callable[..., Any]


def one_of(names: Iterable[str]) -> str:
    """Return a regular expression that matches exactly `names`."""
    return "|".join(map(re.escape, names)) or "(?!)"


def settings_of_job(function: Function) -> Function:
    """Call `function` for each job; parameters receive the wildcards of the same names."""
    names = list(inspect.signature(function).parameters)

    def call(wildcards: Any) -> Any:  # noqa: ANN401
        return function(**{name: wildcards[name] for name in names if name in wildcards.keys()})

    return call


def files_of_job(function: Function, pattern: str = "", **fixed: str | list[str]) -> Function:
    """Return the files that `function` returns for a job, called like `settings_of_job`.

    With a `pattern` it returns checkpoints or named tuples, and the pattern is filled for each.
    `fixed` contains further wildcards of the pattern, such as the split.
    """
    returned = settings_of_job(function)

    def paths(wildcards: Any) -> list[str]:  # noqa: ANN401
        rows = [
            row._asdict() if hasattr(row, "_asdict") else {"checkpoint": row}
            for row in returned(wildcards)
        ]
        return [p for row in rows for p in expand(pattern, **{**wildcards, **fixed, **row})]

    return paths if pattern else returned


def files_of_rows(pattern: str, rows: Iterable[NamedTuple]) -> list[str]:
    """Fill `pattern` for each row, a named tuple of the wildcards."""
    return [pattern.format(**row._asdict()) for row in rows]


def without_rerun(value: Any) -> Function:  # noqa: ANN401
    """Pass a value, or a function as `settings_of_job`, as a parameter that reruns nothing.

    Snakemake does not compare parameters that are functions of `input`.
    """
    call = settings_of_job(value) if callable(value) else None

    def derive(wildcards: Any, input: Any) -> Any:  # noqa: ANN401
        return call(wildcards) if call else value

    return derive
