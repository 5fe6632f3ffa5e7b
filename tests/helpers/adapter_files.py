"""Files that adapters are trained from, of a few tiny checkpoints."""

import numpy as np
import pandas as pd
from answer_tables import questions_table
from records import write_record
from tiny_models import TEMPLATE, save_tiny

from persistcal.store import artifacts
from persistcal.store.jobs import Job

ANSWERS = ("Norway", "Peru, South America")
SEEDS = [17, 18]


def write_checkpoints(folder, names, layers=2, **sizes):
    """Write checkpoints `names` with equal answers and different labels to `folder`."""
    questions = questions_table(**sizes)
    values = {"dataset": "atlas"}
    artifacts.write(questions, folder / "questions.parquet", artifacts.QUESTIONS, values=values)
    for seed, name in enumerate(names):
        save_tiny(folder / name, seed=seed, layers=layers)
        write_record(folder / name, folder / f"{name}.json")
        rows = [
            (i, c, answer, 0.6 - 0.3 * c, [answer])
            for i in questions["question_id"]
            for c, answer in enumerate(ANSWERS)
        ]
        clusters = pd.DataFrame(rows, columns=artifacts.CLUSTERS.schema.names)
        values |= {"model": "tiny", "checkpoint": name, "split": "train"}
        options = {"values": values}
        path = folder / f"clusters/{name}.parquet"
        artifacts.write(clusters, path, artifacts.CLUSTERS, **options)
        right = np.where(clusters["cluster"] == seed % 2, "correct", "incorrect")
        labels = clusters[["question_id", "cluster"]].assign(label=right, source="lexical")
        artifacts.write(labels, folder / f"labels/{name}.parquet", artifacts.LABELS, **options)


def adapter_paths(folder, seeds=SEEDS):
    return [str(folder / f"seed{seed}" / "adapter_model.safetensors") for seed in seeds]


def training_job(folder, names, to, seeds=SEEDS, **changes):
    """Return a job of train_adapters; `changes` can set keys of all three records."""
    records = {
        "plan": {
            **{"checkpoints": names, "sources": names, "data": "own", "labels": "judged"},
            **{"n_answers": 2, "prompt": TEMPLATE},
        },
        "design": {"lora_rank": 4, "alpha": 8, "head": "float32", "dtype": "stored"},
        "optimisation": {"lr": 1e-3, "epochs": 2, "batch_size": 5, "micro_batch": 32},
    }
    for record in records.values():
        record |= {key: changes.pop(key) for key in set(record) & set(changes)}
    labels = {"model": "tiny", "dataset": "atlas", "recipe": "both", "trained_on": "all"}
    inputs = {
        "checkpoints": [str(folder / f"{name}.json") for name in names],
        "questions": str(folder / "questions.parquet"),
        "clusters": [str(folder / f"clusters/{name}.parquet") for name in names],
        "labels": [str(folder / f"labels/{name}.parquet") for name in names],
    }
    outputs = {
        "adapters": adapter_paths(to, seeds),
        "configs": [str(to / f"seed{seed}/adapter_config.json") for seed in seeds],
        "training": [str(to / f"seed{seed}/training.parquet") for seed in seeds],
    }
    training_of = [{"seed": seed} for seed in seeds]
    settings = {**labels, **records, "training_of": training_of, **changes}
    return Job(inputs, outputs, settings, threads=1)
