"""Input functions and params of the rules in adapters.smk."""


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


def questions_of_bases(wildcards):
    """The questions as each checkpoint that is trained on is asked them."""
    bases = ask(study.trained_on)(wildcards)
    return questions_of_each(wildcards.model, bases, wildcards.dataset)


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
        **{key: recipe[key] for key in ("epochs", "batch_size", "micro_batch")},
    }
