"""Peak GPU memory of decoding, scoring and joint training against `persistcal.models.sizes`.

Random weights at the shapes of config/one_gpu.yaml. the part "room" of `benchmarks.gpu`.
"""

import gc
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import torch
from transformers import (
    AutoModelForCausalLM,
    GPTNeoXConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    SmolLM3Config,
)

from benchmarks.decoding import made_up_questions
from persistcal.answers.decode import Search, generate_beams
from persistcal.confidence.verbalised import digit_tokens, score_answers
from persistcal.models import sizes
from persistcal.models.packing import n_common, pack_prompts
from persistcal.models.prompts import confidence_prompt, few_shot_prefix, question_suffix
from persistcal.models.sizes import DecoderShape
from persistcal.training.data import TrainingQuestion
from persistcal.training.train import Optimisation, Trainee, park, share_adapter, train_adapter

TEMPLATE = Path(__file__).parents[1] / "config" / "prompts" / "confidence.txt"
MODELS: dict[str, tuple[type, DecoderShape]] = {
    "SmolLM3-3B": (
        SmolLM3Config,
        DecoderShape(2048, 11008, 36, 16, 128_256, kv_heads=4, tied=True),
    ),
    "Pythia-1.4b": (GPTNeoXConfig, DecoderShape(2048, 8192, 24, 16, 50_304, gated=False)),
}
N_COPIES, N_BEAMS, RANK = 4, 10, 8  # checkpoints of one adapter, and defaults of the config
# Measured over computed memory. Below it the formula reserves too much, above it too little.
EXPECTED = (0.7, 1.05)


class Workload(NamedTuple):
    """Questions to decode, and candidate answers to rate."""

    prefix: str
    suffixes: list[str]
    tokens: dict[str, list[int]]  # confidence prompts, two for each training question
    questions: dict[str, TrainingQuestion]


Measured = tuple[str, str, bool | None]  # the job, its memory, and whether it is as expected


def random_model(kind: type, shape: DecoderShape, seed: int, device: str) -> PreTrainedModel:
    """Return a model in bfloat16 with random weights, made on the device."""
    heads = {"num_key_value_heads": shape.kv_heads} if shape.kv_heads else {}
    config = kind(
        vocab_size=shape.vocabulary,
        hidden_size=shape.hidden,
        intermediate_size=shape.intermediate,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        tie_word_embeddings=shape.tied,
        initializer_range=1 / shape.hidden**0.5,
        bos_token_id=0,
        eos_token_id=0,
        pad_token_id=0,
        **heads,
    )
    torch.manual_seed(seed)
    with torch.device(device):
        model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    return model.eval().requires_grad_(False)


def compare(what: str, computed: int, run: Callable[[], object], device: str) -> Measured:
    """Run something, and compare its peak memory with the computed bytes."""
    on_gpu = device == "cuda"
    gc.collect()  # models with adapters refer to themselves
    if on_gpu:
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    run()
    if not on_gpu:
        return what, f"{computed / 1e9:.3g} GB computed, not measured without a GPU", None
    measured = torch.cuda.max_memory_allocated()
    low, high = EXPECTED
    result = f"{measured / 1e9:.3g} GB, {computed / 1e9:.3g} GB computed"
    return what, result, low <= measured / computed <= high


def ask(tokenizer: PreTrainedTokenizerBase, n: int) -> Workload:
    """Return n questions. The first 16 are also for training."""
    template, tokens, questions = TEMPLATE.read_text(encoding="utf-8"), {}, {}
    examples, pairs = made_up_questions(5 + n)[:5], made_up_questions(5 + n)[5:]
    for question, answer in pairs[:16]:
        answers = answer, answer[::-1]
        prompts = tuple(confidence_prompt(template, question, text) for text in answers)
        tokens |= zip(prompts, tokenizer(list(prompts))["input_ids"], strict=True)
        questions[question] = TrainingQuestion(prompts, (0.5, 0.5), (1.0, 0.0))
    suffixes = [question_suffix(question) for question, _ in pairs]
    return Workload(few_shot_prefix(examples), suffixes, tokens, questions)


def train(
    models: dict[str, PreTrainedModel],
    tokenizer: PreTrainedTokenizerBase,
    asked: Workload,
    device: torch.device | None,
) -> None:
    """Train an adapter on all `models` for two steps of one micro-batch each."""
    adapter = share_adapter(models.values(), rank=RANK, alpha=2 * RANK, device=device)
    trainee = Trainee(models, adapter, asked.tokens, digit_tokens(tokenizer), device=device)
    settings = Optimisation(lr=1e-4, epochs=2, batch_size=16, micro_batch=32)
    data = dict.fromkeys(models, asked.questions)
    train_adapter(trainee, data, list(asked.questions), settings, seed=17)


def measure_memory(
    tokenizer: PreTrainedTokenizerBase, *, device: str, tiny: bool
) -> Iterator[Measured]:
    """Yield rows about each model; `tiny` ones have the architecture and little else."""
    n_questions, n_tokens = (6, 4) if tiny else (sizes.MOST, sizes.TYPICAL)
    asked, digits = ask(tokenizer, n_questions), digit_tokens(tokenizer)
    prompts = tokenizer([asked.prefix + suffix for suffix in asked.suffixes])["input_ids"]
    n_own = max(map(len, prompts)) - n_common(min(prompts), max(prompts))
    search = Search(N_BEAMS, max_new_tokens=n_tokens)
    how = {"n_beams": N_BEAMS, "max_new_tokens": n_tokens, "memory_gb": search.memory_gb}
    rated = list(asked.tokens.values())
    for name, (kind, whole) in MODELS.items():
        small = {"hidden": 32, "intermediate": 64, "layers": 2, "heads": 4, "vocabulary": 2048}
        few_heads = {"kv_heads": 2 if whole.kv_heads else 0}
        shape = whole._replace(**small, **few_heads) if tiny else whole
        make = partial(random_model, kind, shape, device=device)
        n_rated = pack_prompts(rated, shape.hidden).token_ids.size
        models = {"0": make(seed=0)}
        yield compare(
            f"{name}, decoding {n_questions} questions",
            sizes.decoding_bytes(shape, n_question=n_own, **how),
            partial(generate_beams, models["0"], tokenizer, *asked[:2], search),
            device,
        )
        yield compare(
            f"{name}, scoring {n_rated} tokens",
            sizes.scoring_bytes(shape, n_rated),
            partial(score_answers, models["0"], rated, digits, batch_size=len(rated)),
            device,
        )
        models |= {str(n): make(seed=n) for n in range(1, N_COPIES)}
        place = models["0"].device
        yield compare(
            f"{name}, training {N_COPIES} copies on {n_rated} tokens",
            sizes.training_bytes(shape, n_rated, copies=N_COPIES, lora_rank=RANK),
            partial(train, models, tokenizer, asked, None),
            device,
        )
        models.clear()
        models |= {str(n): park(make(seed=n)) for n in range(N_COPIES)}
        yield compare(
            f"{name}, the same, one copy at a time",
            sizes.training_bytes(shape, n_rated, lora_rank=RANK),
            partial(train, models, tokenizer, asked, place),
            device,
        )
        models.clear()
