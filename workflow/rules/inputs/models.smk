"""Input functions and params of the rules in models.smk."""

from persistcal.models.checkpoint import local_digests


def pretrained_files(model, checkpoint):
    """Files that a checkpoint made here consists of; none where others made it.

    Who reads them asks for them, so that a deleted one is made anew. What is in them is
    in the record; when they were written does not matter.
    """
    made = study.made_by(model, checkpoint)
    if made == "merge":
        parts = study.parts(model, checkpoint)
        return [path for part in parts for path in pretrained_files(model, part)]
    files = {"repo": [], "pretraining": [WEIGHTS, *BESIDE_WEIGHTS]}
    paths = files.get(made, [CHANGED, *BESIDE_CHANGED])
    return [ancient(path) for path in expand(paths, model=model, checkpoint=checkpoint)]


def facts_to_learn(wildcards):
    return expand(FACTS, dataset=study.pretraining(wildcards.model)["datasets"])


def previous_weights(wildcards):
    """The checkpoint that pre-training goes on from; none for the first."""
    name = study.previous_checkpoint(wildcards.model, wildcards.checkpoint)
    if not name:
        return {}
    weights, *beside = pretrained_files(wildcards.model, name)
    record = CHECKPOINT.format(model=wildcards.model, checkpoint=name)
    return {"previous": weights, "beside_previous": [*beside, record]}


def pretraining_prompt(wildcards):
    """Prompt whose format the pre-training shows: a verifier's own, or for confidence."""
    own = study.pretraining(wildcards.model).get("prompt")
    return read_prompt(own, "pretraining.prompt", RATED) if own else CONFIDENCE_PROMPT


def local_files(wildcards):
    """Digests of the files of local folders; nothing for a repository of the Hub."""
    state = ask(study.state)(wildcards)
    folders = [
        each for each in (state, state.get("adapter")) if "revision" in (each or {})
    ]
    found = [
        local_digests(
            Path(each["repo"]) / each["revision"], CHECKPOINT.format(**wildcards)
        )
        for each in folders
    ]
    return found[0] if len(found) == 1 else found


def records_merged(model, checkpoint):
    parts = study.state(model, checkpoint)["merge"]
    return expand(CHECKPOINT, model=model, checkpoint=list(parts))


def key_of_state(wildcards):
    return f"models.{wildcards.model}.checkpoints.{wildcards.checkpoint}.merge"


def of_state(key, default=None):
    """Let a rule ask what the config says under `key` of its checkpoint, or of the model."""

    def value(wildcards):
        return ask(study.state)(wildcards).get(key, default)

    return value


def with_states(made):
    """Regular expression of models, each before one of its checkpoints that are made so."""
    named = {
        m: [c for c in study.known_checkpoints(m) if study.made_by(m, c) == made]
        for m in study.models_made
    }
    both = (f"{re.escape(m)}(?=/(?:{one_of(c)})[./])" for m, c in named.items() if c)
    return "|".join(both) or "(?!)"
