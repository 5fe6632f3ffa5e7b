"""Files that adapters are trained from, of a few tiny checkpoints."""

import numpy as np
import pandas as pd
from answer_tables import questions_table
from records import write_record
from tiny_models import TEMPLATE, tiny_model, tiny_tokenizer

from persistcal.store import artifacts

ANSWERS = ("Norway", "Peru, South America")
SEEDS = [17, 18]


def write_checkpoints(folder, names, layers=2, **sizes):
    """Write `names`, whose answers are the same and whose labels differ, to `folder`."""
    questions = questions_table(**sizes)
    artifacts.write(questions, folder / "questions.parquet", artifacts.QUESTIONS)
    for seed, name in enumerate(names):
        tiny_model(seed=seed, layers=layers).save_pretrained(folder / name)
        tiny_tokenizer().save_pretrained(folder / name)
        write_record(folder / name, folder / f"{name}.json")
        rows = [
            (i, c, answer, 0.6 - 0.3 * c, [answer])
            for i in questions["question_id"]
            for c, answer in enumerate(ANSWERS)
        ]
        clusters = pd.DataFrame(rows, columns=artifacts.CLUSTERS.schema.names)
        artifacts.write(clusters, folder / f"clusters/{name}.parquet", artifacts.CLUSTERS)
        right = np.where(clusters["cluster"] == seed % 2, "correct", "incorrect")
        labels = clusters[["question_id", "cluster"]].assign(label=right, source="lexical")
        artifacts.write(labels, folder / f"labels/{name}.parquet", artifacts.LABELS)


def adapter_paths(folder):
    return [str(folder / f"seed{seed}" / "adapter_model.safetensors") for seed in SEEDS]


def training_call(folder, names, to, **changes):
    """Positional and keyword arguments of the script train_adapters."""
    paths = [
        [str(folder / f"{name}.json") for name in names],
        str(folder / "questions.parquet"),
        [str(folder / f"clusters/{name}.parquet") for name in names],
        [str(folder / f"labels/{name}.parquet") for name in names],
        adapter_paths(to),
    ]
    settings = {
        "checkpoints": names,
        "data_checkpoints": names,
        "seeds": SEEDS,
        "data": "own",
        "answers": 2,
        "labels": "judged",
        "prompt": TEMPLATE,
        "lr": 1e-3,
        "epochs": 2,
        "batch_size": 5,
        "rank": 4,
        "alpha": 8,
        "micro_batch": 32,
        "head": "float32",
        "random_streams": "own",
        "precision": "stored",
        "threads": 1,
    }
    return paths, settings | changes
