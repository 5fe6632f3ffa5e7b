"""Imports a release as the workflow does."""

from itertools import product

import pandas as pd
from import_release import import_release
from release_archive import DATASETS, MODELS, SEEDS

RECIPES = ["transfer", "transfer_random"]
POSTHOC = {"self_consistency_posthoc": "isotonic", "gcm_posthoc": "isotonic"}


def run_import(
    root, archive, digest, models=MODELS, datasets=DATASETS, backbones=None, posthoc=POSTHOC
):
    """Import the archive into `root`; return the folder and the list of what is missing."""
    backbones = backbones or {}
    cells = [
        (model, checkpoint, dataset)
        for model, about in {**models, **backbones}.items()
        for checkpoint in {**about["earlier"], **about["evaluation"]}
        for dataset in datasets
    ]
    kinds = ("beams", "clusters", "labels")
    import_release(
        archive,
        digest,
        [root / f"questions/{dataset}.parquet" for dataset in datasets],
        *([root / f"{kind}/{m}/{c}/{d}.parquet" for m, c, d in cells] for kind in kinds),
        [
            root / f"scores/{m}/{c}/{d}/{recipe}.parquet"
            for m, c, d in cells
            if m in models
            for recipe in RECIPES
        ],
        [root / f"predictions/{m}/{d}.parquet" for m, d in product(models, datasets)],
        [
            root / f"answers/{m}/{c}/{d}.parquet"
            for m, d in product(models, datasets)
            for c in models[m]["evaluation"]
        ],
        root / "release/missing.csv",
        models=models,
        backbones=backbones,
        datasets=datasets,
        recipes=RECIPES,
        seeds=SEEDS,
        posthoc=posthoc,
    )
    return pd.read_csv(root / "release/missing.csv")
