"""The three long jobs, on the files of `adapter_files`, ready to be called."""

from adapter_files import SEEDS, adapter_paths, training_job
from cluster_answers import cluster_answers
from generate_beams import generate_beams
from score_answers import score_answers
from tiny_models import TEMPLATE
from train_adapters import train_adapters

from persistcal.store.jobs import Job, execute

NAMES = ["a", "b"]


ABOUT = {"model": "tiny", "checkpoint": "a", "dataset": "atlas", "split": "train"}


def beams_job(study, output, **changes):
    """Decode beams; `changes` can set fields of a `Search` or a `FewShot`."""
    few_shot = {"n_examples": 0, "by_category": False, "chat": ""}
    search = {"n_beams": 3, "max_new_tokens": 6, "draw": None}
    search |= {"batch_size": 2, "memory_gb": 16.0}  # eight are saved together
    for record in (few_shot, search):
        record |= {key: changes.pop(key) for key in set(record) & set(changes)}
    settings = {"backend": "transformers", **ABOUT}
    settings |= {"few_shot": few_shot, "search": search, **changes}
    inputs = {"checkpoint": study / "a.json", "questions": study / "questions.parquet"}
    execute(generate_beams, job_of(inputs, {"beams": output}, settings))


def merge_job(function, study, shards, output, **subject):
    inputs = {"questions": study / "questions.parquet", "shards": list(map(str, shards))}
    execute(function, job_of(inputs, {"merged": output}, ABOUT | subject))


def clusters_job(questions, beams, clusters, model="", **settings):
    inputs = {"questions": questions, "beams": beams, "entailment_model": model or []}
    settings = {"weighting": "softmax", "normalisation": "none", **ABOUT, **settings}
    execute(cluster_answers, job_of(inputs, {"clusters": clusters}, settings))


def job_of(inputs, outputs, settings):
    inputs, outputs = (
        {
            name: files if isinstance(files, list) else str(files)
            for name, files in paths.items()
        }
        for paths in (inputs, outputs)
    )
    return Job(inputs, outputs, settings, threads=1)


def scores_job(study, output, **changes):
    key = {"recipe": "both", "trained_on": "all", "train_dataset": "atlas"}
    scorings = [{"answers_of": name, **key, "seed": seed} for name in NAMES for seed in SEEDS]
    scoring = {"split": "test", "prompt": TEMPLATE, "batch_size": 2, "head": "float32"}
    scoring |= {"dtype": "stored"}
    scoring |= {name: changes.pop(name) for name in set(scoring) & set(changes)}
    inputs = {
        "checkpoint": str(study / "a.json"),
        "questions": str(study / "questions.parquet"),
        "clusters": [str(study / f"clusters/{name}.parquet") for name in NAMES],
        "adapters": adapter_paths(study / "adapters") * 2,
    }
    settings = {**ABOUT, "recipe": "both", "answers": "own", **changes}
    settings |= {"scorings": scorings, "how": scoring}
    execute(score_answers, job_of(inputs, {"scores": output}, settings))


def adapters_job(study, output, **changes):
    """Train adapters; `output` is the first seed's file, next to other seeds' folders."""
    execute(train_adapters, training_job(study, NAMES, output.parents[1], **changes))
