"""Input functions and params of the rules in questions.smk."""


def jeopardy_categories(wildcards):
    """The list is the project's unless the user has one of that name."""
    return find_file(config["datasets"][wildcards.dataset]["categories"])


def contents_of_categories(wildcards):
    return contents_of(jeopardy_categories(wildcards))


def contents_of_file(wildcards):
    return contents_of(config["datasets"][wildcards.dataset]["file"])


def bioasq_file_if_there(wildcards):
    """Nothing where the file is missing: the job, and not a dry run, asks for it."""
    file = config["datasets"][wildcards.dataset]["file"]
    return [file] if Path(file).exists() else []


def context_file(model, checkpoint):
    key = f"models.{model}.checkpoints.{checkpoint}.context.file"
    file = study.state(model, checkpoint)["context"]["file"]
    return existing(file, f"correct {key}")


def contents_of_context(model, checkpoint):
    return contents_of(study.state(model, checkpoint)["context"]["file"])


def context_prompt(wildcards):
    state = ask(study.state)(wildcards)
    key = "models.{model}.checkpoints.{checkpoint}.context.prompt".format(**wildcards)
    return read_prompt(state["context"]["prompt"], key, (["passage", "question"], []))
