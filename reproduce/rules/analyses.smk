"""The paper's analyses: transfer, hidden states, headroom and weights."""

from functools import partial

from reproduce import catalogue as paper_views
from reproduce.catalogue import PAPER_SETTINGS, transfer_sets, variances


rule measure_transfer:
    input:
        answers=files_of_job(study.checkpoints, paths.answers, split="test"),
        scores=files_of_job(
            study.checkpoints,
            paths.scores,
            recipe=list(config["analyses"]["transfer"]["recipes"]),
            answers="transfer",
        ),
    output:
        transfer=f"{RESULTS}/transfer/{{model}}/{{dataset}}.csv",
    params:
        checkpoints=settings_of_job(study.checkpoints),
        sets=settings_of_job(partial(transfer_sets, study)),
    script:
        "../scripts/measure_transfer.py"


VARIANCE_RECIPE = config["analyses"]["hidden_state_variance"]["recipe"]
VARIANCES_MEASURED = variances(study)


rule measure_variance:
    input:
        checkpoint=paths.checkpoint,
        questions=files_of_job(inputs.questions_asked),
        clusters=expand(paths.clusters, split="test", allow_missing=True),
        adapters=expand(
            f"{paths.adapter}/adapter_model.safetensors",
            recipe=VARIANCE_RECIPE,
            trained_on="{checkpoint}",
            seed=study.recipe(VARIANCE_RECIPE)["seeds"],
            allow_missing=True,
        ),
    output:
        variances=f"{RESULTS}/variances/{{model}}/{{checkpoint}}/{{dataset}}.parquet",
    conda:
        "../../envs/gpu.yaml"
    resources:
        **ON_GPU,
    params:
        prompt=settings_of_job(inputs.confidence_prompt),
        last_layer=config["analyses"]["hidden_state_variance"]["last_layer"],
        batch_size=config["scoring"]["batch_size"],
        dtype=config["training"]["dtype"],
    script:
        "../scripts/measure_variance.py"


rule correlate_variance:
    input:
        variances=files_of_rows(
            rules.measure_variance.output.variances, VARIANCES_MEASURED
        ),
    output:
        **reported_table("hidden_state_variance"),
    params:
        labels=LABELS,
        last_layer=config["analyses"]["hidden_state_variance"]["last_layer"],
    script:
        "../scripts/correlate_variance.py"


HEADROOM = config["analyses"]["gcm_headroom"]


rule measure_headroom:
    input:
        contrast_sets=paths.contrast_members,
        replicates=[
            paths.replicates.replace("{estimator}", HEADROOM[name])
            for name in ("verifier", "oracle")
        ],
        backbone=paths.answers.format(
            **HEADROOM["backbone"], dataset="{dataset}", split="test"
        ),
    output:
        headroom=f"{RESULTS}/headroom/{{model}}/{{dataset}}.csv",
    params:
        compared=[HEADROOM["verifier"], HEADROOM["oracle"]],
    script:
        "../scripts/measure_headroom.py"


rule compare_weights:
    input:
        records=files_of_job(study.checkpoints_in_files, paths.checkpoint),
    output:
        similarities=f"{RESULTS}/weight_similarities/{{model}}.csv",
    script:
        "../scripts/compare_weights.py"
