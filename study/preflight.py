"""Start of a run: the cost of the jobs, and the files and keys that are missing.

A dry run prints these lines last. A real run prints them before its first job, and stops if
something is missing or too expensive. A plan for a cluster stops on a machine without a GPU.
"""

import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from snakemake.exceptions import WorkflowError
from snakemake.logging import logger

from persistcal.judge.messages import reply_limits
from persistcal.server.spending import (
    BYTES_PER_TOKEN,
    TOKENS_OF_UNLIMITED_REPLY,
    TOKENS_PER_MESSAGE,
)
from persistcal.store.replies import Ledger
from study.inputs import Inputs
from study.resources import ASKED_OF_SERVERS, Cost, JobResources
from study.study import Study

Jobs = Sequence[tuple[str, Mapping[str, str]]]  # the rule and the wildcards of each

# Sizes in a request to the judge, for TriviaQA and Jeopardy: a question, its references, and
# the line of a candidate with its number
QUESTION_BYTES, REFERENCE_BYTES, CANDIDATE_BYTES = 100, 16, 18
LIKELY_CANDIDATES = 5  # groups of ten beams
LIKELY_BYTES_PER_TOKEN, LIKELY_REPLY_TOKENS = 4, 5  # English; a line such as "3. CORRECT"
TOO_LITTLE = (
    ", which is too little; set the environment variable HF_HOME to a folder on a larger disk."
)

# Programs that stop with an error if a Python lacks a package of generate_beams. They receive
# the back end and the script.
FIND = """
import sys
from importlib.util import find_spec
needed = [sys.argv[1], "transformers", "pandas", "pyarrow"]
if lacking := [name for name in needed if not find_spec(name)]:
    sys.exit(f"no package {', '.join(lacking)}")
"""
IMPORT = """
import runpy, sys
if sys.argv[1] == "vllm":
    from vllm import LLM, SamplingParams
runpy.run_path(sys.argv[2])
"""
IMPORT_S = 300  # seconds; vLLM needs about 20, and more from a slow file system


class Refusal(str):
    """A reason why a run cannot start."""


class Preflight(NamedTuple):
    """Lines about a run, and reasons why it cannot start."""

    lines: list[str]
    refusals: list[str]

    @property
    def text(self) -> str:
        """All lines, with the reasons last."""
        marked = [f"Before a real run: {reason}" for reason in self.refusals]
        return "\n".join([*self.lines, *marked])


class Account(NamedTuple):
    """Requests of a run to the servers of a section of the config, and what was paid before."""

    section: str
    requests: int  # that are not paid yet
    paid: int
    spent: float

    @classmethod
    def of(cls, inputs: Inputs, section: str, wanted: float, done: float) -> "Account":
        """Return the account of planned jobs that want so many requests.

        The ledger's requests belong to the finished jobs first, which have `done` so many. A
        planned job with replies that are kept, for example after an edit of code, asks for
        nothing again.
        """
        paid, spent = Ledger(f"{inputs.paths.results}/{section}/spending.csv").total()
        return cls(section, round(max(0, wanted - max(0, paid - done))), paid, spent)

    def refusals(
        self, limits: Mapping[str, Any], bound: float, arguments: Sequence[str], less: str = ""
    ) -> Iterator[Refusal]:
        """Yield the reasons why requests that cost at most `bound` are above a ceiling.

        `less` says how to ask for less.
        """
        place = "a file my.yaml and `--configfile my.yaml` to the command"
        if any(argument.startswith("--configfile") for argument in arguments):
            place = "your config"
        ceiling, requests = limits["max_cost"], self.paid + self.requests
        if requests > limits["max_requests"]:
            yield Refusal(
                f"the requests are above {self.section}.max_requests "
                f"{limits['max_requests']:,}; add the line "
                f"`{self.section}: {{max_requests: {requests}}}` to {place}."
            )
        if ceiling is not None and not self.spent + bound <= ceiling:
            enough = -(-int(self.spent + bound + 1) // 10) * 10
            yield Refusal(
                f"the cost can be above {self.section}.max_cost, the ceiling; to allow it, add "
                f"the line `{self.section}: {{max_cost: {enough}}}` to {place}{less}."
            )


def request_cost(
    judge: Mapping[str, Any], prompt: str, candidates: int, *, bound: bool = True
) -> float:
    """Return the cost of one request about `candidates`, from above or as expected."""
    per_token = BYTES_PER_TOKEN if bound else LIKELY_BYTES_PER_TOKEN
    n_bytes = len(prompt.encode()) + QUESTION_BYTES + REFERENCE_BYTES
    tokens = (n_bytes + candidates * CANDIDATE_BYTES) / per_token + 2 * TOKENS_PER_MESSAGE
    limits = reply_limits(judge.get("request", {}), candidates, together=True)
    reply = next(iter(limits.values()), TOKENS_OF_UNLIMITED_REPLY)
    if not bound:
        reply = min(reply, LIKELY_REPLY_TOKENS * candidates)
    return (tokens * judge["price_input"] + reply * judge["price_output"]) / 1e6


def judge_lines(
    inputs: Inputs, planned: Jobs, finished: Jobs, arguments: Sequence[str] = ()
) -> Iterator[str]:
    """Yield the line on the judge's cost, and the reasons why it cannot be asked.

    The bound counts a token for 3 bytes, all candidates (and five) to each question, and the
    longest reply. The expected cost counts tokens as in English.
    """
    resources, judge = JobResources(inputs.study), inputs.config["judge"]
    wanted, done = (
        sum(resources.judge_requests(*job) for job in jobs) for jobs in (planned, finished)
    )
    account = Account.of(inputs, "judge", wanted, done)
    if not account.requests:
        return
    prompt = inputs.label_settings()["prompt"]
    most = resources.judged_candidates() if judge.get("together") else 1
    likely = min(LIKELY_CANDIDATES, most)
    bound, likely_bound, expected = (
        account.requests * request_cost(judge, prompt, n, bound=is_bound)
        for n, is_bound in ((most, True), (likely, True), (likely, False))
    )
    money = judge.get("currency", "USD")
    five = f" ({likely_bound:,.0f} with five)" if most > 5 else ""
    yield (
        f"Judge: {account.requests:,} requests to {judge['model']} ({judge['backend']}), at "
        f"most about {bound:,.0f} {money} with {most} candidates each{five}, about "
        f"{expected:,.0f} {money} expected; "
        + (f"{account.spent:,.0f} {money} spent so far; " if account.paid else "")
        + f"ceiling {judge['max_cost']:,.0f} {money} (judge.max_cost)."
    )
    less = "; `judge: {clusters: needed}` judges only answers that are trained on or evaluated"
    yield from account.refusals(judge, bound, arguments, less)
    if not os.environ.get(judge["api_key_env"], "").strip():
        yield Refusal(
            f"the environment variable {judge['api_key_env']} is empty; put the judge's key "
            "into it (any text for a server without keys), or label without a judge by "
            "`judge: {backend: lexical}`."
        )


def api_lines(
    inputs: Inputs, planned: Jobs, finished: Jobs, arguments: Sequence[str] = ()
) -> Iterator[str]:
    """Yield the line on the cost of checkpoints behind an API, and whether it is too high."""
    resources, api = JobResources(inputs.study), inputs.config["api"]
    planned, finished = (
        [(rule, job) for rule, job in jobs if rule in ASKED_OF_SERVERS]
        for jobs in (planned, finished)
    )
    if not planned:
        return
    names = ", ".join(sorted({f"{job['model']}/{job['checkpoint']}" for _, job in planned}))
    wanted, done = (
        [resources.server_use(*job) for job in jobs] for jobs in (planned, finished)
    )
    total = sum(use.requests for use in wanted)
    if not total:  # a file of questions
        yield f"API: requests to {names}, as many as the questions need."
        return
    account = Account.of(inputs, "api", total, sum(use.requests for use in done))
    cost = sum(use.cost for use in wanted) * account.requests / total
    limit = "none" if api["max_cost"] is None else f"{api['max_cost']:,.0f}"
    yield (
        f"API: {account.requests:,} requests to {names}, at most about {cost:,.2f} in the "
        f"currency of the prices; {account.spent:,.2f} spent so far; ceiling {limit} "
        "(api.max_cost)."
    )
    yield from account.refusals(api, cost, arguments)


def file_lines(study: Study, planned: Jobs) -> Iterator[str]:
    """Yield the reason for each dataset with a file that a person must fetch."""
    for dataset in (job["dataset"] for rule, job in planned if rule == "prepare_questions"):
        entry = study.config["datasets"][dataset]
        if not study.source(dataset).file_is_optional or Path(entry["file"]).exists():
            continue
        chosen = [name for name in study.chosen["datasets"] if name != dataset]
        remedy = f"datasets: [{', '.join(chosen)}]"
        tables = study.config["tables"]
        listed = study.chosen["tables"]
        kept = [name for name in listed if dataset not in tables[name].get("datasets", [])]
        if kept != listed:
            remedy += f", tables: [{', '.join(kept)}]"
        yield Refusal(
            f"{entry['file']} is missing. {entry.get('label', dataset)} needs a registration "
            "at participants-area.bioasq.org: download the training data of task 14b and put "
            f"the file there. A study without it is the line `study: {{{remedy}}}`."
        )


def download_lines(study: Study, planned: Jobs) -> Iterator[str]:
    """Yield the line on downloads and disk, with the repositories and the Hub's token."""
    cost = JobResources(study).cost(planned)
    if not (downloads := cost.downloads):
        return
    fetched = [job for rule, job in planned if rule == "fetch_checkpoint"]
    states = (study.state(job["model"], job["checkpoint"]) for job in fetched)
    repos = sorted({str(state.get("repo")) for state in states})
    home = Path(os.environ.get("HF_HOME", "~/.cache/huggingface")).expanduser()
    cache = [home / "hub" / f"models--{repo.replace('/', '--')}" / "blobs" for repo in repos]
    files = [file for blobs in cache for file in blobs.glob("*") if file.is_file()]
    cached = min(downloads, sum(file.stat().st_size for file in files) / 1e9)
    disk = next(folder for folder in (home, *home.parents) if folder.exists())
    free = shutil.disk_usage(disk).free / 1e9
    stored = f" ({cached:,.0f} GB of them are in {home})" if cached >= 0.5 else ""
    has_token = bool(os.environ.get("HF_TOKEN")) or (home / "token").exists()
    yield (
        f"Downloads: {downloads:,.0f} GB of {', '.join(repos)}{stored}; with results "
        f"{cost.gigabytes:,.0f} GB of disk; {free:,.0f} GB are free in {disk}"
        + ("." if cost.gigabytes - cached <= free else TOO_LITTLE)
    )
    needed = "is set" if has_token else "is not set; only gated repositories need it"
    yield f"HF_TOKEN {needed}."


def profile_lines(arguments: Sequence[str]) -> Iterator[str]:
    """Yield the line on account and partitions of the SLURM profile in the `arguments`."""
    profiles = [b for a, b in pairwise(arguments) if a == "--profile"]
    profiles += [a.partition("=")[2] for a in arguments if a.startswith("--profile=")]
    folders = [Path(), Path("~/.config/snakemake").expanduser(), Path("/etc/xdg/snakemake")]
    files = [
        folder / name / file
        for name in profiles
        for folder in folders
        for file in ("profile.yaml", "config.yaml")
    ]
    file = next((path for path in files if path.exists()), None)
    if file is None:
        return
    profile = yaml.safe_load(file.read_text(encoding="utf-8")) or {}
    if profile.get("executor") != "slurm":
        return
    requested = profile.get("default-resources") or {}
    if isinstance(requested, list):  # "name=value", as Snakemake also reads them
        requested = dict(str(request).partition("=")[::2] for request in requested)
    account = requested.get("slurm_account", "")
    partitions = file.parent / profile.get("slurm-partition-config", "")
    resources = (
        yaml.safe_load(partitions.read_text(encoding="utf-8")) if partitions.is_file() else {}
    )
    names = list((resources or {}).get("partitions", {}))
    text = "no account (slurm_account is none)" if account == "none" else f"account {account}"
    listed = f"partitions {', '.join(names)}" if names else "SLURM's default partition"
    yield f"SLURM: {text if account else 'no account'}; {listed} ({file})."
    command, known = ["sinfo", "--noheader", "--format=%R"], set(names)
    with suppress(OSError, subprocess.SubprocessError):  # then names cannot be checked
        sinfo = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
        known = set(sinfo.stdout.split()) or known
    if unknown := sorted(set(names) - known):
        yield Refusal(
            f"sinfo knows no partition {', '.join(unknown)}; correct its name in {partitions}."
        )
    if not shutil.which("sbatch"):
        yield Refusal("sbatch is not found here; run the command on a login node.")


def python_lines(
    inputs: Inputs, planned: Jobs, *, by_conda: bool = False, imports: bool = False
) -> Iterator[str]:
    """Yield the reason why the environment that answers the questions cannot.

    A real run `imports` the packages of the job there. A dry run only finds them.
    """
    decoding = inputs.config["decoding"]
    path, backend = decoding.get("python"), decoding["backend"]
    is_needed = any(rule == "generate_beams" for rule, _ in planned)
    if not is_needed or (not path and (backend == "transformers" or by_conda)):
        return
    python = path or sys.executable
    script = inputs.root / "workflow" / "scripts" / "answers" / "generate_beams.py"
    program = IMPORT if imports and path else FIND
    environment = {**os.environ, "PYTHONPATH": str(inputs.root)}
    try:
        done = subprocess.run(
            [python, "-c", program, backend, str(script)],
            capture_output=True,
            text=True,
            timeout=IMPORT_S,
            env=environment,
            check=False,
        )
    except subprocess.TimeoutExpired:
        reason = f"decoding.python {python} did not import {backend} within {IMPORT_S} s"
        yield Refusal(f"{reason}; try `{python} -c 'import {backend}'`.")
        return
    except OSError as error:
        yield Refusal(f"decoding.python {python} does not run ({error}); correct it.")
        return
    lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
    needs_driver = "libcuda" in lines[-1] and not Path("/dev/nvidiactl").exists()
    if not done.returncode or needs_driver:  # which only the nodes have
        return
    remedy = (
        "install it there"
        if path
        else "run with --sdm conda, or set the line `decoding: {python: .venv-vllm/bin/python}`"
    )
    yield Refusal(
        f"{python} cannot run generate_beams ({lines[-1]}); {remedy} "
        "(docs/cluster.md, Decoding with vLLM)."
    )


def preflight(
    inputs: Inputs,
    planned: Jobs,
    finished: Jobs = (),
    arguments: Sequence[str] = (),
    notes: Sequence[str] = (),
    **settings: bool,
) -> Preflight:
    """Return the cost of the `planned` jobs, and the reasons why they cannot start.

    `arguments` are Snakemake's, and `notes` become the first lines. `python_lines` receives the
    `settings`.
    """
    found = [
        *notes,
        *judge_lines(inputs, planned, finished, arguments),
        *api_lines(inputs, planned, finished, arguments),
        *download_lines(inputs.study, planned),
        *file_lines(inputs.study, planned),
        *python_lines(inputs, planned, **settings),
        *profile_lines(arguments),
    ]
    refusals = [line for line in found if isinstance(line, Refusal)]
    return Preflight([line for line in found if not isinstance(line, Refusal)], [*refusals])


def refuse_if_missing(report: Preflight) -> None:
    """Raise a WorkflowError with all reasons why a run cannot start."""
    if report.refusals:
        reasons = "\n".join(f"- {reason}" for reason in report.refusals)
        raise WorkflowError(f"Nothing has started:\n{reasons}")


def at_end_of_dry_run(report: Callable[[], str]) -> None:
    """Append a report to Snakemake's last message of a dry run, for which it has no hook."""

    def add_report(record: logging.LogRecord) -> bool:
        if str(record.msg).startswith("This was a dry-run") and (text := report()):
            record.msg = f"{record.msg}\n\n{text}"
        return True

    logger.addFilter(add_report)


def has_gpu() -> bool:
    """Return whether a driver of NVIDIA's or AMD's GPUs is loaded here."""
    return any(Path(path).exists() for path in ("/dev/nvidiactl", "/dev/kfd"))


def too_much(needed: Cost) -> str:
    """Return two lines about what jobs need, or nothing if none of them needs a GPU."""
    if not needed.on_gpu:
        return ""
    return (
        f"Of {needed.jobs} jobs {needed.on_gpu} need a GPU, and this machine has none; they "
        f"download {needed.downloads:.0f} GB and send {needed.requests:,} paid "
        "requests. Nothing has started.\n"
        "`make demo` is the study for a laptop; `--profile slurm` runs this one on a cluster, "
        "and `--resources gpu=1` starts it here."
    )
