"""Measurements that need a GPU, with random weights of a 7B model's shape: ``make gpu``.

Equality of beams, confidences and gradients with transformers' `generate`, a plain forward pass
and plain peft; batches that do not fit into memory; two ranks on one device; then speed, memory
and the share of the device's peak, the rates of the device, and peak memory at the shapes of
config/one_gpu.yaml. The command downloads nothing.
Each part runs in a separate Python and ends at its time limit; all limits together are below
ten minutes. Findings are written to benchmarks/gpu.md, and the command fails if results differ.

``python -m benchmarks.gpu --device cpu --shape tiny`` runs the same parts on a tiny model
without a GPU, as a test does: memory that is too small is then simulated.
"""

import argparse
import json
import logging
import os
import platform
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import torch
import torch.distributed as dist
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile
from transformers import Olmo3Config, Olmo3ForCausalLM, PreTrainedTokenizerBase

from atlas.corpus import train_tokenizer
from benchmarks.decoding import made_up_questions
from benchmarks.gpu_memory import measure_memory
from benchmarks.reference import generate
from benchmarks.trees import as_trees, score, score_alone, train
from persistcal.answers import decode
from persistcal.answers.decode import Beam, Search, bytes_of_a_question, generate_beams
from persistcal.confidence.verbalised import digit_tokens
from persistcal.models.packing import make_tree
from persistcal.models.prompts import confidence_prompt, few_shot_prefix, question_suffix
from persistcal.models.sizes import SCORED_ON_CPU
from persistcal.training.data import TrainingQuestion
from persistcal.training.launch import end_with_parent, launch
from persistcal.training.ranks import join, own_share
from persistcal.training.train import (
    Optimisation,
    Trainee,
    initialise,
    share_adapter,
    train_adapter,
)

HERE = Path(__file__).parent
TEMPLATE = HERE.parent / "config" / "prompts" / "confidence.txt"


class Shape(NamedTuple):
    """Sizes of a model, and how much it is asked."""

    hidden_size: int
    intermediate_size: int
    n_layers: int
    n_heads: int
    vocab_size: int
    dtype: torch.dtype
    n_questions: int
    n_beams: int
    n_tokens: int


SHAPES = {
    "7b": Shape(4096, 11008, 32, 32, 100_278, torch.bfloat16, 64, 10, 16),
    "tiny": Shape(32, 64, 4, 4, 2048, torch.float32, 6, 3, 4),
}


class Outcome(NamedTuple):
    """A line of the page; `ok` is None without a comparison."""

    part: str
    what: str
    found: str
    ok: bool | None = None


class Bench(NamedTuple):
    """The device, model shape and questions of a part."""

    device: str
    shape: Shape
    tokenizer: PreTrainedTokenizerBase
    questions: list[tuple[str, str]]

    def model(self, *, n_layers: int = 0, dtype: torch.dtype | None = None, seed: int = 0):
        """Return a model with random weights, made on the device."""
        shape = self.shape
        config = Olmo3Config(
            vocab_size=shape.vocab_size,
            hidden_size=shape.hidden_size,
            intermediate_size=shape.intermediate_size,
            num_hidden_layers=n_layers or shape.n_layers,
            num_attention_heads=shape.n_heads,
            num_key_value_heads=shape.n_heads,
            sliding_window=4096,
            initializer_range=2 / shape.hidden_size**0.5,  # far apart logits
            eos_token_id=self.tokenizer.eos_token_id,
            pad_token_id=self.tokenizer.pad_token_id,
        )
        torch.manual_seed(seed)
        previous = torch.get_default_dtype()
        torch.set_default_dtype(dtype or shape.dtype)
        try:
            with torch.device(self.device):
                return Olmo3ForCausalLM(config).eval().requires_grad_(False)
        finally:
            torch.set_default_dtype(previous)

    @property
    def prefix(self) -> str:
        """Return the solved examples."""
        return few_shot_prefix(self.questions[:5])

    def suffixes(self, n: int) -> list[str]:
        """Return the first n questions."""
        return [question_suffix(question) for question, _ in self.questions[5 : 5 + n]]

    def prompts(self, n: int) -> list[list[list[int]]]:
        """Return the confidence prompts of n questions, two candidates each."""
        template = TEMPLATE.read_text(encoding="utf-8")
        rows = self.questions[5 : 5 + n]
        return [
            [
                self.tokenizer(confidence_prompt(template, question, answer))["input_ids"]
                for answer in (right, right[::-1])
            ]
            for question, right in rows
        ]

    def timed(self, run: Callable[[], object]) -> tuple[float, float]:
        """Return seconds on the clock and the most memory in GB, after one run to warm up."""
        run()
        on_gpu = self.device == "cuda"
        if on_gpu:
            torch.cuda.synchronize()
            torch.cuda.reset_peak_memory_stats()
        start = time.perf_counter()
        run()
        if on_gpu:
            torch.cuda.synchronize()
        taken = time.perf_counter() - start
        return taken, torch.cuda.max_memory_allocated() / 1e9 if on_gpu else 0.0

    def launches(self, run: Callable[[], object]) -> int:
        """Return the kernels that a run starts on a GPU, or without one its operators."""
        on_gpu = self.device == "cuda"
        with profile(
            activities=[ProfilerActivity.CUDA if on_gpu else ProfilerActivity.CPU]
        ) as profiler:
            run()
        started = [DeviceType.CUDA if on_gpu else DeviceType.CPU]
        return sum(event.device_type in started for event in profiler.events())

    def peak(self) -> tuple[float, float]:
        """Return the FLOPs and the bytes per second of a large product and a large copy."""
        n = 2 * self.shape.hidden_size
        matrix = torch.randn(n, n, device=self.device, dtype=self.shape.dtype)
        product, _ = self.timed(lambda: [matrix @ matrix for _ in range(10)])
        copy, _ = self.timed(lambda: [matrix.clone() for _ in range(10)])
        return 10 * 2 * n**3 / product, 10 * 2 * matrix.nbytes / copy


def new_bench(device: str, shape: Shape) -> Bench:
    """Return questions and a tokenizer that has seen them."""
    questions = made_up_questions(5 + shape.n_questions)
    texts = [question_suffix(question) + f" {answer}\n\n" for question, answer in questions]
    return Bench(device, shape, train_tokenizer(texts * 4, vocab_size=2048), questions)


def weights_of(model: torch.nn.Module) -> int:
    """Return the weights of the layers."""
    return sum(p.numel() for p in model.get_decoder().layers.parameters())


def against_limits(taken: float, read: float, operations: float, launches: int) -> str:
    """Return a time beside the least for reading the weights and for the products."""
    limits = f"reading {1000 * read:.3g} ms, products {1000 * operations:.3g} ms"
    share = 100 * max(read, operations) / taken
    return f"{1000 * taken:.3g} ms; {limits} ({share:.2g} % of it); {launches:,} launches"


def close(part: str, measured: str, difference: float, tolerance: float) -> Outcome:
    """Return the row of a comparison."""
    result = f"differ by {difference:.1e}, at most {tolerance:.0e} allowed"
    return Outcome(part, measured, result, difference <= tolerance)


def equality(bench: Bench) -> Iterator[Outcome]:
    """Compare with transformers: exactly in float32, within rounding in the model's dtype."""
    shape, suffixes = bench.shape, bench.suffixes(4)
    sizes = {"n_beams": shape.n_beams, "max_new_tokens": shape.n_tokens}
    for name, dtype, per_token, of_confidence, n_layers in (
        ("float32, 4 layers", torch.float32, 1e-4, 1e-4, 4),
        (f"{shape.dtype}, all layers".removeprefix("torch."), shape.dtype, 0.05, 0.02, 0),
    ):
        model = bench.model(n_layers=n_layers, dtype=dtype)
        fast = generate_beams(model, bench.tokenizer, bench.prefix, suffixes, Search(**sizes))
        expected = [
            beams
            for suffix in suffixes
            for beams in generate(model, bench.tokenizer, [bench.prefix + suffix], **sizes)
        ]
        pairs = [
            pair for a, b in zip(fast, expected, strict=True) for pair in zip(a, b, strict=True)
        ]
        same = sum(a.text == b.text for a, b in pairs)
        exact = dtype == torch.float32
        # In half precision nearly equal beams change places.
        result = f"{same} of {len(pairs)} equal"
        yield Outcome(
            "equality", f"texts of beams, {name}", result, same == len(pairs) or not exact
        )
        gap = max(abs(a.logprob - b.logprob) for a, b in pairs)
        tolerance = per_token * shape.n_tokens
        yield close("equality", f"log-probabilities of beams, {name}", gap, tolerance)

        digits, prompts = digit_tokens(bench.tokenizer), bench.prompts(4)
        [confidence], [plain] = (
            score(partial(way, model, digits, prompts)) for way in (as_trees, score_alone)
        )
        gap = (confidence.float() - plain.float()).abs().max().item()
        yield close("equality", f"confidences, {name}", gap, of_confidence)
        if exact:
            adapter = share_adapter([model], rank=8, alpha=16)
            initialise(adapter, 17)
            trees, plain = (
                train(adapter, partial(way, model, digits, prompts))
                for way in (as_trees, score_alone)
            )
            gap = max(
                ((a - b).abs().max() / b.abs().max().clamp(min=1)).item()
                for a, b in zip(trees, plain, strict=True)
            )
            yield close("equality", f"loss and gradient, {name}", gap, 1e-4)
        del model


@contextmanager
def little_memory(bench: Bench, model: torch.nn.Module, n_fit: int) -> Iterator[None]:
    """Leave room for some questions only; on a CPU, refuse as if there were no more."""
    if bench.device == "cuda":
        n_tokens = 40 + bench.shape.n_beams * bench.shape.n_tokens
        total = torch.cuda.mem_get_info()[1]
        room = n_fit * bytes_of_a_question(model, n_tokens, bench.shape.n_beams)
        torch.cuda.set_per_process_memory_fraction(
            (torch.cuda.memory_reserved() + room) / total
        )
        try:
            yield
        finally:
            torch.cuda.set_per_process_memory_fraction(1.0)
        return

    answer = decode.answer_queue

    def refuse(*arguments: Any) -> list:
        if arguments[-1] > n_fit:
            raise torch.OutOfMemoryError("simulated")
        return answer(*arguments)

    with patch.object(decode, "answer_queue", refuse):
        yield


def memory(bench: Bench) -> Iterator[Outcome]:
    """Decode a batch that does not fit: it is halved, and the beams stay."""
    n = bench.shape.n_questions
    model = bench.model(n_layers=4, dtype=torch.float32)
    sizes = {"n_beams": bench.shape.n_beams, "max_new_tokens": bench.shape.n_tokens}

    def run(batch_size: int) -> list[list[Beam]]:
        search = Search(**sizes, batch_size=batch_size)
        return generate_beams(model, bench.tokenizer, bench.prefix, bench.suffixes(n), search)

    expected = run(batch_size=2)
    messages: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: messages.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger("persistcal.models.batches").addHandler(handler)
    with little_memory(bench, model, max(2, n // 4)):
        beams = run(batch_size=n)
    same = [[b.text for b in a] for a in beams] == [[b.text for b in a] for a in expected]
    cause = "out of memory for real" if bench.device == "cuda" else "simulated"
    yield Outcome(
        "memory", f"halvings of a batch of {n}, {cause}", str(len(messages)), bool(messages)
    )
    yield Outcome("memory", "beams after halving", "equal" if same else "differ", same)


def _trained(bench: Bench, names: list[str], all_names: list[str]) -> list[torch.Tensor]:
    """Train on the checkpoints of a rank, and return the adapter."""
    tokens: dict[str, list[int]] = {}
    seen: dict[str, TrainingQuestion] = {}
    for number, pair in enumerate(bench.prompts(4)):
        prompts = tuple(f"{number} {i}" for i in range(2))
        tokens |= zip(prompts, pair, strict=True)
        seen[f"q{number}"] = TrainingQuestion(prompts, (0.5, 0.5), (1.0, 0.0))
    models = {
        name: bench.model(n_layers=2, dtype=torch.float32, seed=all_names.index(name))
        for name in names
    }
    adapter = share_adapter(models.values(), rank=4, alpha=8)
    trainee = Trainee(models, adapter, tokens, digit_tokens(bench.tokenizer))
    train_adapter(
        trainee,
        dict.fromkeys(all_names, seen),
        list(seen),
        Optimisation(lr=1e-3, epochs=1, batch_size=2, micro_batch=32),
        seed=17,
    )
    return [parameter.detach().cpu() for parameter in adapter.values()]


def ranks(bench: Bench) -> Iterator[Outcome]:
    """Train with two processes on one device, over gloo, as one process does.

    NCCL takes one process a GPU, so where there are two `launch` starts the processes over it.
    """
    several = bench.device == "cuda" and torch.cuda.device_count() > 1
    backend = "nccl" if several else "gloo"
    folder = Path(os.environ.get("TMPDIR", "/tmp"), f"persistcal-ranks-{os.getpid()}")
    folder.mkdir()
    os.environ |= {"RANKS_FOLDER": str(folder), "RANKS_BACKEND": backend}
    words = ["-m", "benchmarks.gpu", "--part", "rank", *_arguments(bench)]
    if several:
        launch(words, n_ranks=2)  # which raises where one fails
        status = [0, 0]
    else:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        common = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
        processes = [
            subprocess.Popen(
                [sys.executable, *words], env={**os.environ, **common, "RANK": str(rank)}
            )
            for rank in range(2)
        ]
        status = [process.wait() for process in processes]
    yield Outcome("ranks", f"two processes over {backend}", f"status {status}", not any(status))
    if not any(status):
        first, second = (torch.load(folder / f"{rank}.pt") for rank in range(2))
        together = _trained(bench, ["a", "b"], ["a", "b"])
        gap = max((a - b).abs().max().item() for a, b in zip(first, second, strict=True))
        yield close("ranks", "adapters of the two", gap, 0)
        gap = max((a - b).abs().max().item() for a, b in zip(first, together, strict=True))
        yield close("ranks", "adapter of two processes and of one", gap, 1e-4)
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()


def rank(bench: Bench) -> Iterator[Outcome]:
    """Be one of two processes."""
    if os.environ["RANKS_BACKEND"] == "nccl":
        end_with_parent()
        join(timeout_min=1)
    else:
        dist.init_process_group("gloo")
    names = ["a", "b"]
    adapter = _trained(bench, list(own_share(names)), names)
    torch.save(adapter, Path(os.environ["RANKS_FOLDER"], f"{dist.get_rank()}.pt"))
    dist.destroy_process_group()
    yield from ()


def decoding(bench: Bench) -> Iterator[Outcome]:
    """Measure decoding against `generate` in batches as large."""
    shape, model = bench.shape, bench.model()
    flops, bandwidth = bench.peak()
    yield Outcome(
        "decoding", "peak", f"{flops / 1e12:.3g} TFLOP/s, {bandwidth / 1e12:.3g} TB/s"
    )
    sizes = {"n_beams": shape.n_beams, "max_new_tokens": shape.n_tokens}
    rates, n_bytes = [], sum(p.nbytes for p in model.parameters())
    for n in (1, shape.n_questions // 4 or 1, shape.n_questions):
        suffixes = bench.suffixes(n)
        prompts = [bench.prefix + suffix for suffix in suffixes]
        search = Search(**sizes, batch_size=n)
        run = partial(generate_beams, model, bench.tokenizer, bench.prefix, suffixes, search)
        fast, gigabytes = bench.timed(run)
        products = 2 * weights_of(model) * n * shape.n_beams / flops
        costs = fast / shape.n_tokens, n_bytes / bandwidth, products
        limits = against_limits(*costs, bench.launches(run) // shape.n_tokens)
        rate = n * shape.n_beams * shape.n_tokens / fast
        result = f"{rate:.3g} tokens/s, {gigabytes:.1f} GB; a step {limits}"
        rates.append((n, fast / shape.n_tokens))
        if n < shape.n_questions:  # the largest would take `generate` too long
            plain, more = bench.timed(
                partial(generate, model, bench.tokenizer, prompts, **sizes)
            )
            result += f"; `generate` {plain / fast:.1f} times as long, {more:.1f} GB"
        yield Outcome("decoding", f"{n} questions at once", result)
    step = rates[0][1] - n_bytes / bandwidth
    yield Outcome("rates", "BANDWIDTH", f"{bandwidth:.2g}")
    yield Outcome("rates", "STEP_S", f"{max(0.0, step):.2g}")


def packed(bench: Bench, part: str, passes: int) -> Iterator[Outcome]:
    """Measure scoring or a training step of 64 answers against a forward pass for each."""
    model = bench.model()
    flops, bandwidth = bench.peak()
    digits = digit_tokens(bench.tokenizer)
    prompts = bench.prompts(min(SCORED_ON_CPU // 2, bench.shape.n_questions))
    half = prompts[: len(prompts) // 2]  # each alone stores much
    run: Callable[..., Any] = score
    if part == "training":
        adapter = share_adapter([model], rank=8, alpha=16)
        initialise(adapter, 17)
        run = partial(train, adapter)
    together = partial(run, partial(as_trees, model, digits, prompts))
    fast, gigabytes = bench.timed(together)
    plain, more = bench.timed(partial(run, partial(score_alone, model, digits, half)))
    longer = plain / len(half) / (fast / len(prompts))
    n_tokens = len(make_tree(sorted(p for row in prompts for p in row)).token_ids)
    products = 2 * passes * weights_of(model) * n_tokens
    read = passes * sum(p.nbytes for p in model.get_decoder().layers.parameters())
    limits = against_limits(fast, read / bandwidth, products / flops, bench.launches(together))
    yield Outcome(
        part,
        f"{2 * len(prompts)} prompts, {n_tokens} tokens in trees",
        f"{n_tokens / fast:.3g} tokens/s, {gigabytes:.1f} GB; {limits}; each prompt alone "
        f"{longer:.1f} times as long, {more:.1f} GB for {2 * len(half)}",
    )
    rate = products / fast
    yield Outcome("rates", f"FLOPS, {part}", f"{rate:.2g}")


def room(bench: Bench) -> Iterator[Outcome]:
    """Measure peak memory of a study on one GPU against `persistcal.models.sizes`."""
    tiny = bench.shape == SHAPES["tiny"]
    for what, result, ok in measure_memory(bench.tokenizer, device=bench.device, tiny=tiny):
        yield Outcome("room", what, result, ok)


PARTS: dict[str, tuple[Callable[[Bench], Iterator[Outcome]], int]] = {  # and seconds at most
    "equality": (equality, 100),
    "memory": (memory, 60),
    "ranks": (ranks, 70),
    "decoding": (decoding, 110),
    "training": (partial(packed, part="training", passes=2), 60),
    "scoring": (partial(packed, part="scoring", passes=1), 50),
    "room": (room, 140),
}


def _arguments(bench: Bench) -> list[str]:
    [shape] = [name for name, shape in SHAPES.items() if shape == bench.shape]
    return ["--device", bench.device, "--shape", shape]


def run_parts(device: str, shape: str) -> list[Outcome]:
    """Run each part in a process, and return its rows; a failed part has one row."""
    rows = []
    for part, (_, limit) in PARTS.items():
        words = [sys.executable, "-m", "benchmarks.gpu", "--part", part]
        words += ["--device", device, "--shape", shape]
        try:
            done = subprocess.run(
                words,
                cwd=HERE.parent,
                capture_output=True,
                text=True,
                check=False,
                timeout=limit,
            )
        except subprocess.TimeoutExpired:
            rows.append(
                Outcome(part, "all of it", f"ended at its limit of {limit} s", ok=False)
            )
            continue
        rows += [
            Outcome(*json.loads(ln)) for ln in done.stdout.splitlines() if ln.startswith("[")
        ]
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            rows.append(Outcome(part, "all of it", f"failed: {last}", ok=False))
        print(*rows[-3:], sep="\n", flush=True)
    return rows


def as_markdown(rows: list[Outcome], setup: str) -> str:
    """Return the page."""
    says = {True: "yes", False: "**no**", None: ""}
    table = "\n".join(f"| {r.part} | {r.what} | {r.found} | {says[r.ok]} |" for r in rows)
    return f"""# Measurements on a GPU

{setup}

Written by `make gpu`, which needs one GPU with 80 GB and downloads nothing. The weights are
random, at the shape of Olmo 3 7B. The peak is that of one large product and one large copy in
the same run. The rows "rates" are, in this run, the bandwidth in bytes per second, the seconds
of a decoding step beyond reading the weights, and the operations per second. `generate` and
peft are the references; "2.7 times as long" means that they need 2.7 times the time of this
code. The two limits of a step are the times to read the weights once (in training twice) and
for the matrix products, at the peak. The rows "room" compare peak memory at the shapes of
config/one_gpu.yaml with `persistcal.models.sizes`.

| part | what | found | as it must be |
|---|---|---|---|
{table}
"""


def main() -> None:
    """Run all parts or a single one, and fail if results differ."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu")
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--shape", choices=SHAPES, default="7b")
    parser.add_argument("--part", choices=[*PARTS, "rank"])
    parser.add_argument("--to", type=Path, default=HERE / "gpu.md")
    args = parser.parse_args()
    if args.device == "cuda" and not torch.cuda.is_available():
        raise SystemExit("No GPU was found; --device cpu --shape tiny tries the same without.")
    if args.part:
        bench = new_bench(args.device, SHAPES[args.shape])
        function = rank if args.part == "rank" else PARTS[args.part][0]
        for row in function(bench):
            print(json.dumps(row), flush=True)
        return
    start = time.perf_counter()
    rows = run_parts(args.device, args.shape)
    name = torch.cuda.get_device_name() if args.device == "cuda" else "no GPU"
    setup = (
        f"{name}, shape {args.shape}, torch {torch.__version__}, Python "
        f"{platform.python_version()}; {time.perf_counter() - start:.0f} s in all."
    )
    args.to.write_text(as_markdown(rows, setup), encoding="utf-8")
    if wrong := [row for row in rows if row.ok is False]:
        raise SystemExit("Not as it must be:\n" + "\n".join(map(str, wrong)))


if __name__ == "__main__":
    main()
