"""Resources, requests and disk of jobs, by hand from the numbers at the top of costs.py."""

import re
from collections import Counter

import numpy as np
import pytest
from configs import PAPER
from programs import python
from safetensors.numpy import save_file
from workflow_runs import ROOT

from study import costs
from study import requests as job_resources
from tools import estimate_cost

PAGE = (ROOT / "docs" / "dag.md").read_text(encoding="utf-8")
BEAMS_32B = {"model": "olmo3-32b", "checkpoint": "step262000", "dataset": "triviaqa"}
BEAMS_7B = {"model": "olmo3-7b", "checkpoint": "step566000", "dataset": "triviaqa"}
ORACLE_32B = {
    "model": "olmo3-32b",
    "dataset": "triviaqa",
    "recipe": "oracle",
    "trained_on": "step262000+step328000+step590120+step656000",
}


def test_a_request_follows_from_the_size_of_the_model_and_grows_with_attempts():
    # 8 GB and 1.2 times the weights: 8,000 + 1.2 x 14,600 MB
    assert job_resources.request(PAPER, "generate_beams", BEAMS_7B) == (1, 25_520, 240, 1, 1)
    assert job_resources.request(PAPER, "generate_beams", BEAMS_7B, 2) == (1, 51_040, 480, 1, 1)
    oracle = job_resources.request(PAPER, "train_oracle", ORACLE_32B)
    # four models of 64,400 MB, each in a process of its own
    assert oracle == (8, 317_120, 720, 4, 1)


def request_on(rule, job, **site):
    return job_resources.request(PAPER | site, rule, job)


def test_nodes_of_four_gpus():
    # Four ranks with two GPUs each, two ranks a node: 8,000 + 1.2 x 2 x 64,400 MB on each.
    oracle = request_on("train_oracle", ORACLE_32B, gpus_per_node=4)
    assert (oracle.gpu, oracle.ranks, oracle.nodes, oracle.mem_mb) == (8, 4, 2, 162_560)
    three = ORACLE_32B | {"recipe": "non_oracle", "trained_on": LAST_SET["non_oracle"][1]}
    # Three ranks have no half: a node each.
    earlier = request_on("train_non_oracle", three, gpus_per_node=4)
    assert (earlier.gpu, earlier.ranks, earlier.nodes, earlier.mem_mb) == (6, 3, 3, 85_280)
    # Three ranks with one GPU each fit a node.
    three |= {"model": "olmo3-7b", "trained_on": LAST_SET["non_oracle"][0]}
    assert request_on("train_non_oracle", three, gpus_per_node=4).nodes == 1
    assert request_on("generate_beams", BEAMS_32B, gpus_per_node=4).nodes == 1
    for site in ({"gpus_per_node": 8}, {"gpus_per_node": None}):
        assert request_on("train_oracle", ORACLE_32B, **site).nodes == 1


def test_gpus_of_another_size():
    # 64.4 GB are less than half of 141 GB; with 20 GB more they need three of 40 GB.
    assert request_on("generate_beams", BEAMS_32B, gpu_gb=141).gpu == 1
    assert request_on("generate_beams", BEAMS_32B, gpu_gb=40).gpu == 3
    with pytest.raises(
        ValueError,
        match=r"gpus_per_node is 2, but one copy of the model of generate_beams needs 3 GPUs "
        r"of 40 GB \(gpu_gb\)",
    ):
        request_on("generate_beams", BEAMS_32B, gpu_gb=40, gpus_per_node=2)


def test_a_model_without_a_size_runs_on_the_cpu():
    config = {**PAPER, "models": {"olmo3-7b": {**PAPER["models"]["olmo3-7b"]}}}
    del config["models"]["olmo3-7b"]["parameters"]
    assert job_resources.request(config, "generate_beams", BEAMS_7B) == (0, 2000, 60, 1, 1)


def test_memory_on_a_cpu_is_that_of_the_weights_in_the_files(tmp_path):
    for revision, n in {"a": 1000, "b": 3000}.items():
        folder = tmp_path / revision
        folder.mkdir()
        half = np.zeros((n, 1000), np.float16)
        for part in ("one", "two"):
            save_file({part: half}, folder / f"{part}.safetensors")
    (tmp_path / "a" / "broken.safetensors").write_bytes(b"no tensors")
    checkpoints = {name: {"revision": name} for name in "ab"}
    mine = {"repo": str(tmp_path), "checkpoints": checkpoints, "evaluation": ["a", "b"]}
    config = {**PAPER, "models": {**PAPER["models"], "mine": mine}}
    # the larger checkpoint has 2 x 3 million weights, at 40 bytes each
    job = {**BEAMS_7B, "model": "mine"}
    assert job_resources.request(config, "generate_beams", job).mem_mb == 2000 + 240
    together = {**job, "recipe": "oracle", "trained_on": "a+b"}
    assert job_resources.request(config, "train_oracle", together).mem_mb == 2000 + 480


def test_memory_holds_all_models_of_an_average():
    about = PAPER["models"]["olmo3-7b"]
    half = {"merge": {"step566000": 0.5, "step1413814": 0.5}}
    mine = {**about, "checkpoints": {**about["checkpoints"], "half": half}}
    mine["evaluation"] = ["half", "step566000"]
    config = {**PAPER, "models": {"olmo3-7b": mine}}
    job = {**BEAMS_7B, "checkpoint": "half"}
    # 8 GB and twice 1.2 times 7.3 billion weights of two bytes
    assert job_resources.request(config, "generate_beams", job).mem_mb == 8000 + 2 * 17_520
    # one of two ranks loads one model more: 8 GB and three times 17.52 GB
    oracle = {**ORACLE_32B, "model": "olmo3-7b", "trained_on": "half+step566000"}
    assert job_resources.request(config, "train_oracle", oracle).mem_mb == 8000 + 3 * 17_520
    del mine["parameters"]
    # on a CPU one of no size known, as files made here will be
    assert job_resources.request(config, "generate_beams", job).mem_mb == 2000


def test_disk_and_requests():
    def cost(rule, job, **judge):
        return costs.expected_cost(PAPER | {"judge": PAPER["judge"] | judge}, rule, job)

    # 9,961 questions of 1,000 bytes; two bytes a weight
    assert cost("generate_beams", BEAMS_32B).gigabytes == pytest.approx(0.009961)
    assert cost("fetch_checkpoint", BEAMS_32B).gigabytes == pytest.approx(64.4)
    # 0.01 bytes per weight and adapter at rank 8, three seeds
    assert cost("train_oracle", ORACLE_32B).gigabytes == pytest.approx(0.01 * 32.2 * 3)
    # three seeds in 4,961 answers, 20 bytes each
    scores = cost("score_answers", {**BEAMS_7B, "recipe": "oracle", "answers": "own"})
    assert scores.gigabytes == pytest.approx(3 * 4961 * 20 / 1e9)
    # a request for each question, or for each candidate at most
    assert cost("judge_answers", BEAMS_7B).requests == 9961
    assert cost("judge_answers", BEAMS_7B, together=False).requests == 9961 * 10
    needed = cost("judge_answers", BEAMS_7B, together=False, clusters="needed")
    assert needed.requests == 9961 * 2
    backbone = {"model": "qwen3-8b", "checkpoint": "main", "dataset": "triviaqa"}
    assert cost("judge_answers", backbone).requests == 4961  # no training questions


@pytest.fixture(scope="module")
def jobs_of_all(paper_dry_runs):
    jobs = estimate_cost.jobs_of(paper_dry_runs["all"])
    return [job for job in jobs if job.rule != "all"]


def test_the_documented_cost_is_that_of_the_paper(paper_dry_runs):
    jobs = estimate_cost.jobs_of(paper_dry_runs["study"])
    table = estimate_cost.as_table(estimate_cost.total_costs(PAPER, jobs))
    assert table in (ROOT / "docs" / "cluster.md").read_text(), table
    n_jobs = sum(job.rule != "study" for job in jobs)
    assert f"the default target has {n_jobs} of them" in PAGE


def test_every_rule_is_documented_with_its_jobs_and_what_it_needs(jobs_of_all):
    listed = re.findall(r"^\| `([\w{}]+)` \| (\w+) \| (\d+) \|", PAGE, flags=re.MULTILINE)
    boxes = [re.sub(r"^train_\w+", "train_{recipe}", job.rule) for job in jobs_of_all]
    assert {rule: int(n) for rule, _, n in listed} == Counter(boxes)
    assert f"all {len(boxes)} jobs of `all`" in PAGE
    on_gpu = {
        box
        for box, job in zip(boxes, jobs_of_all, strict=True)
        if costs.expected_cost(PAPER, job.rule, dict(job.wildcards)).gpus
    }
    assert {rule for rule, needs, _ in listed if needs == "GPU"} == on_gpu
    drawn = (ROOT / "docs" / "images" / "rulegraph.svg").read_text(encoding="utf-8")
    assert set(re.findall(r"<title>([\w{}]+)</title>", drawn)) == {*boxes, "rules"}


LAST_SET = {
    "non_oracle": ["step141000+step283000+step424000", "step66000+step131000+step197000"],
    "oracle": [
        "step566000+step707000+step1272000+step1413814",
        "step262000+step328000+step590120+step656000",
    ],
}


def asked_by_oracle_32b(dry_run):
    """What a dry run says that the joint training of the largest model asks for."""
    wildcards = "model=olmo3-32b, dataset=triviaqa, recipe=oracle, "
    (job,) = [text for text in dry_run.split("\nrule ") if wildcards in text]
    return set(re.search(r"resources: (.*)", job)[1].split(", "))


def test_what_a_model_needs_is_asked_for_on_one_node(paper_dry_runs):
    asked = asked_by_oracle_32b(paper_dry_runs["study"])
    assert asked >= {"mem_mb=317120", "nodes=1", "cpus_per_task=4", "gpu=8"}
    assert "slurm_account=none" in asked  # the shipped profile's
    assert not any(resource.startswith(("mpi=", "gres=", "tasks")) for resource in asked)


@pytest.mark.slow
def test_a_site_with_other_nodes_says_so_in_its_profile(tmp_path):
    shipped = ROOT / "slurm"  # as the README names it
    (tmp_path / "partitions.yaml").write_text((shipped / "partitions.yaml").read_text())
    lines = (shipped / "profile.yaml").read_text()
    changed = lines.replace("gpus_per_node: 8", "gpus_per_node: 4")
    assert changed != lines
    (tmp_path / "profile.yaml").write_text(changed)
    words = ["-m", "snakemake", "--profile", tmp_path, "--dry-run", "--nolock"]
    said = python(*words, "results/tables/oracle_vs_methods.tex", folder=ROOT)
    asked = asked_by_oracle_32b(said)
    assert asked >= {"nodes=2", "gres=gpu:4", "tasks=4", "mpi=srun", "cpus_per_task=1"}
    assert asked >= {"mem_mb=162560", "tasks_per_gpu=0", "rank_timeout_min=120"}
    assert not any(resource.startswith("gpu=") for resource in asked)
