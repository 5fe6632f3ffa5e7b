"""Shared by all rules: the checked config, paths, wildcards, and how rules ask the study."""

import inspect
import os
import re
from pathlib import Path

from persistcal.questions.templates import check_fields
from persistcal.store.files import Digests
from persistcal.store.code import code_digest
from snakemake.exceptions import WorkflowError
from snakemake.settings.types import SharedFSUsage
from study.check import check_config
from study.schema import ConfigError
from study.config_files import over_defaults, refuse_misread
from study.costs import COSTS
from study.requests import request, resampling_mb
from study.needs import file_of
from study.selection import IMPORTED, Answered, Study

SCRIPTS = ROOT / "workflow" / "scripts"
SHARED = {SharedFSUsage.INPUT_OUTPUT, SharedFSUsage.PERSISTENCE, SharedFSUsage.SOURCES}

STORAGE = workflow.storage_settings
if STORAGE.default_storage_provider or not SHARED <= set(STORAGE.shared_fs_usage):
    raise WorkflowError(
        "Jobs of this workflow share caches and saved work in a file system that all of them "
        "see, so neither a default storage nor the transfer of files to each job "
        "(--shared-fs-usage) can take its place; docs/cluster.md says how Kubernetes runs it."
    )

# Snakemake itself would stop with a traceback where it cannot keep its records.
if not os.access(".snakemake" if Path(".snakemake").exists() else ".", os.W_OK):
    raise WorkflowError(
        f"{Path.cwd()} cannot be written by this user, and Snakemake keeps its records there; "
        "run as the user whose folder it is, or give one of your own with --directory."
    )

config = over_defaults(config, ROOT)
try:
    refuse_misread(workflow.configfiles)  # a module's lie in somebody else's
    check_config(config)
except ConfigError as error:
    raise WorkflowError(str(error)) from None

# Downloads go to one cache; a cluster's jobs have no connection and find all of it there.
if config["model_cache"]:
    os.environ.setdefault("HF_HOME", str(Path(config["model_cache"]).resolve()))
if workflow.remote_exec:
    os.environ.update(HF_HUB_OFFLINE="1")

study = Study(config)
MODELS, DATASETS = study.chosen["models"], study.chosen["datasets"]
RESULTS = config["results"]
LOGS = f"{RESULTS}/logs"
if any(
    workflow.modifier.path_modifier.replace_prefix(p, None) != p for p in ("a", LOGS)
):
    raise WorkflowError(
        "The module has a prefix, but jobs also name files in what they write; "
        "leave it out and set `results` in the module's config."
    )
# How models and datasets are printed; estimators' names only where they are shown
PLACES = {kind: study.labels[kind] for kind in ("models", "datasets")}
TABLES = study.tables_made


RULES = workflow.current_basedir  # of this file, and of all others with rules
# An edit of how a file is fetched must not rerun what was computed from it.
FETCH = ("resolve_checkpoint.py", "fetch_checkpoint.py", "fetch_adapter.py")


def digest_of(script):
    """Digest of a script of the workflow and of all that it imports."""
    return code_digest(SCRIPTS / script, ROOT)


def rerun_on_edits():
    """Give each rule the digest of its script as the parameter `code`."""
    for each in workflow.rules:
        ours = (
            each.basedir == RULES and each.script and "code" not in each.params.keys()
        )
        if ours and not each.script.endswith(FETCH):
            each.set_params(code=digest_of(each.script.removeprefix("../scripts/")))


def one_of(names):
    """Regular expression that matches exactly `names`; nothing when there are none."""
    return "|".join(map(re.escape, names)) or "(?!)"


def ask(question):
    """Let a rule ask a method of the study, with the wildcards of the same names."""
    names = list(inspect.signature(question).parameters)

    def answer(wildcards):
        return question(*(wildcards[name] for name in names))

    return answer


def uncompared(question):
    """Like `ask`, but another answer reruns nothing: no function of `input` is compared."""
    answer = ask(question)

    def derived(wildcards, input):
        return answer(wildcards)

    return derived


def for_each(question, pattern):
    """Let a rule read `pattern` for each checkpoint that the study's method names."""
    checkpoints = ask(question)

    def paths(wildcards):
        return expand(pattern, **{**wildcards, "checkpoint": checkpoints(wildcards)})

    return paths


def of_dataset(key, **default):
    """Let a rule ask what the config says under `key` of its dataset."""
    return lookup(f"{{dataset}}/{key}", within=config["datasets"], **default)


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


def reported_page(path, label):
    """The page, one file that needs no other."""
    return reported(path, "page", "Page", page=label)


def of_each(pattern, places):
    """Fill `pattern` for each place: a named tuple of its wildcards."""
    return [pattern.format(**place._asdict()) for place in places]


def find_file(path):
    """Return a file of the user's (working directory) or else of the project's."""
    return next((str(p) for p in (Path(path), ROOT / path) if p.exists()), path)


def existing(path, remedy):
    """Return `path` when it is there; Snakemake's own message would list every output."""
    if not Path(path).exists():
        raise WorkflowError(f"config: {path} does not exist; {remedy}.")
    return path


def contents_of(*paths):
    """Digests of the user's files; their times do not tell, as an older one may come.

    A parameter, and no function of the rule's input: Snakemake would not compare it.
    """
    known = Digests(f"{RESULTS}/.digests")
    return [known.of(Path(path)) for path in paths if Path(path).exists()]


def read_prompt(path, key, *parts):
    """Return the text of the prompt that the config names under `key`.

    Its parts are separated by lines ---; each has needed and optional fields.
    """
    found = Path(find_file(path))
    if not found.exists():
        raise WorkflowError(f"config: {key} is {path}, and there is no such file.")
    prompt = found.read_text(encoding="utf-8")
    texts = prompt.split("\n---\n", len(parts) - 1)
    if len(texts) < len(parts):
        raise WorkflowError(f"config: {key} ({path}) has no line ---; add it.")
    for text, (needed, optional) in zip(texts, parts):
        try:
            check_fields(text, f"config: {key} ({path})", needed, optional)
        except ValueError as error:
            raise WorkflowError(f"{error}.") from None
    return prompt


def shard_of(path, step):
    """Path of one of the shards that `step` is cut into; the whole when it is not."""
    n_shards = config[step]["shards"]
    whole, ending = path.rsplit(".", 1)
    return path if n_shards == 1 else f"{whole}.shard{{shard}}of{n_shards}.{ending}"


def shard_number(wildcards):
    return int(wildcards.get("shard", 0))


# What a job asks a cluster for; `rulename` is filled in by Snakemake. It is what a rule is
# called by whoever uses this workflow as a module; what the rule costs is known by its own.
NAMED = {
    workflow.modifier.avail_rulename(name): name
    for name in [*COSTS, *(f"train_{recipe}" for recipe in study.recipes)]
}


def asked_of(rulename, wildcards, attempt=1):
    return request(config, NAMED[rulename], wildcards, attempt)


def gpus(wildcards, rulename):
    """GPUs of one node; those of several are asked for by node, as `gres`."""
    asked = asked_of(rulename, wildcards)
    return asked.gpu if asked.nodes == 1 else None


def memory(wildcards, rulename, attempt):
    return asked_of(rulename, wildcards, attempt).mem_mb


def runtime(wildcards, rulename, attempt):
    return asked_of(rulename, wildcards, attempt).runtime


def ranks(wildcards, rulename):
    return asked_of(rulename, wildcards).ranks


ON_GPU = {"gpu": gpus, "mem_mb": memory, "runtime": runtime}


RATED = (["question", "answer"], [])  # fields of a prompt about an answer
CONFIDENCE_PROMPT = read_prompt(
    config["prompts"]["confidence"], "prompts.confidence", RATED
)


def confidence_prompt(wildcards):
    """A function, as the braces of a text among the params would be filled in."""
    return CONFIDENCE_PROMPT


# What a connection, a file or a name may make fail is done before anything that takes long.
EARLY = 1000

# Where artifacts lie that several rules make, or that input functions ask for
QUESTIONS = f"{RESULTS}/questions/{{dataset}}.parquet"
CONTEXT = f"{RESULTS}/contexts/{{model}}/{{checkpoint}}/{{dataset}}.parquet"
FACTS = f"{RESULTS}/facts/{{dataset}}.parquet"
CHECKPOINT = f"{RESULTS}/checkpoints/{{model}}/{{checkpoint}}.json"
BEAMS = f"{RESULTS}/beams/{{model}}/{{checkpoint}}/{{dataset}}.parquet"
CLUSTERS = f"{RESULTS}/clusters/{{model}}/{{checkpoint}}/{{dataset}}.parquet"
LABELS = f"{RESULTS}/labels/{{model}}/{{checkpoint}}/{{dataset}}.parquet"
ANSWERS = f"{RESULTS}/answers/{{model}}/{{checkpoint}}/{{dataset}}.parquet"
ADAPTER = (
    f"{RESULTS}/adapters/{{model}}/{{dataset}}/{{recipe}}/{{trained_on}}/seed{{seed}}"
)
SCORES = f"{RESULTS}/scores/{{model}}/{{checkpoint}}/{{dataset}}/{{recipe}}/{{answers}}.parquet"
CHANGED = f"{RESULTS}/changed/{{model}}/{{checkpoint}}/model.safetensors"
PREDICTIONS = f"{RESULTS}/predictions/{{model}}/{{dataset}}/{{estimator}}.parquet"


def questions_asked(model, checkpoint, dataset):
    """The questions as a checkpoint is asked them: after passages, if it has a context."""
    path = CONTEXT if "context" in study.state(model, checkpoint) else QUESTIONS
    return path.format(model=model, checkpoint=checkpoint, dataset=dataset)


def questions_of_each(model, checkpoints, dataset):
    """The questions, and as each of several checkpoints is asked them that has a context."""
    asked = [questions_asked(model, c, dataset) for c in checkpoints]
    return list(dict.fromkeys([QUESTIONS.format(dataset=dataset), *asked]))


wildcard_constraints:
    model=one_of(study.models_made),
    # Of the catalogue: a model may learn facts that the study does not ask for.
    dataset=one_of(config["datasets"]),
    checkpoint=one_of(
        {c for model in MODELS for c in study.known_checkpoints(model)}
        | {verifier["checkpoint"] for verifier in config["verifiers"].values()}
    ),
    verifier=one_of(config["verifiers"]),
    recipe=one_of(study.recipes),
    answers=one_of(
        ["own", "train", "transfer", "evaluation", "earlier", "last_earlier"]
    ),
    estimator=one_of(config["estimators"] if study.estimates else [IMPORTED]),
    table=one_of(study.every_table),
    seed=r"\d+",
    shard=r"\d+",
