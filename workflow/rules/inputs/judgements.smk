"""Input functions and params of the rules in judgements.smk."""

from persistcal.judge.run import human_labels_digest


def reached(wildcards, input):
    """How a paid judge is reached and what it may cost: another answer reruns nothing.

    A function of `input`, whose values Snakemake does not compare.
    """
    return {key: config["judge"][key] for key in config["judge"] if key != "clusters"}


def human_labels(wildcards):
    """Digest of a person's labels, and of those still missing, since the job first ran."""
    return human_labels_digest(
        f"{JUDGE}/queue.csv",
        CONSULTED.format(**wildcards),
        stop=config["judge"].get("undecided") == "stop",
    )


def checkpoints_audited(wildcards):
    """The first and the last evaluation checkpoint: the widest contrast set."""
    names = study.evaluation(wildcards.model)
    return [names[0], names[-1]]


def answers_audited(wildcards):
    return expand(ANSWERS, checkpoint=checkpoints_audited(wildcards), **wildcards)


def predictions_audited(wildcards):
    place = wildcards.model, wildcards.dataset
    here = [row for row in study.evaluated if (row.model, row.dataset) == place]
    return of_each(PREDICTIONS, here)
