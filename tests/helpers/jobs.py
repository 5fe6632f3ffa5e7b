"""The three long jobs, on the files of `adapter_files`, ready to be called."""

from adapter_files import SEEDS, adapter_paths, training_job
from generate_beams import generate_beams
from score_answers import score_answers
from tiny_models import TEMPLATE
from train_adapters import train_adapters

from persistcal.store.jobs import execute

NAMES = ["a", "b"]


def beams_job(study, output, **changes):
    settings = {
        "splits": ["train", "test"],
        "few_shot": 0,
        "few_shot_by_category": False,
        "n_beams": 3,
        "max_new_tokens": 6,
        "batch_size": 2,  # eight are saved together
        "threads": 1,
    }
    paths = study / "a.json", study / "questions.parquet", output
    generate_beams(*map(str, paths), **settings | changes)


def scores_job(study, output, **changes):
    key = {"recipe": "both", "trained_on": "all", "train_dataset": "atlas"}
    adapters = [{"answers_of": name, **key, "seed": seed} for name in NAMES for seed in SEEDS]
    score_answers(
        str(study / "a.json"),
        str(study / "questions.parquet"),
        [str(study / f"clusters/{name}.parquet") for name in NAMES],
        adapter_paths(study / "adapters") * 2,
        str(output),
        **{"answers_of": NAMES, "adapters": adapters, "split": "test", "prompt": TEMPLATE}
        | {"batch_size": 2, "head": "float32", "precision": "stored", "threads": 1}
        | changes,
    )


def adapters_job(study, output, **changes):
    """`output` is the weights of the first seed; those of the others are beside its folder."""
    execute(train_adapters, training_job(study, NAMES, output.parents[1], **changes))
