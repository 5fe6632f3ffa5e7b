"""Shared by all rules: the checked config, paths, wildcards and resources."""

import copy
import os
import re
import sys
from pathlib import Path

from persistcal.questions.splits import AGAIN, FURTHER_ASKS, HALVES, SPLITS
from persistcal.store.code import code_digest
from snakemake.exceptions import WorkflowError
from snakemake.settings.types import DeploymentMethod, SharedFSUsage
from study.answers import Answered
from study.check import check_config
from study.config_files import limited, over_defaults, refuse_misread
from study.inputs import Inputs, existing
from study.preflight import preflight
from study.record import read_pins
from study.paths import (
    files_of_job,
    files_of_rows,
    one_of,
    settings_of_job,
    without_rerun,
)
from study.resources import MINUTES, JobResources, memory_to_resample
from study.schema import ConfigError, without_defaults
from study.study import IMPORTED, Study

SCRIPTS = ROOT / "workflow" / "scripts"
SHARED = {SharedFSUsage.INPUT_OUTPUT, SharedFSUsage.PERSISTENCE, SharedFSUsage.SOURCES}

STORAGE = workflow.storage_settings
if STORAGE.default_storage_provider or not SHARED <= set(STORAGE.shared_fs_usage):
    raise WorkflowError(
        "Jobs of this workflow share caches and saved work in a file system that all of them "
        "see, so neither a default storage nor the transfer of files to each job "
        "(--shared-fs-usage) can take its place; docs/cluster.md says how Kubernetes runs it."
    )

# Snakemake itself stops with a traceback if it cannot keep its records.
if not os.access(".snakemake" if Path(".snakemake").exists() else ".", os.W_OK):
    raise WorkflowError(
        f"{Path.cwd()} cannot be written by this user, and Snakemake keeps its records there; "
        "run as the user whose folder it is, or give one of your own with --directory."
    )

GIVEN = copy.deepcopy(config)
try:
    config = over_defaults(config, ROOT)
    refuse_misread(workflow.configfiles)  # a module's files are another project's
    check_config(config)
except ConfigError as error:
    raise WorkflowError(str(error)) from None
config, LEFT_OUT = limited(without_defaults(config))

# Downloads go to one cache, because jobs of a cluster have no connection.
if config["model_cache"]:
    os.environ.setdefault("HF_HOME", str(Path(config["model_cache"]).resolve()))
if workflow.remote_exec:
    os.environ.update(HF_HUB_OFFLINE="1")

study = Study(config)
inputs = Inputs(study, ROOT)
paths = inputs.paths
inputs.confidence_prompt()  # refused here if it cannot be read
MODELS = study.chosen["models"]
DATASETS = list(dict.fromkeys(pair.dataset for pair in study.model_datasets))
RESULTS, LOGS = paths.results, paths.logs
if any(
    workflow.modifier.path_modifier.replace_prefix(p, None) != p for p in ("a", LOGS)
):
    raise WorkflowError(
        "The module has a prefix, but jobs also name files in what they write; "
        "leave it out and set `results` in the module's config."
    )
# Display names, but not of estimators, which only rules that show them receive
LABELS = {kind: study.labels[kind] for kind in ("models", "datasets")}
TABLES = list(study.tables)
LEFT_OUT += study.tables_left_out

RULES = workflow.current_basedir  # the folder of this file and of most other rule files
OWN_SCRIPTS = {
    os.path.normpath(str(RULES)): SCRIPTS,
    os.path.normpath(str(RULES.join("../../reproduce/rules"))): ROOT
    / "reproduce"
    / "scripts",
}
# Editing the code that fetches a file must not rerun jobs that read the file.
FETCH = ("resolve_checkpoint.py", "fetch_checkpoint.py", "fetch_adapter.py")


def complete_rules():
    """Give each rule its log, a benchmark, an environment and `code`, where it has none.

    Logs have the name of the script and the wildcards of the first output. Rules with an
    environment of their own run models and are timed. `code` is the digest of the script and
    of all its imports, so that an edit of these makes the outputs again. A rule states
    `further_code` itself, of a module that the script imports by a name in the config.
    """
    for each in workflow.rules:
        scripts = OWN_SCRIPTS.get(os.path.normpath(str(each.basedir)))
        if not (scripts and each.script):
            continue
        script = scripts / each.script.removeprefix("../scripts/")
        if script.name not in FETCH:
            each.set_params(code=code_digest(script, ROOT))
        path, shard, number = str(each.output[0]).partition(".shard")
        found = dict.fromkeys(re.findall(r"{(\w+)", path))
        wildcards = [f"{{{name}}}" for name in found if name in each.wildcard_names]
        log = "/".join([LOGS, script.stem, *wildcards])
        log += shard + number.partition(".")[0]
        each.log_modifier = each.benchmark_modifier = workflow.modifier.path_modifier
        if not each.log:
            each.set_log(f"{log}.log")
        if each.conda_env and not each.benchmark:
            each.benchmark = f"{log}.tsv"
        each.conda_env = each.conda_env or "../../envs/cpu.yaml"


def dataset_setting(key, **default):
    """Return the config's `datasets.<dataset>.<key>` for each job."""
    return lookup(f"{{dataset}}/{key}", within=config["datasets"], **default)


def checkpoint_setting(key, default=None):
    """Return the config's key of a checkpoint, or of its model, for each job."""

    def value(wildcards):
        state = study.state(wildcards.model, wildcards.checkpoint)
        return state.get(key, default)

    return value


EVALUATED = {model: study.evaluation(model) for model in MODELS}
ALL = workflow.modifier.avail_rulename("all")  # a module can rename it


def with_analyses(added, always=()):
    """Return files that are `always` made, and files of analyses that the target `all` adds.

    Other targets read the files of `added` that exist, so that they keep what `all` has made.
    """

    def present(wildcards):
        is_asked = ALL in workflow.dag_settings.targets
        return [*always, *(p for p in added if is_asked or Path(p).exists())]

    return present


def reported(path, caption, category, **labels):
    """A table or figure that `snakemake --report` shows."""
    caption = f"../report/{caption}.rst"
    return report(path, caption=caption, category=category, labels=labels)


def reported_table(name, caption=None):
    """The files of a table, as LaTeX and as CSV."""
    path, caption = f"{RESULTS}/tables/{name}", caption or name
    return {
        "tex": reported(f"{path}.tex", caption, "Tables", table=name, format="LaTeX"),
        "csv": reported(f"{path}.csv", caption, "Tables", table=name, format="CSV"),
    }


def shard_of(path, step):
    """Return the path of a shard of `step`; the path itself without shards."""
    n_shards = config[step]["shards"]
    whole, ending = path.rsplit(".", 1)
    return path if n_shards == 1 else f"{whole}.shard{{shard}}of{n_shards}.{ending}"


def shard_number(wildcards):
    return int(wildcards.get("shard", 0))


def with_seeds(name, settings):
    """Return the file `name` of all adapters that a job of a recipe trains."""
    pattern = f"{paths.adapter}/{name}"
    return expand(pattern, seed=settings["seeds"], allow_missing=True)


# A module can rename its rules; resources follow from the original name of a rule.
NAMED = {
    workflow.modifier.avail_rulename(name): name
    for name in [*MINUTES, *(f"train_{recipe}" for recipe in study.recipes)]
}
resources = JobResources(study, NAMED)
ON_GPU = {name: resources.request_of(name) for name in ("gpu", "mem_mb", "runtime")}


# Jobs that can fail because of a connection, a file or a name run before long jobs.
EARLY = 1000


def jobs_of_run(is_planned=True):
    """The rule and the wildcards of each job that runs, or of each other one."""
    return [
        (NAMED.get(job.rule.name, job.rule.name), job.wildcards_dict)
        for job in workflow.dag.jobs
        if workflow.dag.needrun(job) == is_planned
    ]


def found_before_start(imports=False):
    """What the run costs, and what a person must provide for it."""
    rows = jobs_of_run(), jobs_of_run(is_planned=False)
    by_conda = DeploymentMethod.CONDA in workflow.deployment_settings.deployment_method
    how = {"imports": imports, "by_conda": by_conda}
    return preflight(inputs, *rows, sys.argv, LEFT_OUT, **how)


wildcard_constraints:
    model=one_of(study.models_made),
    # All datasets of the catalogue: a model can learn facts that the study does not ask for.
    dataset=one_of(config["datasets"]),
    checkpoint=one_of(
        {c for model in MODELS for c in study.known_checkpoints(model)}
        | {verifier["checkpoint"] for verifier in config["verifiers"].values()}
    ),
    verifier=one_of(config["verifiers"]),
    recipe=one_of(study.recipes),
    answers=one_of(
        [
            "own",
            "train",
            *FURTHER_ASKS,
            "transfer",
            "evaluation",
            "earlier",
            "last_earlier",
        ]
    ),
    estimator=one_of(config["estimators"] if study.estimates else [IMPORTED]),
    table=one_of(study.tables),
    seed=r"\d+",
    shard=r"\d+",
    split=one_of(SPLITS),
