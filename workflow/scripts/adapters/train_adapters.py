"""Train the confidence adapters of a recipe: labelled answers -> LoRA weights."""

from typing import Any

import pandas as pd

from persistcal.confidence.verbalised import digit_tokens
from persistcal.models import load
from persistcal.models.checkpoint import ADAPTER, ADAPTER_CONFIG, Checkpoint
from persistcal.models.load import check_alike
from persistcal.questions.question_list import asked_by
from persistcal.store.artifacts import Clusters, Labels, Questions, Training
from persistcal.store.jobs import log
from persistcal.store.progress import Seeds, Trained
from persistcal.training import ranks, train
from persistcal.training.data import Plan, recipe_data, training_ids
from persistcal.training.launch import run_on_ranks
from persistcal.training.train import adapter_files


def train_adapters(
    checkpoints: list[Checkpoint],
    questions: Questions,
    clusters: Clusters,
    labels: Labels,
    *,
    plan: Plan,
    design: train.Design,
    optimisation: train.Optimisation,
    seeds: Seeds,
) -> tuple[list[bytes], list[bytes], Training]:
    """Return weights, config and history of one adapter per seed, trained jointly.

    `checkpoints` are the records of the checkpoints in the plan. Each checkpoint receives its
    questions, after a passage if it has a context, with the answers to learn from. Several
    ranks divide the checkpoints. If the models of a rank do not fit into its GPU together, one
    at a time is there. Adapters that an earlier run of the job has made of the same inputs
    are kept, if others are missing.
    """
    tokenizer = load.open_tokenizer(checkpoints[-1])
    digit_tokens(tokenizer)  # stops here, before any weights are loaded
    read = plan.read(questions, clusters, labels)
    sources = [source for asked in read for source in asked.sources.values()]
    named = [(record.name, record) for record in checkpoints]
    check_alike(dict(named), [p for s in sources for q in s.values() for p in q.prompts])
    share = ranks.own_share(named)
    gpu = load.gpu_of_one_copy([record for _, record in share])
    bases = {}
    for name, record in share:
        model = load.open_model(record, dtype=design.dtype)
        bases[name] = train.park(model) if gpu else model
    trainee = train.prepare(
        bases,
        tokenizer,
        sources,
        rank=design.lora_rank,
        alpha=design.alpha,
        head=design.head,
        device=gpu,
    )
    ids = training_ids(asked_by(questions, None))
    made_from = seeds.progress.key if seeds.progress else ""
    trained, missing = seeds.trained, train.missing_seeds(seeds)
    for seed in missing:
        chosen: dict[str, Any] = {"data": plan.data, "labels": plan.labels, "seed": seed}
        seen: dict[str, Any] = {}
        for names, dataset_files in read:
            data = recipe_data(dataset_files, plan.checkpoints, **chosen)
            seen |= {name: data[name] for name in names}
        seen = {name: seen[name] for name in plan.checkpoints}
        history = train.train_adapter(
            trainee, seen, ids, optimisation, seed=seed, work=seeds.progress
        )
        files = adapter_files(
            trainee.adapter,
            rank=design.lora_rank,
            alpha=design.alpha,
            base_model=checkpoints[-1].repo,
            made_from=made_from,
        )
        trained[seed] = Trained(files[ADAPTER], files[ADAPTER_CONFIG], history)
    if len(missing) < len(seeds.numbers):
        log.info(
            "%d of %d adapters were there already",
            len(seeds.numbers) - len(missing),
            len(seeds.numbers),
        )
    made = [
        trained[seed]._replace(history=trained[seed].history.assign(seed=seed))
        for seed in seeds.numbers
        if seed in trained
    ]
    weights, configs, histories = zip(*made, strict=True)
    return list(weights), list(configs), pd.concat(histories)


if __name__ == "__main__":
    run_on_ranks(train_adapters, __file__, snakemake, most=len(snakemake.input.checkpoints))
