"""Imports a release as the workflow does."""

from itertools import product

import pandas as pd
from import_release import import_release
from release_archive import DATASETS, MODELS, SEEDS

from persistcal.store import artifacts
from persistcal.store.jobs import Job, execute
from reproduce.release_tables import release_tables

RECIPES = ["transfer", "transfer_random"]
POSTHOC = {"self_consistency_posthoc": "isotonic", "gcm_posthoc": "isotonic"}


def tables_of(tree, models, datasets, posthoc=POSTHOC):
    """Return the tables of an unpacked release by name and subject, splits together."""
    options = {"recipes": RECIPES, "seeds": SEEDS, "posthoc": posthoc}
    made, tables = release_tables(tree, models=models, datasets=datasets, **options), {}
    for table, subject, frame in made:
        artifacts.check(frame[table.schema.names], table, table.name)
        key = (table.name, *(value for name, value in subject.items() if name != "split"))
        tables[key] = pd.concat([tables[key], frame]) if key in tables else frame
    return tables


def run_import(root, archive, digest, models=MODELS, datasets=DATASETS):
    """Import the archive into `root`; return the list of missing files."""
    asked = [
        {"model": model, "checkpoint": checkpoint, "dataset": dataset}
        for model, subject in models.items()
        for checkpoint in {**subject["earlier"], **subject["evaluation"]}
        for dataset in datasets
    ]
    answered = [
        {**place, "split": split}
        for place in asked
        for split in ("train", "test")
        if split in datasets[place["dataset"]]
    ]
    of_answers = "{model}/{checkpoint}/{dataset}/{split}"
    places = {
        "questions": ("{dataset}", [{"dataset": dataset} for dataset in datasets]),
        **{kind: (of_answers, answered) for kind in ("beams", "clusters", "labels")},
        "scores": (
            "{model}/{checkpoint}/{dataset}/{recipe}",
            [{**a, "answers": "transfer", "recipe": r} for a, r in product(asked, RECIPES)],
        ),
        "predictions": (
            "{model}/{dataset}",
            [{"model": model, "dataset": dataset} for model in models for dataset in datasets],
        ),
        "answers": (
            of_answers,
            [
                place
                for place in answered
                if place["checkpoint"] in models[place["model"]]["evaluation"]
                and place["split"] == "test"
            ],
        ),
    }
    files = {
        name: [str(root / name / f"{path.format(**subject)}.parquet") for subject in abouts]
        for name, (path, abouts) in places.items()
    }
    settings = {f"{name}_of": abouts for name, (_, abouts) in places.items()}
    settings |= {"models": models, "datasets": datasets, "posthoc": POSTHOC}
    missing = str(root / "release/missing.csv")
    job = Job(
        {"archive": str(archive), "digest": str(digest)},
        {**files, "missing": missing},
        {**settings, "recipes": RECIPES, "seeds": SEEDS},
        threads=1,
    )
    execute(import_release, job)
    return pd.read_csv(missing)
