"""Train confidence adapters: labelled answers of some checkpoints -> LoRA weights.

One rule per recipe, because the seeds of a recipe decide what its job makes;
all seeds are trained behind one load of the checkpoints. The job keeps adapters
that it has made of the same inputs, so that one more seed trains one adapter.
"""

RANK_RESOURCES = "ranks nodes cpus_per_task gres tasks tasks_per_gpu mpi".split()

for recipe in study.recipes:
    settings = study.recipe(recipe)

    rule:
        name:
            f"train_{recipe}"
        input:
            checkpoints=files_of_job(study.trained_on, paths.checkpoint),
            questions=files_of_job(inputs.questions_of_training),
            clusters=files_of_job(study.data_checkpoints, paths.clusters, split="train"),
            labels=files_of_job(study.data_checkpoints, paths.labels, split="train"),
        output:
            adapters=update(with_seeds("adapter_model.safetensors", settings)),
            configs=update(with_seeds("adapter_config.json", settings)),
            training=update(with_seeds("training.parquet", settings)),
        wildcard_constraints:
            recipe=re.escape(recipe),
            trained_on="[^/]+",
        # The longest jobs of a small study start first; evaluation fills the gaps.
        priority: 100
        conda:
            "../../envs/gpu.yaml"
        resources:
            **ON_GPU,
            **{name: resources.request_of(name) for name in RANK_RESOURCES},
            rank_timeout_min=config["rank_timeout_min"],
        params:
            plan=settings_of_job(inputs.training_plan),
            design={
                "lora_rank": settings["rank"],
                "alpha": settings["alpha"],
                "dtype": settings["dtype"],
                "head": config["scoring"]["head"],
            },
            optimisation={
                "lr": settings["learning_rate"],
                "epochs": settings["epochs"],
                "batch_size": settings["batch_size"],
                "micro_batch": settings["micro_batch"],
            },
            training_of=without_rerun([{"seed": seed} for seed in settings["seeds"]]),
        script:
            "../scripts/adapters/train_adapters.py"
