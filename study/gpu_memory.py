"""The GPU memory of jobs, computed from the shapes of models without torch.

Prompts are taken to be long: twice the tokens of a usual question and candidate. Batches that
do not fit are halved when they run, so that a job needs only its least.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from persistcal.models.sizes import (
    DecoderShape,
    answers_at_once,
    decoding_bytes,
    fit_together,
    scoring_bytes,
    training_bytes,
)
from study.resources import (
    CANDIDATE_TOKENS,
    ENTAILMENT_WEIGHTS,
    QUESTION_TOKENS,
    JobResources,
)

LONG_QUESTION = 2 * QUESTION_TOKENS  # tokens
LONG_PROMPT = 2 * (QUESTION_TOKENS + CANDIDATE_TOKENS)
# DeBERTa base in float32, which compares pairs of a question and two answers
ENTAILMENT_SHAPE = DecoderShape(768, 3072, 12, 12, 128_100, gated=False, tied=True)


class GpuMemory(NamedTuple):
    """Gigabytes that a job takes on the GPU of a process."""

    least: float = 0.0  # with batches of one question
    full: float = 0.0  # whole batches


def shape_of(entry: Mapping[str, Any]) -> DecoderShape | None:
    """Return the shape of a model in the config's catalogue, if it has one."""
    if not (sizes := entry.get("shape")):
        return None
    return DecoderShape(**sizes)


def gpu_memory(resources: JobResources, rule: str, job: Mapping[str, str]) -> GpuMemory | None:
    """Return the memory of a job with one copy of the model, or None if it is unknown.

    A model has to have a `shape`; jobs without a model on a GPU have none.
    """
    row, config = resources.row(rule, job), resources.config
    weights = resources.weights(rule, job)
    if weights == ENTAILMENT_WEIGHTS:
        pairs = config["equivalence"]["batch_size"]
        sizes = (scoring_bytes(ENTAILMENT_SHAPE, n * LONG_PROMPT) for n in (1, pairs))
        return GpuMemory(*(2 * size / 1e9 for size in sizes))
    verifier = config["verifiers"].get(job.get("verifier", ""), {})
    model = verifier.get("model", job.get("model", ""))
    shape = shape_of(config["models"].get(model, {}))
    if not weights or shape is None:
        return None
    if row == "generate_beams":
        decoding = config["decoding"]
        lengths = {key: decoding[key] for key in ("n_beams", "max_new_tokens")}
        memory = (0.0, decoding["memory_gb"])  # at least one question
        sizes = (
            decoding_bytes(shape, n_question=LONG_QUESTION, **lengths, memory_gb=gigabytes)
            for gigabytes in memory
        )
    elif row == "train_adapters":
        recipe = resources.study.recipe(job["recipe"])
        n_answers = recipe["n_answers"]
        tokens = LONG_QUESTION + n_answers * (LONG_PROMPT - LONG_QUESTION)  # per question
        at_once = recipe["micro_batch"]  # auto: all questions of a step, if they fit
        whole = recipe["batch_size"] if at_once == "auto" else at_once // n_answers
        questions = (1, max(1, whole))
        sizes = (training_bytes(shape, n * tokens, lora_rank=recipe["rank"]) for n in questions)
    elif row in ("score_answers", "score_with_verifier"):
        batch = verifier.get("batch_size", config["scoring"]["batch_size"])
        batch = answers_at_once(shape, LONG_PROMPT) if batch == "auto" else batch
        sizes = (scoring_bytes(shape, n * LONG_PROMPT) for n in (1, batch))
    else:
        return None
    return GpuMemory(*(size / 1e9 for size in sizes))


def copies_on_one_gpu(
    resources: JobResources, rule: str, job: Mapping[str, str]
) -> tuple[int, DecoderShape] | None:
    """Return the copies that a joint training has, and their shape, or None without a shape."""
    if resources.row(rule, job) != "train_adapters":
        return None
    key = job["model"], job["recipe"], job["trained_on"]
    shape = shape_of(resources.config["models"][job["model"]])
    copies = len(resources.study.trained_on(*key))
    return (copies, shape) if shape and copies > 1 else None


def describe_copies(copies: int, shape: DecoderShape, gpu_gb: float, label: str) -> str:
    """Return a sentence on how a joint training uses a single GPU of `gpu_gb`.

    >>> shape = DecoderShape(2048, 11008, 36, 16, 128256, kv_heads=4, tied=True)
    >>> describe_copies(4, shape, 24, "SmolLM3 3B")
    'On one GPU of 24 GB, 4 copies of SmolLM3 3B (6.1 GB each) are in main memory, and one ...
    """
    weights_gb = shape.weight_bytes / 1e9
    start = (
        f"On one GPU of {gpu_gb:g} GB, {copies} copies of {label} ({weights_gb:.1f} GB each)"
    )
    if not fit_together(copies, weights_gb, gpu_gb):
        return f"{start} are in main memory, and one at a time is on the GPU."
    more = (copies - 1) * weights_gb
    return f"{start} are on the GPU together, which adds {more:.1f} GB to the figures above."
