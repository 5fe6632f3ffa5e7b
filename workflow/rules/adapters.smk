"""Train confidence adapters: labelled answers of some checkpoints -> LoRA weights.

One rule per recipe, because the seeds of a recipe decide what its job makes;
all seeds are trained behind one load of the checkpoints.
"""


include: "inputs/adapters.smk"


for recipe in study.recipes:

    rule:
        name:
            f"train_{recipe}"
        input:
            checkpoints=for_each(study.trained_on, CHECKPOINT),
            questions=questions_of_bases,
            clusters=for_each(study.data_checkpoints, CLUSTERS),
            labels=for_each(study.data_checkpoints, LABELS),
        output:
            adapters=with_each_seed(recipe, "adapter_model.safetensors"),
            configs=with_each_seed(recipe, "adapter_config.json"),
            training=with_each_seed(recipe, "training.parquet"),
        log:
            f"{LOGS}/train_adapters/{{model}}/{{dataset}}/{{recipe}}/{{trained_on}}.log",
        benchmark:
            f"{LOGS}/train_adapters/{{model}}/{{dataset}}/{{recipe}}/{{trained_on}}.tsv"
        wildcard_constraints:
            recipe=re.escape(recipe),
            trained_on="[^/]+",
        # The longest jobs of a small study, which evaluation can fill the gaps of.
        priority: 100
        conda:
            "../../envs/gpu.yaml"
        resources:
            **ON_GPU,
            ranks=ranks,
            rank_timeout_min=config["rank_timeout_min"],
            cpus_per_task=cpus_of_task,
            nodes=nodes,
            gres=over_nodes("gres"),
            tasks=over_nodes("tasks"),
            tasks_per_gpu=over_nodes("tasks_per_gpu"),
            mpi=over_nodes("mpi"),
        params:
            plan=plan_of,
            design=design_of_adapter,
            optimisation=optimisation,
            training_of=[{"seed": seed} for seed in study.seeds(recipe)],
        script:
            "../scripts/adapters/train_adapters.py"
