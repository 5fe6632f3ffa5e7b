"""Effect of training's precision on confidences, compared with that of another seed.

    python -m benchmarks.precision atlas FOLDER --seeds 8 --questions 100
    python -m benchmarks.precision smollm2 FOLDER --seeds 3 --questions 64 --batch 2

Weights are rounded to bfloat16 first, so that all ways of training have the same. "float32"
computes all else in float32. Against it, with the same seed and optimizer: the model in
bfloat16, as the config's `stored` on GPUs; only what linear layers read, return and get as a
gradient in bfloat16, as autocast does; and what they read in TF32, as the config's `float32`
on GPUs. Each also with a warm-up over half of the steps, or with a larger epsilon of AdamW.
All adapters are scored in float32, and that of bfloat16 in bfloat16 as well.

`atlas` reads what ``make demo`` leaves in results/atlas: two checkpoints, trained jointly, and
Δ of a question is between them. `smollm2` has one model (`tools.smollm2`), and Δ is
between a question's right answer and another one. What is in FOLDER is not computed again.
"""

import argparse
import copy
import itertools
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

import numpy as np
import torch
from peft.tuners.lora import Linear
from scipy.stats import spearmanr
from sklearn.metrics import roc_auc_score
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from benchmarks.smollm2 import city_questions
from persistcal.answers.predictions import take_predictions
from persistcal.confidence.prompts import confidence_prompt
from persistcal.confidence.scoring import score_answers
from persistcal.confidence.verbalised import digit_tokens
from persistcal.models.load import load_model, load_tokenizer
from persistcal.store import artifacts
from persistcal.training import train
from persistcal.training.data import Questions, TrainingQuestion, training_questions
from tools.smollm2 import load_smollm2

ATLAS, CHECKPOINTS, N_TEST = Path("results/atlas"), ("p50", "p100"), 400
PROMPTS = Path("config/prompts")
WAYS = ["float32", "bfloat16", "bfloat16 products", "TF32 products"]
OPTIMIZERS = {"": {}, ", warm-up": {"warmup": 0.5}, ", epsilon 1e-4": {"eps": 1e-4}}


class TrainedWith(NamedTuple):
    """Checkpoints, what they learn from, and what is asked of them afterwards."""

    models: dict[str, PreTrainedModel]
    tokenizer: PreTrainedTokenizerBase
    data: dict[str, Questions]
    asked: dict[str, list[str]]  # prompts of each checkpoint
    correct: np.ndarray  # (n_checkpoints, n_prompts)
    learning_rate: float

    def delta(self, confidence: np.ndarray) -> np.ndarray:
        """Return Δ of each question."""
        if len(confidence) == 1:
            return confidence[0, 0::2] - confidence[0, 1::2]
        return confidence[1] - confidence[0]


def atlas(n_questions: int) -> TrainedWith:
    """Return the study of two checkpoints of atlas."""
    template = (PROMPTS / "confidence_atlas.txt").read_text(encoding="utf-8")
    folder = Path(__file__).parents[1] / "resources/atlas"
    questions = artifacts.read(ATLAS / "questions/atlas.parquet", artifacts.QUESTIONS)
    chosen = questions[questions["split"].eq("train")].sort_values("index").head(n_questions)
    data, asked, correct = {}, {}, []
    for name in CHECKPOINTS:
        clusters, labels = (
            artifacts.read(ATLAS / kind / "atlas" / name / "atlas.parquet", table)
            for kind, table in (
                ("clusters", artifacts.CLUSTERS),
                ("labels", artifacts.LABELS),
            )
        )
        data[name] = training_questions(chosen, clusters, labels, template=template, answers=2)
        best = take_predictions(questions, clusters).merge(
            labels[labels["cluster"].eq(0)], on="question_id"
        )
        best = best.head(N_TEST)
        texts = zip(best["question"], best["answer"], strict=True)
        asked[name] = [confidence_prompt(template, *text) for text in texts]
        correct.append(best["label"].eq("correct"))
    models = {
        n: load_model(str(folder / n), dtype="float32", device="cpu") for n in CHECKPOINTS
    }
    tokenizer = load_tokenizer(str(folder / CHECKPOINTS[0]))
    return TrainedWith(models, tokenizer, data, asked, np.array(correct), 3e-3)


def smollm2(n_questions: int) -> TrainedWith:
    """Return the study of SmolLM2-135M, which is asked 60 other questions afterwards."""
    template = (PROMPTS / "confidence.txt").read_text(encoding="utf-8")
    rows = city_questions(n_questions + 60)
    prompts = [tuple(confidence_prompt(template, q, a) for a in both) for q, *both in rows]
    seen = {
        f"q{i}": TrainingQuestion(pair, (0.5, 0.5), (1.0, 0.0))
        for i, pair in enumerate(prompts[:n_questions])
    }
    asked = [prompt for pair in prompts[n_questions:] for prompt in pair]
    model, tokenizer = load_smollm2()
    correct = np.arange(len(asked))[None] % 2 == 0
    return TrainedWith({"s": model}, tokenizer, {"s": seen}, {"s": asked}, correct, 2e-4)


def to_bfloat16(x: Tensor) -> Tensor:
    """Round to eight significant bits."""
    return x.bfloat16().float()


def to_tf32(x: Tensor) -> Tensor:
    """Round to eleven significant bits.

    >>> to_tf32(torch.tensor([1 + 2**-10, 1 + 2**-12, 1 + 3 * 2**-12])) - 1
    tensor([0.0010, 0.0000, 0.0010])
    """
    bits = x.contiguous().view(torch.int32)
    return ((bits + 0xFFF + (bits >> 13 & 1)) & ~0x1FFF).view(torch.float32)


def round_products(model: PreTrainedModel, way: str) -> None:
    """Round what the linear layers with an adapter read, and in bfloat16 what they return."""
    rounded = to_bfloat16 if way == "bfloat16 products" else to_tf32
    for layer in model.modules():
        if isinstance(layer, Linear):
            layer.register_forward_pre_hook(
                lambda _, inputs: tuple(x + (rounded(x) - x).detach() for x in inputs)
            )
            layer.register_full_backward_pre_hook(
                lambda _, gradients: tuple(rounded(gradient) for gradient in gradients)
            )
            if way == "bfloat16 products":
                layer.register_forward_hook(
                    lambda _, _inputs, out: out + (rounded(out) - out).detach()
                )


def run(
    study: TrainedWith, way: str, optimizer: str, seed: int, batch: int
) -> dict[str, np.ndarray]:
    """Return confidences of an adapter, scored in float32 and as it was trained, and losses."""
    models = {name: copy.deepcopy(model).bfloat16() for name, model in study.models.items()}
    if way != "bfloat16":
        models = {name: model.float() for name, model in models.items()}
    trainee = train.prepare(models, study.tokenizer, study.data.values(), rank=8, alpha=16)
    if way.endswith("products"):
        for model in models.values():
            round_products(model, way)
    settings, peak = OPTIMIZERS[optimizer], train.learning_rate

    def warmed(step: int, n_steps: int, lr: float) -> float:
        rise = (step + 1) / max(1.0, settings.get("warmup", 0.0) * n_steps)
        return peak(step, n_steps, lr) * min(1.0, rise)

    def score() -> np.ndarray:
        digits, tokens = digit_tokens(study.tokenizer), study.tokenizer
        return np.stack(
            [
                score_answers(
                    model, tokens(study.asked[name])["input_ids"], digits, batch_size=64
                )
                for name, model in models.items()
            ]
        )

    with ExitStack() as stack:
        stack.enter_context(patch.object(train, "learning_rate", warmed))
        if "eps" in settings:
            adamw = partial(_adamw, torch.optim.AdamW, settings["eps"])
            stack.enter_context(patch("torch.optim.AdamW", adamw))
        history = train.train_adapter(
            trainee,
            study.data,
            list(dict.fromkeys(i for seen in study.data.values() for i in seen)),
            train.Optimisation(study.learning_rate, 1, batch, micro_batch=2 * batch),
            seed=seed,
        )
    found = {"loss": history["loss"].to_numpy()}
    if way == "bfloat16":
        found["as_trained"] = score()
        for model in models.values():
            model.float()
    for model in models.values():
        for layer in model.modules():
            layer._forward_pre_hooks.clear()
            layer._forward_hooks.clear()
    return found | {"confidence": score()}


def _adamw(
    kind: Callable, epsilon: float, /, *of: object, **how: object
) -> torch.optim.Optimizer:
    return kind(*of, **{**how, "eps": epsilon})


def rows(study: TrainedWith, runs: dict[tuple[str, str], list[dict]]) -> Iterator[str]:
    """Yield the lines of a table: a mean over seeds, or over pairs of seeds, in each cell."""

    def against(ones: list[dict], others: list[dict]) -> tuple[float, float]:
        pairs = [(a["confidence"], b["confidence"]) for a, b in zip(ones, others, strict=True)]
        gap = np.mean([np.abs(a - b).mean() for a, b in pairs])
        rank = np.mean([spearmanr(study.delta(a), study.delta(b))[0] for a, b in pairs])
        return float(gap), float(rank)

    yield "| trained in | seeds | p: precision | Δ | p: seed | Δ | mean p | AUC | last loss |"
    yield "|---|--:|--:|--:|--:|--:|--:|--:|--:|"
    for (way, optimizer), found in runs.items():
        exact = runs["float32", optimizer]
        same = against(found, exact[: len(found)])
        ones, others = zip(*itertools.combinations(found, 2), strict=True)
        seeds = against(list(ones), list(others))
        means = [run["confidence"].mean() for run in found]
        auc = [roc_auc_score(study.correct.ravel(), r["confidence"].ravel()) for r in found]
        loss = [run["loss"][-5:].mean() for run in found]
        yield (
            f"| {way}{optimizer} | {len(found)} | {same[0]:.4f} | {same[1]:.3f} | "
            f"{seeds[0]:.4f} | {seeds[1]:.3f} | {np.mean(means):.3f} ± {np.std(means):.3f} | "
            f"{np.mean(auc):.3f} | {np.mean(loss):.4f} |"
        )
        if way == "bfloat16":
            gap = np.mean([np.abs(r["as_trained"] - r["confidence"]).mean() for r in found])
            scored = f"| (the same scored in bfloat16) | {len(found)} | {gap:.4f}"
            yield scored + " | | | | | | |"


def main() -> None:
    """Train what is not in the folder yet, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.precision")
    parser.add_argument("model", choices=["atlas", "smollm2"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--questions", type=int, default=100)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=WAYS)
    parser.add_argument("--optimizers", nargs="+", choices=OPTIMIZERS, default=[*OPTIMIZERS])
    asked = parser.parse_args()
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore", "Full backward hook is firing")  # the first layers'
    study = {"atlas": atlas, "smollm2": smollm2}[asked.model](asked.questions)
    asked.folder.mkdir(parents=True, exist_ok=True)
    runs: dict[tuple[str, str], list[dict]] = {}
    for seed, optimizer, way in itertools.product(
        range(1, asked.seeds + 1), asked.optimizers, asked.ways
    ):
        size = f"{asked.questions}x{asked.batch}"
        path = asked.folder / f"{asked.model} {size} {way}{optimizer} {seed}.npz"
        if not path.exists():
            found = run(study, way, optimizer, seed, asked.batch)
            np.savez(path, **found)
            print(path.name, f"mean confidence {found['confidence'].mean():.3f}", flush=True)
        runs.setdefault((way, optimizer), []).append(dict(np.load(path)))
    print(*rows(study, runs), sep="\n")


if __name__ == "__main__":
    main()
