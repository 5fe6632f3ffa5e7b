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


def plan_of(wildcards):
    """Answers that the adapters of a recipe learn from, and their checkpoints."""
    recipe = study.recipe(wildcards.recipe)
    return {
        "checkpoints": ask(study.trained_on)(wildcards),
        "sources": ask(study.data_checkpoints)(wildcards),
        "prompt": CONFIDENCE_PROMPT,
        **{key: recipe[key] for key in ("seeds", "data", "labels", "answers")},
    }


def design_of_adapter(wildcards):
    recipe = study.recipe(wildcards.recipe)
    return {
        "lora_rank": recipe["rank"],
        "head": config["scoring"]["head"],
        **{key: recipe[key] for key in ("alpha", "precision")},
    }


def optimisation(wildcards):
    recipe = study.recipe(wildcards.recipe)
    return {
        "lr": recipe["learning_rate"],
        "streams": recipe["random_streams"],
        **{key: recipe[key] for key in ("epochs", "batch_size", "micro_batch")},
    }


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
            plan=plan_of,
            design=design_of_adapter,
            optimisation=optimisation,
            training_of=[{"seed": seed} for seed in study.seeds(recipe)],
        script:
            "../scripts/adapters/train_adapters.py"
