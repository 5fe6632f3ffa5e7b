"""Resources, requests and disk space of jobs, by hand from the constants of resources.py."""

import re

import pytest
from configs import PAPER
from programs import python
from workflow_runs import ROOT, jobs_of

from study.resources import JobResources
from study.study import Study
from tools import rulegraph

PAGE = (ROOT / "docs" / "dag.md").read_text(encoding="utf-8")
BEAMS_32B = {"model": "olmo3-32b", "checkpoint": "step262000", "dataset": "triviaqa"}
BEAMS_32B["split"] = "test"
BEAMS_7B = {"model": "olmo3-7b", "checkpoint": "step566000", "dataset": "triviaqa"}
BEAMS_7B["split"] = "test"
ORACLE_32B = {
    "model": "olmo3-32b",
    "dataset": "triviaqa",
    "recipe": "oracle",
    "trained_on": "step262000+step328000+step590120+step656000",
}


def request(config, rule, job, attempt=1):
    return JobResources(Study(config)).request(rule, job, attempt)


def test_memory_and_gpus_follow_the_size_of_the_model_and_grow_with_attempts():
    # 600 MB for each GB of one GPU: 600 x 80
    assert request(PAPER, "generate_beams", BEAMS_7B) == (1, 48_000, 240, 1, 1)
    assert request(PAPER, "generate_beams", BEAMS_7B, 2) == (1, 96_000, 480, 1, 1)
    # Four models of 64.4 GB need a process with two GPUs each.
    assert request(PAPER, "train_oracle", ORACLE_32B) == (8, 384_000, 720, 4, 1)
    # a change trains in float32: 2 x 14.6 GB still fit in half of a GPU of 80 GB
    assert request(PAPER, "change_checkpoint", BEAMS_7B) == (1, 48_000, 720, 1, 1)
    assert request(PAPER, "change_checkpoint", BEAMS_32B).gpu == 2  # 128.8 + 20 GB


def request_on(rule, job, **site):
    return request(PAPER | site, rule, job)


def test_ranks_are_spread_over_nodes_of_four_gpus():
    # Four ranks with two GPUs each, two ranks a node: 600 x 80 x 4 MB on each.
    oracle = request_on("train_oracle", ORACLE_32B, gpus_per_node=4)
    assert (oracle.gpu, oracle.ranks, oracle.nodes, oracle.mem_mb) == (8, 4, 2, 192_000)
    three = ORACLE_32B | {"recipe": "non_oracle", "trained_on": LAST_SET["non_oracle"][1]}
    # Three ranks cannot be split evenly over two nodes, so each gets a node.
    earlier = request_on("train_non_oracle", three, gpus_per_node=4)
    assert (earlier.gpu, earlier.ranks, earlier.nodes, earlier.mem_mb) == (6, 3, 3, 96_000)
    # Three ranks with one GPU each fit a node.
    three |= {"model": "olmo3-7b", "trained_on": LAST_SET["non_oracle"][0]}
    assert request_on("train_non_oracle", three, gpus_per_node=4).nodes == 1
    assert request_on("generate_beams", BEAMS_32B, gpus_per_node=4).nodes == 1
    for site in ({"gpus_per_node": 8}, {"gpus_per_node": None}):
        assert request_on("train_oracle", ORACLE_32B, **site).nodes == 1


def test_the_number_of_gpus_follows_their_memory():
    # 64.4 GB are less than half of 141 GB; with 20 GB more they need three of 40 GB.
    assert request_on("generate_beams", BEAMS_32B, gpu_gb=141).gpu == 1
    assert request_on("generate_beams", BEAMS_32B, gpu_gb=40).gpu == 3
    with pytest.raises(
        ValueError,
        match=r"gpus_per_node is 2, but one copy of the model of generate_beams needs 3 GPUs "
        r"of 40 GB \(gpu_gb\)",
    ):
        request_on("generate_beams", BEAMS_32B, gpu_gb=40, gpus_per_node=2)


def test_a_model_without_a_number_of_parameters_runs_on_the_cpu():
    config = {**PAPER, "models": {"olmo3-7b": {**PAPER["models"]["olmo3-7b"]}}}
    del config["models"]["olmo3-7b"]["parameters"]
    assert request(config, "generate_beams", BEAMS_7B) == (0, 8000, 60, 1, 1)
    assert request(config, "generate_beams", BEAMS_7B, 3) == (0, 24_000, 180, 1, 1)


def test_disk_space_and_judge_requests_equal_values_by_hand():
    def gigabytes(rule, job):
        return JobResources(Study(PAPER)).gigabytes(rule, job)

    def requests(job, **judge):
        config = PAPER | {"judge": PAPER["judge"] | judge}
        return JobResources(Study(config)).judge_requests("judge_answers", job)

    # 4,961 test questions of 1,000 bytes; two bytes a weight
    assert gigabytes("generate_beams", BEAMS_32B) == pytest.approx(0.004961)
    assert gigabytes("fetch_checkpoint", BEAMS_32B) == pytest.approx(64.4)
    # 0.01 bytes per weight and adapter at rank 8, three seeds
    assert gigabytes("train_oracle", ORACLE_32B) == pytest.approx(0.01 * 32.2 * 3)
    # three seeds in 4,961 answers, 20 bytes each
    scores = gigabytes("score_answers", {**BEAMS_7B, "recipe": "oracle", "answers": "own"})
    assert scores == pytest.approx(3 * 4961 * 20 / 1e9)
    # a request for each question, or for each candidate at most
    assert requests(BEAMS_7B) == 4961
    assert requests({**BEAMS_7B, "split": "train"}) == 5000
    assert requests(BEAMS_7B, together=False) == 4961 * 10
    assert requests(BEAMS_7B, together=False, clusters="needed") == 4961 * 2


def test_the_documented_costs_of_the_paper_are_current(paper_dry_runs):
    table = re.search(r"^\| rule .*?\n\n", paper_dry_runs["study"], re.DOTALL | re.MULTILINE)[0]
    assert table in (ROOT / "docs" / "cluster.md").read_text(), table


def test_every_rule_is_documented_with_its_device(paper_dry_runs):
    jobs = [job for job in jobs_of(paper_dry_runs["all"]) if job[0] != "all"]
    needs = rulegraph.needs_of(PAGE)
    boxes = [rulegraph.box_of(rule) for rule, _ in jobs]
    assert set(needs) == set(boxes)
    on_gpu = {
        box
        for box, job in zip(boxes, jobs, strict=True)
        if JobResources(Study(PAPER)).weights(*job)
    }
    assert {rule for rule, need in needs.items() if need == "GPU"} == on_gpu
    drawn = (ROOT / "docs" / "images" / "rulegraph.svg").read_text(encoding="utf-8")
    assert set(re.findall(r"<title>([\w{}]+)</title>", drawn)) == {*boxes, "rules"}


LAST_SET = {
    "non_oracle": ["step141000+step283000+step424000", "step66000+step131000+step197000"],
    "oracle": [
        "step566000+step707000+step1272000+step1413814",
        "step262000+step328000+step590120+step656000",
    ],
}


def resources_of_oracle_32b(dry_run):
    """Return the resources in a dry run for joint training of the largest model."""
    wildcards = "model=olmo3-32b, dataset=triviaqa, recipe=oracle, "
    (job,) = [text for text in dry_run.split("\nrule ") if wildcards in text]
    return set(re.search(r"resources: (.*)", job)[1].split(", "))


def test_joint_training_of_the_largest_model_fits_one_node_of_eight_gpus(paper_dry_runs):
    resources = resources_of_oracle_32b(paper_dry_runs["study"])
    assert resources >= {"mem_mb=384000", "nodes=1", "cpus_per_task=4", "gpu=8"}
    assert "slurm_account=none" in resources  # the shipped profile's
    assert not any(resource.startswith(("mpi=", "gres=", "tasks")) for resource in resources)


@pytest.mark.slow
def test_a_profile_with_four_gpus_per_node_spreads_ranks_over_two_nodes(tmp_path):
    shipped = ROOT / "slurm"  # the README's path
    (tmp_path / "partitions.yaml").write_text((shipped / "partitions.yaml").read_text())
    lines = (shipped / "profile.yaml").read_text()
    changed = lines.replace("gpus_per_node: 8", "gpus_per_node: 4")
    assert changed != lines
    (tmp_path / "profile.yaml").write_text(changed)
    words = ["-m", "snakemake", "--profile", tmp_path, "--dry-run", "--nolock"]
    output = python(*words, "results/tables/oracle_vs_methods.tex", folder=ROOT)
    resources = resources_of_oracle_32b(output)
    assert resources >= {"nodes=2", "gres=gpu:4", "tasks=4", "mpi=srun", "cpus_per_task=1"}
    assert resources >= {"mem_mb=192000", "tasks_per_gpu=0", "rank_timeout_min=120"}
    assert not any(resource.startswith("gpu=") for resource in resources)
