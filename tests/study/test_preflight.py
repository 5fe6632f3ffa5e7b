"""What a run costs and what a person must provide, before its first job."""

from pathlib import Path

import pytest
from configs import PAPER
from snakemake.exceptions import WorkflowError
from workflow_runs import ROOT

from persistcal.store.replies import Ledger
from study.inputs import Inputs
from study.preflight import preflight, refuse_if_missing, request_cost
from study.study import Study
from tools import estimate_cost

JUDGED = {"model": "olmo3-7b", "checkpoint": "step566000", "dataset": "triviaqa"}
TRAIN, TEST = (
    ("judge_answers", {**JUDGED, "split": "train"}),
    (
        "judge_answers",
        {**JUDGED, "split": "test"},
    ),
)
BIOASQ = ("prepare_questions", {"dataset": "bioasq"})


def found(tmp_path, planned, finished=(), arguments=(), **judge):
    config = {**PAPER, "results": str(tmp_path), "judge": PAPER["judge"] | judge}
    return preflight(Inputs(Study(config), ROOT), planned, finished, arguments)


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")


def test_the_cost_of_a_request_by_hand():
    judge = {"price_input": 3, "price_output": 10, "request": {"max_tokens": 8}}
    # 484 + 100 + 16 + 10 x 18 = 780 bytes are 260 tokens, and two messages add 8 each; the
    # reply is at most 10 x 8 tokens: 276 x 3 + 80 x 10 = 1628 millionths
    assert request_cost(judge, "x" * 484, 10) == pytest.approx(1628e-6)
    # 4 bytes a token and 5 tokens a line: (780 / 4 + 16) x 3 + 50 x 10 = 1133
    assert request_cost(judge, "x" * 484, 10, bound=False) == pytest.approx(1133e-6)
    # a single candidate has at least 16 tokens: (484 + 116 + 18) / 3 + 16 = 222
    assert request_cost(judge, "x" * 484, 1) == pytest.approx((222 * 3 + 160) / 1e6)


def test_the_papers_first_table_is_below_the_ceiling_and_all_of_it_above(
    paper_dry_runs, tmp_path
):
    lines = {
        target: paper_dry_runs[target].split("of execution.")[-1]
        for target in ("table", "study")
    }
    # 9 earlier checkpoints x 10,000 train questions; 11 evaluation checkpoints x (10,000 train
    # + 9,961 test): 90,000 + 219,571
    assert "Judge: 309,571 requests to gpt-5.4 (openai_batch), at most" in lines["table"]
    assert "ceiling 500 USD" in lines["table"]
    assert "above the ceiling" not in lines["table"]
    assert "bioasq" not in lines["table"].lower()
    # and 20 checkpoints x 2,719 of BioASQ, 9 x 9,961 test questions: 309,571 + 54,380 + 89,649
    assert "Judge: 453,600 requests" in lines["study"]
    assert "add the line `judge: {max_cost: 6" in lines["study"]
    assert "the line `study: {datasets: [triviaqa, jeopardy]" in lines["study"]


def test_a_run_above_the_ceiling_is_refused_with_the_line_that_allows_it(tmp_path):
    report = found(tmp_path, [TRAIN, TEST], max_cost=5)
    assert report.lines[0].startswith("Judge: 9,961 requests to gpt-5.4")
    with pytest.raises(WorkflowError, match=r"Nothing has started:\n- .*max_cost: 20}"):
        refuse_if_missing(report)
    assert not found(tmp_path, [TRAIN, TEST], max_cost=20).refusals


def test_replies_that_were_paid_before_are_not_asked_for_again(tmp_path):
    (tmp_path / "judge").mkdir()
    Ledger(f"{tmp_path}/judge/spending.csv").add("gpt-5.4", 9961, 14.0, "batch")
    # All are kept: an edit of code runs the jobs again and asks for nothing.
    assert not found(tmp_path, [TRAIN, TEST], max_cost=15).lines
    # The ledger's requests are those of the finished job and of 4,961 planned ones.
    report = found(
        tmp_path, [TEST, (TEST[0], {**TEST[1], "checkpoint": "step707000"})], [TRAIN]
    )
    assert report.lines[0].startswith("Judge: 4,961 requests")
    assert "14 USD spent so far" in report.lines[0]


def test_what_a_person_must_provide_is_named_if_it_is_missing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENAI_API_KEY")
    key, file = found(tmp_path, [TRAIN, BIOASQ]).refusals
    assert "variable OPENAI_API_KEY is empty" in key
    assert "data/bioasq/training14b.json is missing" in file
    assert "`study: {datasets: [triviaqa, jeopardy]" in file
    Path("data/bioasq").mkdir(parents=True)
    Path("data/bioasq/training14b.json").write_text("{}")
    assert len(found(tmp_path, [TRAIN, BIOASQ]).refusals) == 1


def test_downloads_name_repositories_and_the_token_of_the_hub(tmp_path, monkeypatch):
    monkeypatch.delenv("HF_TOKEN", raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    fetch = ("fetch_checkpoint", {"model": "olmo3-32b", "checkpoint": "step262000"})
    downloads, token = found(tmp_path, [fetch]).lines
    assert downloads.startswith("Downloads: 64 GB of allenai/Olmo-3-1125-32B;")
    assert token == "HF_TOKEN is not set; only gated repositories need it."
    (tmp_path / "token").write_text("hf_test")
    assert found(tmp_path, [fetch]).lines[1] == "HF_TOKEN is set."


def test_account_and_partitions_are_those_of_the_profile(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    profile = ROOT / "profiles" / "slurm"
    [line] = found(tmp_path, [], arguments=["-n", "--profile", str(profile)]).lines
    assert "no account (slurm_account is none); partitions cpu, gpu" in line
    sinfo = tmp_path / "sinfo"
    sinfo.write_text("#!/bin/sh\necho cpu\necho large\n")
    sinfo.chmod(0o755)
    [reason] = found(tmp_path, [], arguments=[f"--profile={profile}"]).refusals
    assert reason.startswith("sinfo knows no partition gpu; correct its name in")
    laptop = ROOT / "profiles" / "laptop"
    assert not found(tmp_path, [], arguments=["--profile", str(laptop)]).lines


def test_the_environment_of_vllm_is_looked_for_before_the_first_job(tmp_path, monkeypatch):
    beams = [("generate_beams", {**JUDGED, "split": "test"})]

    def reasons(*arguments, **decoding):
        config = {**PAPER, "decoding": PAPER["decoding"] | {"backend": "vllm", **decoding}}
        return preflight(Inputs(Study(config), ROOT), beams, (), arguments).refusals

    [reason] = reasons()
    assert "has no vllm, which generate_beams needs" in reason
    assert "`decoding: {python: .venv-vllm/bin/python}`" in reason
    assert reasons("--sdm", "conda") == []
    [reason] = reasons(python="/nowhere/python")
    assert reason.startswith("decoding.python /nowhere/python does not run")
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\n")
    python.chmod(0o755)
    assert reasons(python=str(python)) == []  # it lacks nothing


def test_a_study_that_names_no_file_or_judge_has_nothing_to_say(tmp_path):
    report = found(tmp_path, [("compute_metrics", {"model": "m"})])
    assert report.text == "" and not report.refusals


def test_the_two_targets_decode_nothing_twice(paper_dry_runs):
    """A job of the table has the same files and settings as in `all`."""

    def answer_jobs(target):
        rules = {"generate_beams", "cluster_answers", "judge_answers"}
        jobs = estimate_cost.jobs_of(paper_dry_runs[target])
        return {(job.rule, job.wildcards) for job in jobs if job.rule in rules}

    assert answer_jobs("table") < answer_jobs("study") < answer_jobs("all")
