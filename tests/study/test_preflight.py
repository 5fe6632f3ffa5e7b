"""The preflight check: costs, keys, files and environments, before the first job."""

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from configs import PAPER
from snakemake.exceptions import WorkflowError
from workflow_runs import ROOT, jobs_of, planned

from persistcal.store.replies import Ledger
from study.inputs import Inputs
from study.preflight import preflight, refuse_if_missing, request_cost
from study.study import Study

JUDGED = {"model": "olmo3-7b", "checkpoint": "step566000", "dataset": "triviaqa"}
TRAIN, TEST = (
    ("judge_answers", {**JUDGED, "split": "train"}),
    ("judge_answers", {**JUDGED, "split": "test"}),
)
BIOASQ = ("prepare_questions", {"dataset": "bioasq"})


def check_plan(tmp_path, planned, finished=(), arguments=(), **judge):
    config = {**PAPER, "results": str(tmp_path), "judge": PAPER["judge"] | judge}
    return preflight(Inputs(Study(config), ROOT), planned, finished, arguments)


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")


def test_the_cost_of_a_request_equals_a_calculation_by_hand():
    judge = {"price_input": 3, "price_output": 10, "request": {"max_tokens": 8}}
    # Bound: 484 + 100 + 16 + 10 x 18 = 780 bytes are 780 / 3 = 260 tokens. Two messages add
    # 8 each. The reply has at most 10 x 8 tokens: 276 x 3 + 80 x 10 = 1628 millionths.
    assert request_cost(judge, "x" * 484, 10) == pytest.approx(1628e-6)
    # Estimate: 4 bytes per token and 5 tokens per line: (780 / 4 + 16) x 3 + 50 x 10 = 1133
    assert request_cost(judge, "x" * 484, 10, bound=False) == pytest.approx(1133e-6)
    # The reply about a single candidate has 16 tokens: (484 + 116 + 18) / 3 + 16 = 222
    assert request_cost(judge, "x" * 484, 1) == pytest.approx((222 * 3 + 160) / 1e6)


def test_the_papers_first_table_stays_below_the_ceiling(paper_dry_runs, tmp_path):
    lines = {
        target: paper_dry_runs[target].split("of execution.")[-1]
        for target in ("table", "study")
    }
    # 9 earlier checkpoints x 10,000 train questions; 11 evaluation checkpoints x (10,000 train
    # + 9,961 test): 90,000 + 219,571
    assert "Judge: 309,571 requests to gpt-5.4 (openai_batch), at most" in lines["table"]
    assert "ceiling 500 USD" in lines["table"]
    assert "`judge: {max_cost" not in lines["table"]
    assert "bioasq" not in lines["table"].lower()
    # Plus 20 checkpoints x 2,719 questions of BioASQ and 9 x 9,961 test questions:
    # 309,571 + 54,380 + 89,649
    assert "Judge: 453,600 requests" in lines["study"]
    assert "add the line `judge: {max_cost: 6" in lines["study"]
    assert "the line `study: {datasets: [triviaqa, jeopardy]" in lines["study"]


def test_the_smoke_run_of_the_paper_has_every_rule_of_the_study(paper_dry_runs):
    smoke, study = (planned(paper_dry_runs[name]) for name in ("smoke", "study"))
    assert smoke.keys() == study.keys()
    # 1 earlier and 2 evaluation checkpoints x 2 datasets x 2 splits x 3 models
    assert smoke["generate_beams"] == smoke["judge_answers"] == 3 * 2 * 2 * 3
    report = paper_dry_runs["smoke"].split("of execution.")[-1]
    assert "BioASQ is left out, because data/bioasq/training14b.json is missing." in report
    # 3 checkpoints x (7.3 + 8.03 + 32.2) billion weights x 2 bytes
    assert "Downloads: 285 GB" in report
    assert "Judge:" not in report and "OPENAI_API_KEY" not in report


def test_a_run_above_the_ceiling_is_refused_with_the_line_that_allows_it(tmp_path):
    report = check_plan(tmp_path, [TRAIN, TEST], max_cost=5)
    assert report.lines[0].startswith("Judge: 9,961 requests to gpt-5.4")
    with pytest.raises(WorkflowError, match=r"Nothing has started:\n- .*max_cost: 20}"):
        refuse_if_missing(report)
    assert not check_plan(tmp_path, [TRAIN, TEST], max_cost=20).refusals


def test_stored_replies_are_not_counted_again(tmp_path):
    (tmp_path / "judge").mkdir()
    Ledger(f"{tmp_path}/judge/spending.csv").add("gpt-5.4", 9961, 14.0, "batch")
    # All replies are stored, so rerun jobs request nothing.
    assert not check_plan(tmp_path, [TRAIN, TEST], max_cost=15).lines
    # The ledger contains the finished job's requests and 4,961 of the planned requests.
    report = check_plan(
        tmp_path, [TEST, (TEST[0], {**TEST[1], "checkpoint": "step707000"})], [TRAIN]
    )
    assert report.lines[0].startswith("Judge: 4,961 requests")
    assert "14 USD spent so far" in report.lines[0]


def test_a_missing_key_or_file_is_refused_with_its_remedy(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENAI_API_KEY")
    key, file = check_plan(tmp_path, [TRAIN, BIOASQ]).refusals
    assert "variable OPENAI_API_KEY is empty" in key
    assert "data/bioasq/training14b.json is missing" in file
    assert "`study: {datasets: [triviaqa, jeopardy]" in file
    Path("data/bioasq").mkdir(parents=True)
    Path("data/bioasq/training14b.json").write_text("{}")
    assert len(check_plan(tmp_path, [TRAIN, BIOASQ]).refusals) == 1


def test_downloads_are_listed_with_size_repository_and_token(tmp_path, monkeypatch):
    monkeypatch.delenv("HF_TOKEN", raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    fetch = ("fetch_checkpoint", {"model": "olmo3-32b", "checkpoint": "step262000"})
    downloads, token = check_plan(tmp_path, [fetch]).lines
    assert downloads.startswith("Downloads: 64 GB of allenai/Olmo-3-1125-32B;")
    assert token == "HF_TOKEN is not set; only gated repositories need it."

    (tmp_path / "token").write_text("hf_test")
    assert check_plan(tmp_path, [fetch]).lines[1] == "HF_TOKEN is set."

    # Earlier downloads of the repository, and too little space for the rest
    blobs = tmp_path / "hub" / "models--allenai--Olmo-3-1125-32B" / "blobs"
    blobs.mkdir(parents=True)
    with (blobs / "weights").open("wb") as file:
        file.truncate(12 * 10**9)  # a sparse file takes no space
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=50e9))
    [downloads, _] = check_plan(tmp_path, [fetch]).lines
    assert f"(12 GB of them are in {tmp_path}); with results 64 GB of disk; 50 GB" in downloads
    assert downloads.endswith(
        "too little; set the environment variable HF_HOME to a folder on a larger disk."
    )

    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=53e9))
    assert "too little" not in check_plan(tmp_path, [fetch]).lines[0]


def test_partitions_of_the_profile_must_exist_on_the_cluster(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    profile = ROOT / "profiles" / "slurm"
    report = check_plan(tmp_path, [], arguments=["-n", "--profile", str(profile)])
    [line], [reason] = report
    assert "no account (slurm_account is none); partitions cpu, gpu" in line
    assert reason == "sbatch is not found here; run the command on a login node."
    for command in ("sinfo", "sbatch"):
        (tmp_path / command).write_text("#!/bin/sh\necho cpu\necho large\n")
        (tmp_path / command).chmod(0o755)
    [reason] = check_plan(tmp_path, [], arguments=[f"--profile={profile}"]).refusals
    assert reason.startswith("sinfo knows no partition gpu; correct its name in")
    (tmp_path / "config.yaml").write_text(
        "executor: slurm\ndefault-resources: [slurm_account=lab, mem_mb=8000]"
    )
    [line] = check_plan(tmp_path, [], arguments=["--profile", str(tmp_path)]).lines
    assert line.startswith("SLURM: account lab; SLURM's default partition (")
    laptop = ROOT / "profiles" / "laptop"
    assert not check_plan(tmp_path, [], arguments=["--profile", str(laptop)]).lines


def test_an_environment_without_vllm_is_refused_before_the_first_job():
    beams = [("generate_beams", {**JUDGED, "split": "test"})]

    def refusals(python=None, **options):
        decoding = PAPER["decoding"] | {"backend": "vllm", "python": python}
        inputs = Inputs(Study({**PAPER, "decoding": decoding}), ROOT)
        return preflight(inputs, beams, **options).refusals

    [refusal] = refusals()
    assert "cannot run generate_beams (no package vllm); run with --sdm conda" in refusal
    assert "`decoding: {python: .venv-vllm/bin/python}`" in refusal
    assert refusals(by_conda=True) == []
    [refusal] = refusals(python="/nowhere/python")
    assert refusal.startswith("decoding.python /nowhere/python does not run")


def test_a_real_run_imports_vllm_in_its_own_environment(tmp_path, monkeypatch):
    def refusals(package, **options):
        """Return refusals of a Python with a package vllm that has this content."""
        (tmp_path / "vllm.py").write_text(package)
        python = tmp_path / "python"
        python.write_text(
            f'#!/bin/sh\nPYTHONPATH="$PYTHONPATH:{tmp_path}" exec "{sys.executable}" "$@"\n'
        )
        python.chmod(0o755)
        decoding = PAPER["decoding"] | {"backend": "vllm", "python": str(python)}
        inputs = Inputs(Study({**PAPER, "decoding": decoding}), ROOT)
        beams = [("generate_beams", {**JUDGED, "split": "test"})]
        return preflight(inputs, beams, **options).refusals

    assert refusals("LLM = SamplingParams = None", imports=True) == []
    of_another_torch = "raise ImportError('undefined symbol: _ZN3c10')"
    assert refusals(of_another_torch) == []  # a dry run only finds the package
    [refusal] = refusals(of_another_torch, imports=True)
    assert "cannot run generate_beams (ImportError: undefined symbol: _ZN3c10)" in refusal
    assert "install it there (docs/cluster.md, Decoding with vLLM)." in refusal
    monkeypatch.setattr("study.preflight.IMPORT_S", 1)
    [refusal] = refusals("import time; time.sleep(60)", imports=True)
    assert "did not import vllm within 1 s; try `" in refusal


def test_a_checkpoint_behind_an_api_has_a_cost_and_a_ceiling(tmp_path):
    """100 questions with 4 samples are 400 requests.

    A prompt has 45 + 5 x 30 = 195 tokens: 400 x 195 = 78,000 tokens in, and 100 x 4 x 10 =
    4,000 tokens out. By prices of 1,000 and 2,000 per million tokens: 78 + 8 = 86. After 100
    requests for 20 in total, 300 are left: 86 x 3 / 4 = 64.50.
    """
    prices = {"price_input": 1000, "price_output": 2000}
    checkpoints = {"large": {"api": {"base_url": "http://localhost", "model": "m", **prices}}}
    decoding = {"strategy": "sample", "n_samples": 4, "max_new_tokens": 10}
    config = {
        **PAPER,
        "results": str(tmp_path),
        "models": {"served": {"checkpoints": checkpoints, "evaluation": ["large"]}},
        "datasets": {"quiz": {"source": "atlas", "n_test": 100}},
        "decoding": PAPER["decoding"] | decoding,
    }
    job = {"model": "served", "checkpoint": "large", "dataset": "quiz", "split": "test"}

    def report(**api):
        study = Study({**config, "api": PAPER["api"] | api})
        return preflight(Inputs(study, ROOT), [("sample_from_server", job)])

    [line], [] = report(max_cost=90)
    assert line.startswith("API: 400 requests to served/large, at most about 86.00")
    (tmp_path / "api").mkdir()
    Ledger(f"{tmp_path}/api/spending.csv").add("m", 100, 20.0, "asked")
    [line], [requests, cost] = report(max_cost=80, max_requests=350)
    assert "API: 300 requests to served/large, at most about 64.50" in line
    assert "20.00 spent so far; ceiling 80 (api.max_cost)." in line
    assert "`api: {max_requests: 400}`" in requests
    assert "`api: {max_cost: 90}`" in cost


def test_table_study_and_all_share_their_answer_jobs(paper_dry_runs):
    """Jobs of the table have the same files and settings in `all` of the whole paper."""

    def answer_jobs(target):
        rules = {"generate_beams", "cluster_answers", "judge_answers"}
        jobs = jobs_of(paper_dry_runs[target])
        return {(rule, *job.items()) for rule, job in jobs if rule in rules}

    assert answer_jobs("table") < answer_jobs("study") < answer_jobs("all")
