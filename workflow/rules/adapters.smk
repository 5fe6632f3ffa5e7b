"""Train confidence adapters: labelled answers of some checkpoints -> LoRA weights.

One rule per recipe, because the seeds of a recipe decide what its job makes;
all seeds are trained behind one load of the checkpoints.
"""

for recipe in config["recipes"]:

    rule:
        name:
            f"train_{recipe}"
        input:
            checkpoints=checkpoints_to_train,
            questions=QUESTIONS,
            clusters=clusters_to_learn,
            labels=labels_to_learn,
        output:
            adapters=expand(
                f"{ADAPTER}/adapter_model.safetensors",
                seed=selection.recipe_settings(config, recipe)["seeds"],
                allow_missing=True,
            ),
            configs=expand(
                f"{ADAPTER}/adapter_config.json",
                seed=selection.recipe_settings(config, recipe)["seeds"],
                allow_missing=True,
            ),
            training=expand(
                f"{ADAPTER}/training.parquet",
                seed=selection.recipe_settings(config, recipe)["seeds"],
                allow_missing=True,
            ),
        log:
            f"{LOGS}/train_adapters/{{model}}/{{dataset}}/{{recipe}}/{{trained_on}}.log",
        benchmark:
            f"{LOGS}/train_adapters/{{model}}/{{dataset}}/{{recipe}}/{{trained_on}}.tsv"
        wildcard_constraints:
            recipe=re.escape(recipe),
            trained_on="[^/]+",
        conda:
            "../../envs/cpu.yaml"
        threads: 1
        resources:
            gpu=gpus,
            mem_mb=memory,
            runtime=runtime,
            ranks=ranks,
            cpus_per_task=ranks,
        params:
            checkpoints=checkpoints_trained_on,
            data_checkpoints=checkpoints_learnt_from,
            seeds=selection.recipe_settings(config, recipe)["seeds"],
            data=selection.recipe_settings(config, recipe)["data"],
            answers=selection.recipe_settings(config, recipe)["answers"],
            labels=selection.recipe_settings(config, recipe)["labels"],
            epochs=selection.recipe_settings(config, recipe)["epochs"],
            lr=selection.recipe_settings(config, recipe)["learning_rate"],
            batch_size=config["training"]["batch_size"],
            rank=config["training"]["rank"],
            alpha=config["training"]["alpha"],
            micro_batch=config["training"]["micro_batch"],
            prompt=confidence_prompt,
            code=digest_of("adapters/train_adapters.py"),
        script:
            "../scripts/adapters/train_adapters.py"
