"""Shared by all rules: the checked config, folders and wildcards."""

import os
import re
from pathlib import Path

from persistcal.report.layout import comparison_blocks, expand_tables
from persistcal.judge.queue import human_labels_digest
from persistcal.provenance import code_digest
from snakemake.exceptions import WorkflowError
from study import selection
from study.check import ConfigError, check_config
from study.requests import request

ROOT = Path(workflow.basedir)
SCRIPTS = ROOT / "workflow" / "scripts"

try:
    check_config(config)
except ConfigError as error:
    raise WorkflowError(str(error)) from None

# Downloads go to one cache; a cluster's jobs have no connection and find all of it there.
if config["model_cache"]:
    os.environ.setdefault("HF_HOME", str(Path(config["model_cache"]).resolve()))
if workflow.remote_exec:
    os.environ.update(HF_HUB_OFFLINE="1")

STUDY = config["study"]
MODELS, DATASETS = STUDY["models"], STUDY["datasets"]
R = config["results"]
LOGS = f"{R}/logs"
ANALYSES = config["analyses"]

RUNS_MODELS = selection.runs_models(config)

# What the default target evaluates lies in the results folder itself, what only
# `all` adds in one below it. Imported predictions are all in one place.
FURTHER = f"{R}/further"
ADDED = selection.added(config)
if RUNS_MODELS:
    PARTS = {R: STUDY, FURTHER: ADDED}
else:
    shown = dict.fromkeys(["all_estimators", *STUDY["tables"], *ADDED["tables"]])
    PARTS = {R: {"tables": list(shown)}, FURTHER: {"tables": []}}
DATASETS_OF = {R: DATASETS, FURTHER: DATASETS + ADDED["datasets"]}

TRAIN_DATASETS = {
    d: config["datasets"][d].get("train_datasets", []) for d in DATASETS_OF[FURTHER]
}
EVALUATION = {m: config["models"][m]["evaluation"] for m in MODELS}
LABELS = {
    "models": {m: config["models"][m].get("label", m) for m in MODELS},
    "datasets": {d: config["datasets"][d].get("label", d) for d in TRAIN_DATASETS},
    "estimators": {
        e: about.get("label", e) for e, about in config["estimators"].items()
    },
}


def digest_of(script):
    """Digest of a script of the workflow and of all that it imports."""
    return code_digest(SCRIPTS / script, ROOT)


def find_file(path):
    """Return a file of the user's (working directory) or else of the project's."""
    return next((str(p) for p in (Path(path), ROOT / path) if p.exists()), path)


def read_prompt(path, key):
    found = Path(find_file(path))
    if not found.exists():
        raise WorkflowError(f"config: {key} is {path}, and there is no such file.")
    return found.read_text(encoding="utf-8")


def one_of(names):
    """Regular expression that matches exactly `names`; nothing when there are none."""
    return "|".join(map(re.escape, names)) or "(?!)"


def shard_of(path, step):
    """Path of one of the shards that `step` is cut into; the whole when it is not."""
    n_shards = config[step]["shards"]
    whole, ending = path.rsplit(".", 1)
    return path if n_shards == 1 else f"{whole}.shard{{shard}}of{n_shards}.{ending}"


wildcard_constraints:
    part=one_of(PARTS),
    model=one_of(selection.models(config)),
    # Of the catalogue: a model may learn facts that the study does not ask for.
    dataset=one_of(config["datasets"]),
    checkpoint=one_of(
        {c for model in MODELS for c in selection.group(config, model, "all")}
        | {verifier["checkpoint"] for verifier in config["verifiers"].values()}
    ),
    verifier=one_of(config["verifiers"]),
    recipe=one_of(config["recipes"]),
    estimator=one_of(config["estimators"]),
    table=one_of(config["tables"]),
    seed=r"\d+",
    shard=r"\d+",


CONFIDENCE_PROMPT = read_prompt(config["prompts"]["confidence"], "prompts.confidence")

# How a paid judge is reached and what it may cost is no parameter: it reruns nothing.
VERDICT = {}
if config["judge"]["backend"] != "lexical":
    VERDICT = {
        "model": config["judge"]["model"],
        "prompt": read_prompt(config["prompts"]["judge"], "prompts.judge"),
        "request": config["judge"].get("request", {}),
    }

# Where artifacts lie: those that functions ask for, or that are made or imported.
QUESTIONS = f"{R}/questions/{{dataset}}.parquet"
FACTS = f"{R}/facts/{{dataset}}.parquet"
CHECKPOINT = f"{R}/checkpoints/{{model}}/{{checkpoint}}.json"
WEIGHTS = f"{R}/pretrained/{{model}}/{{checkpoint}}/model.safetensors"
BEAMS = f"{R}/beams/{{model}}/{{checkpoint}}/{{dataset}}.parquet"
CLUSTERS = f"{R}/clusters/{{model}}/{{checkpoint}}/{{dataset}}.parquet"
JUDGED = f"{R}/labels/{{model}}/{{checkpoint}}/{{dataset}}.parquet"
VERDICTS = f"{R}/verdicts/{{verifier}}/{{model}}/{{dataset}}.parquet"
VERIFIER_ADAPTER = f"{R}/verifiers/{{verifier}}/adapter.json"
ADAPTER = f"{R}/adapters/{{model}}/{{dataset}}/{{recipe}}/{{trained_on}}/seed{{seed}}"
CONFIDENCES = f"{R}/confidences/{{model}}/{{dataset}}/{{estimator}}.parquet"
SCORES = "{part}/scores/{model}/{checkpoint}/{dataset}.parquet"
PREDICTIONS = "{part}/predictions/{model}/{dataset}.parquet"
METRICS_CSV = "{part}/metrics.csv"
SIGNIFICANCE_CSV = "{part}/significance.csv"
ENTAILMENT_MODEL = f"{R}/entailment/model.json"
JUDGE = f"{R}/judge"
CONSULTED = f"{JUDGE}/consulted/{{model}}/{{checkpoint}}/{{dataset}}.csv"
