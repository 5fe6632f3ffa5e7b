"""Train the confidence adapters of a recipe: labelled answers -> LoRA weights."""

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch

from persistcal.confidence.verbalised import Head, digit_tokens
from persistcal.models import load
from persistcal.models.checkpoint import Checkpoint
from persistcal.store import artifacts
from persistcal.store.files import write_whole
from persistcal.store.logs import log_to
from persistcal.store.progress import Progress
from persistcal.training import ranks, train
from persistcal.training.data import recipe_data, training_ids, training_questions
from persistcal.training.launch import call_on_ranks
from persistcal.training.lora import adapter_files
from persistcal.training.streams import Streams


def train_adapters(
    checkpoint_paths: list[str],
    questions_path: str,
    clusters_paths: list[str],
    labels_paths: list[str],
    adapter_paths: list[str],
    *,
    checkpoints: list[str],
    data_checkpoints: list[str],
    seeds: list[int],
    data: str,
    answers: int,
    labels: str,
    prompt: str,
    rank: int,
    alpha: int,
    head: Head,
    random_streams: Streams,
    precision: str,
    threads: int,
    code: str = "",
    **training: Any,  # noqa: ANN401
) -> None:
    """Train one adapter per seed jointly on `checkpoints`, one file of `adapter_paths` each.

    Beside it go `adapter_config.json` and `training.parquet`. `checkpoint_paths` are in
    the order of `checkpoints`, clusters and labels in that of `data_checkpoints`. The rest
    is as in `persistcal.training.data` and, for `training`, in `adapters.train_adapter`.
    An interrupted run is continued if it had the same `code`, a digest.
    """
    settings, first = dict(locals(), threads=None), ranks.index() == 0
    inputs = [*checkpoint_paths, questions_path, *clusters_paths, *labels_paths]
    load.set_threads(max(1, threads // ranks.count()))
    records = [Checkpoint.read(path) for path in checkpoint_paths]
    base = records[-1].repo
    tokenizer = load.open_tokenizer(records[-1])
    digit_tokens(tokenizer)  # stops here, before any weights are loaded
    questions, sources = artifacts.read(questions_path, artifacts.QUESTIONS), {}
    for name, path, judged in zip(data_checkpoints, clusters_paths, labels_paths, strict=True):
        frames = (
            artifacts.read(path, artifacts.CLUSTERS),
            artifacts.read(judged, artifacts.LABELS),
        )
        sources[name] = training_questions(questions, *frames, template=prompt, answers=answers)
    bases = {
        name: load.open_model(record, precision=precision)
        for name, record in ranks.own_share([*zip(checkpoints, records, strict=True)])
    }
    lora: dict[str, Any] = {"rank": rank, "alpha": alpha}
    trainee = train.prepare(bases, tokenizer, sources.values(), **lora, head=head)
    recipe: dict[str, Any] = {"data": data, "labels": labels, "streams": random_streams}
    with Progress(adapter_paths[0], inputs, settings) if first else nullcontext() as work:
        for seed, path in zip(seeds, adapter_paths, strict=True):
            seen = recipe_data(sources, checkpoints, **recipe, seed=seed)
            how = {**training, "seed": seed, "streams": random_streams, "work": work}
            ids = training_ids(questions)
            history = train.train_adapter(trainee, seen, ids, **how)
            files = adapter_files(trainee.adapter, **lora, base_model=base)
            if first:
                artifacts.write(
                    history, Path(path).with_name("training.parquet"), artifacts.TRAINING
                )
                for name, content in files.items():
                    write_whole(Path(path).with_name(name), content)


if __name__ == "__main__":
    log_to(snakemake.log[0])
    read, resources = snakemake.input, snakemake.resources
    paths = [[*read.checkpoints], read.questions, [*read.clusters], [*read.labels]]
    paths += [[*snakemake.output.adapters]]
    settings = dict(snakemake.params.items(), threads=snakemake.threads)
    n_ranks, n_nodes = resources.get("ranks", 1), resources.get("nodes", 1)
    n_gpus = torch.cuda.device_count() * n_nodes
    n_ranks = min(n_ranks, len(read.checkpoints), n_gpus or n_ranks)
    call_on_ranks(
        train_adapters,
        __file__,
        paths,
        settings,
        n_ranks=n_ranks,
        n_nodes=n_nodes,
        timeout_min=resources.rank_timeout_min,
    )
