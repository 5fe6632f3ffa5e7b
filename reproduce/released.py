"""Compare a study with the paper: settings that differ, common cells, parts of the release."""

import csv
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from persistcal.store.files import sha256
from study.checkpoints import Config
from study.config_files import over_defaults
from study.study import Study

CATALOGUES = ("models", "datasets")  # only the study's entries are compared
NOT_THE_PAPERS = "not the paper's study"
WITHOUT_NUMBERS = re.compile(  # keys of outputs, machines and costs, which change no number
    r"""(results | tables
    | study\.(archive|complete_tables|datasets|estimators|models|source|tables)
    | analyses\.(audit|confounds|questions) | analyses\.\w+\.models
    | api | gpu_gb | gpus_per_node | model_cache | rank_timeout_min
    | decoding\.(memory_gb|python) | \w+\.(batch_size|micro_batch|shards)
    | judge\.(max|price)_\w+
    | judge\.(api_key_env|base_url|batch_requests|concurrency|currency|poll_s|retries|timeout_s)
    )(\..*)? | .*\.label""",
    re.VERBOSE,
)
# Keys of steps that an imported release has done
BY_THE_AUTHORS = ["decoding", "judge", "equivalence", "scoring", "training", "prompts"]
BY_THE_AUTHORS += ["recipes", "models", "verifiers"]


def settings_compared(config: Config, project: Path) -> str:
    """Return the keys of `config` that differ from the paper's, `study.limit` first.

    Prompts and lists of categories are compared by content. If a number depends on a key, the
    text begins with `NOT_THE_PAPERS`. Steps that produced imported results are not compared.
    """
    study, paper = config["study"], over_defaults({}, project)
    if study["predictions"]:
        return f"study.predictions: {study['predictions']}"
    used = {kind: {name: config[kind][name] for name in study[kind]} for kind in CATALOGUES}
    same = {kind: {name: paper[kind].get(name) for name in study[kind]} for kind in CATALOGUES}
    values = dict(_differences({**config, **used}, {**paper, **same}, project))
    if study["source"] == "release":
        values = {k: v for k, v in values.items() if k.partition(".")[0] not in BY_THE_AUTHORS}
    texts = [f"{k}: {values[k]}" for k in sorted(values, key=lambda k: k != "study.limit")]
    is_other = any(not WITHOUT_NUMBERS.fullmatch(key) for key in values)
    return "; ".join([NOT_THE_PAPERS] * is_other + texts) or "the paper's"


def _differences(
    our_values: Any,  # noqa: ANN401
    paper: Any,  # noqa: ANN401
    project: Path,
    *path: str,
) -> Iterator[tuple[str, str]]:
    """Yield the key and the study's value of each setting that differs."""
    if isinstance(our_values, Mapping) and isinstance(paper, Mapping):
        for key in dict.fromkeys([*our_values, *paper]):
            yield from _differences(
                our_values.get(key), paper.get(key), project, *path, str(key)
            )
    elif isinstance(our_values, str) and (path[0] == "prompts" or path[-1] == "categories"):
        file = next((p for p in (Path(our_values), project / our_values) if p.exists()), None)
        content = sha256(file)[:12] if file else "no such file"
        if content != sha256(project / str(paper))[:12]:
            yield ".".join(path), f"{our_values} ({content})"
    elif paper is None and path[0] in CATALOGUES and len(path) == 2:
        yield ".".join(path), "not in the paper's config"
    elif our_values != paper:
        yield ".".join(path), json.dumps(our_values)


def shares_cells(labels: Mapping[str, Mapping[str, str]], printed: Path) -> bool:
    """Return whether the file `printed` has a number about a model and dataset of a study.

    Models and datasets are compared by their display names, `labels`.
    """
    display_names = set(labels["models"].values()), set(labels["datasets"].values())
    with printed.open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file)
        return any(
            row["model"] in display_names[0] and row["eval_dataset"] in display_names[1]
            for row in rows
        )


def release_model(study: Study, name: str) -> Config:
    """Return the repository of a model and its revisions by checkpoint."""
    described = study.described(name)
    revisions = {c: entry["revision"] for c, entry in described.items()}
    groups = ("earlier", "evaluation")
    return {
        "repo": study.config["models"][name]["repo"],
        **{g: {c: revisions[c] for c in study.group(name, g)} for g in groups},
    }


def release_dataset(study: Study, name: str) -> Mapping[str, Any]:
    """Return the splits of a dataset of the release, and its training datasets."""
    splits = ("train", "test", "train_datasets")
    return {k: value for k, value in study.config["datasets"][name].items() if k in splits}
