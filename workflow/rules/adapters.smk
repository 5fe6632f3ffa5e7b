"""Train confidence adapters: labelled answers of some checkpoints -> LoRA weights.

One rule per recipe, because the seeds of a recipe decide what its job makes;
all seeds are trained behind one load of the checkpoints.
"""


def nodes(wildcards, rulename):
    return asked_of(rulename, wildcards).nodes


def cpus_of_task(wildcards, rulename):
    """Ranks on one node are children of one task; on several each is a task."""
    asked = asked_of(rulename, wildcards)
    return asked.ranks if asked.nodes == 1 else 1


def over_nodes(resource):
    """Let a rule ask for what only jobs on several nodes do; on one it is left out."""

    def value(wildcards, rulename):
        return asked_of(rulename, wildcards).over_nodes.get(resource)

    return value


def with_each_seed(recipe, name):
    """Paths of the file `name` of all adapters that a job of the recipe trains."""
    return expand(f"{ADAPTER}/{name}", seed=study.seeds(recipe), allow_missing=True)


for recipe in study.recipes:

    rule:
        name:
            f"train_{recipe}"
        input:
            checkpoints=for_each(study.trained_on, CHECKPOINT),
            questions=QUESTIONS,
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
            checkpoints=ask(study.trained_on),
            data_checkpoints=ask(study.data_checkpoints),
            seeds=study.seeds(recipe),
            data=study.recipe(recipe)["data"],
            answers=study.recipe(recipe)["answers"],
            labels=study.recipe(recipe)["labels"],
            epochs=study.recipe(recipe)["epochs"],
            lr=study.recipe(recipe)["learning_rate"],
            batch_size=config["training"]["batch_size"],
            random_streams=config["training"]["random_streams"],
            head=config["scoring"]["head"],
            rank=config["training"]["rank"],
            alpha=config["training"]["alpha"],
            micro_batch=config["training"]["micro_batch"],
            precision=config["training"]["precision"],
            prompt=confidence_prompt,
        script:
            "../scripts/adapters/train_adapters.py"
