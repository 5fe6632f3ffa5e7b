"""Costs and requests of jobs, by hand from the numbers at the top of costs.py."""

import re
from collections import Counter

import numpy as np
import pytest
from configs import PAPER
from programs import python
from safetensors.numpy import save_file
from workflow_runs import ROOT

from persistcal.answers import decode
from persistcal.confidence import verbalised
from persistcal.confidence.packing import pack_prompts
from study import costs
from study import requests as job_resources
from tools import estimate_cost
from tools.estimate_cost import PlannedJob, Total

PAGE = (ROOT / "docs" / "dag.md").read_text(encoding="utf-8")
BEAMS_32B = {"model": "olmo3-32b", "checkpoint": "step262000", "dataset": "triviaqa"}
BEAMS_7B = {"model": "olmo3-7b", "checkpoint": "step566000", "dataset": "triviaqa"}
ORACLE_32B = {
    "model": "olmo3-32b",
    "dataset": "triviaqa",
    "recipe": "oracle",
    "trained_on": "step262000+step328000+step590120+step656000",
}


def test_beams():
    cost = costs.expected_cost(PAPER, "generate_beams", BEAMS_32B)
    # A tree of 45 + 10 x 30 tokens, of 524,288 bytes each, and ten times 2 MB of logits are
    # 0.201 GB a question. 16 GB hold 79 of them: 9,961 questions are 127 batches of 30 steps,
    # of which three quarters are left where questions begin as others are done.
    # Reading 64.4 GB takes longer than starting (108 + 56 x 54.7) x 8 us = 0.026 s of kernels.
    steps = 127 * 30 * 0.75 * 0.0644
    # 45 tokens of the question and 10 of each beam are computed; each of these steps reads the
    # keys and values of up to 145 tokens
    computed = 2 * 32.2e9 * 9961 * (45 + 100) / 150e12
    moved = 9961 * 10 * 145 * 524_288 / 1e12
    seconds = steps + computed + moved + 64.4
    assert cost.gpus == 2
    assert cost.hours == pytest.approx(seconds / 3600)
    assert cost.gigabytes == pytest.approx(0.009961)


def test_a_split_model_is_computed_in_pieces_as_digit_logits_does():
    assert costs.PIECES_PER_GPU == verbalised.PIECES_PER_GPU
    # 64 answers in four pieces of 16 on two GPUs
    seconds = 2 * 32.2e9 * 1000 * 61.875 / 150e12 * 5 / 8
    found = costs.reading_seconds(PAPER, 32.2e9, 1000, prompts_at_once=64)
    assert found == pytest.approx(seconds)


def test_as_many_questions_fit_as_decoding_takes():
    assert (costs.MOST, costs.TYPICAL) == (decode.MOST, decode.TYPICAL)
    # 16 GB hold 79 questions of 0.201 GB, 8 GB hold 39
    assert costs.questions_at_once(PAPER) == 79
    less = PAPER | {"decoding": PAPER["decoding"] | {"memory_gb": 8}}
    assert costs.questions_at_once(less) == 39
    assert costs.questions_at_once(PAPER | {"decoding": {"batch_size": 5}}) == 5


def queue_passes(steps, at_once):
    """Forward passes where questions begin once half of the places are free."""
    waiting, going, passes = list(steps), [], 0
    while waiting or going:
        n_new = at_once - len(going) if 2 * len(going) <= at_once else 0
        begun, waiting = waiting[:n_new], waiting[n_new:]
        going = [left - 1 for left in begun] + (going if begun else [g - 1 for g in going])
        going = [left for left in going if left]
        passes += 1
    return passes


def test_passes_of_a_queue():
    """After how many passes SmolLM2 was done with each of 512 questions on cities, ten beams.

    `persistcal.answers.question_queue` takes as many passes (tests/answers/test_decode.py).
    """
    counted = np.repeat([2, 3, 4, 5, 6, 7], [26, 286, 127, 48, 13, 12])
    stretched = np.round(counted * costs.STEPS / counted.max()).astype(int)
    of_each = np.resize(np.random.default_rng(0).permutation(stretched), 9961)
    queues = [of_each[start : start + decode.QUEUE * 79] for start in range(0, 9961, 316)]
    passes = sum(queue_passes(queue, 79) for queue in queues)
    assert passes / (127 * costs.STEPS) == pytest.approx(costs.QUEUE_PASSES, abs=0.02)


@pytest.mark.parametrize(("candidates", "at_once"), [(1, 64), (2, 32), (8, 32)])
def test_tokens_of_a_question_are_those_of_packed_prompts(candidates, at_once):
    """Against `pack_prompts` on 1,000 numbered tokens for each prompt, 4,096 units wide."""
    instruction = list(range(30))
    prompts = [
        [
            *instruction,
            *range(question, question + 45),
            *range(question + answer, question + answer + 15),
        ]
        for question in range(1000, 1000 * (at_once // candidates + 1), 1000)
        for answer in range(100, 100 * (candidates + 1), 100)
    ]
    packed = pack_prompts(prompts, 4096).token_ids.size / (at_once // candidates)
    assert costs.question_tokens(candidates, at_once) == pytest.approx(packed)


def test_adapters():
    cost = costs.expected_cost(PAPER, "train_oracle", ORACLE_32B)
    # 5,000 questions with two answers, 4 of them in a piece: 45 + 2 x 15 + 30 / 4 tokens
    # each; 3 seeds, 4 FLOPs per weight; 4 pieces pass 2 GPUs in 5 steps instead of 8
    seconds = 4 * 32.2e9 * 82.5 * 5000 * 3 / 150e12 * 5 / 8 + 64.4
    assert cost.gpus == 4 * 2
    assert cost.hours == pytest.approx(seconds / 3600)
    # 0.01 bytes per weight and adapter at rank 8
    assert cost.gigabytes == pytest.approx(0.01 * 32.2 * 3)
    # One GPU has 16 questions of a micro-batch in a tree, and twice the time in TF32.
    single = {**ORACLE_32B, "model": "olmo3-7b", "trained_on": LAST_SET["oracle"][0]}
    for precision, slower in (("stored", 1), ("float32", 2)):
        config = {**PAPER, "training": {**PAPER["training"], "precision": precision}}
        cost = costs.expected_cost(config, "train_oracle", single)
        seconds = slower * 4 * 7.3e9 * 76.875 * 5000 * 3 / 150e12 + 14.6
        assert (cost.gpus, cost.hours) == (4, pytest.approx(seconds / 3600))


def test_pooled_data_is_as_many_answers_as_it_has_sources():
    job = {**ORACLE_32B, "recipe": "oracle_pooled_data", "trained_on": "step262000"}
    cost = costs.expected_cost(PAPER, "train_oracle_pooled_data", job)
    # one checkpoint learns from the answers of four, 2 x 4 for each question, of which one is
    # in a piece: 45 + 8 x 15 + 30 tokens
    seconds = 4 * 32.2e9 * 195 * 5000 * 3 / 150e12 * 5 / 8 + 64.4
    assert (cost.gpus, cost.hours) == (2, pytest.approx(seconds / 3600))


def test_scores():
    job = {**BEAMS_7B, "recipe": "oracle", "answers": "own"}
    cost = costs.expected_cost(PAPER, "score_answers", job)
    # adapters of 3 seeds score 4,961 test questions, of 45 + 15 + 30 / 16 tokens
    seconds = 2 * 7.3e9 * 3 * 4961 * 61.875 / 150e12 + 14.6
    assert cost.hours == pytest.approx(seconds / 3600)


def test_scores_of_the_transfer_matrices_and_of_surrogates():
    def answers_scored(recipe, answers):
        job = {**BEAMS_7B, "checkpoint": "step424000", "recipe": recipe, "answers": answers}
        hours = costs.expected_cost(PAPER, "score_answers", job).hours
        return (hours * 3600 - 14.6) * 150e12 / (2 * 7.3e9 * 61.875)

    # one seed of 6 pairs; three seeds on the answers of 4 checkpoints; on 5,000 train questions
    assert answers_scored("transfer_random", "transfer") == pytest.approx(6 * 4961)
    assert answers_scored("non_oracle", "evaluation") == pytest.approx(3 * 4 * 4961)
    assert answers_scored("non_oracle", "train") == pytest.approx(3 * 5000)


def test_shards_share_the_work():
    config = {**PAPER, "decoding": {**PAPER["decoding"], "shards": 4}}
    cost = costs.expected_cost(config, "generate_beams", {**BEAMS_7B, "shard": "3"})
    # 9,961 / 4 questions, 79 at once, are 32 batches; the rest as in `test_beams`
    computed = 2 * 7.3e9 * 9961 / 4 * (45 + 100) / 150e12
    moved = 9961 / 4 * 10 * 145 * 524_288 / 1e12
    # (108 + 56 x 33.4) x 8 us of kernels take longer than reading 14.6 GB
    step = (108 + 56 * (7.3e9 / (12 * 128**2)) ** (1 / 3)) * 8e-6
    assert step == pytest.approx(0.0158, abs=1e-4)
    seconds = 32 * 30 * 0.75 * step + computed + moved + 14.6
    assert (cost.gpus, cost.hours) == (1, pytest.approx(seconds / 3600))


def test_variance():
    cost = costs.expected_cost(PAPER, "measure_variance", BEAMS_7B)
    # ten adapters read 4,961 prompts each
    seconds = 2 * 7.3e9 * 10 * 4961 * 61.875 / 150e12 + 14.6
    assert (cost.gpus, cost.hours) == (1, pytest.approx(seconds / 3600))


@pytest.mark.parametrize(
    ("estimator", "gpus", "seconds"),
    [
        ("self_consistency", 0, 0),
        # 3 + 4 checkpoints of 9,961 questions are loaded one after the other
        ("linear_probe", 1, 7 * 14.6 + 2 * 7.3e9 * 7 * 9961 * 61.875 / 150e12),
        # 1 + 4 checkpoints; the entailment model has 0.2 billion weights
        ("self_consistency_surrogate", 1, 0.4 + 5 * 9961 * 15 / 500),
    ],
)
def test_estimators(estimator, gpus, seconds):
    job = {"model": "olmo3-7b", "dataset": "triviaqa", "estimator": estimator}
    cost = costs.expected_cost(PAPER, "estimate_confidences", job)
    assert (cost.gpus, cost.hours) == (gpus, pytest.approx(seconds / 3600))


def test_an_estimator_that_asks_each_checkpoint_costs_the_same_in_parts():
    job = {"model": "olmo3-7b", "dataset": "triviaqa", "estimator": "p_true"}
    whole = costs.expected_cost(PAPER, "estimate_confidences", job)
    names = PAPER["models"]["olmo3-7b"]["evaluation"]
    parts = [
        costs.expected_cost(PAPER, "rate_at_checkpoint", {**job, "checkpoint": name})
        for name in names
    ]
    assert sum(part.hours for part in parts) == pytest.approx(whole.hours, rel=0.05)


def test_judge_requests():
    def requests(job=BEAMS_7B, **changes):
        config = {**PAPER, "judge": {**PAPER["judge"], **changes}}
        return costs.expected_cost(config, "judge_answers", job).requests

    assert requests() == 9961
    assert requests(together=False) == pytest.approx(9961 * 10 * 0.4)  # at most all ten beams
    assert requests(together=False, clusters="needed") == pytest.approx(9961 * 2 * 0.4)
    backbone = {"model": "qwen3-8b", "checkpoint": "main", "dataset": "triviaqa"}
    assert requests(backbone) == 4961  # no training questions


def test_a_request_follows_from_the_size_of_the_model_and_grows_with_attempts():
    # 8 GB and 1.2 times the weights: 8,000 + 1.2 x 14,600 MB
    assert job_resources.request(PAPER, "generate_beams", BEAMS_7B) == (1, 25_520, 60, 1, 1)
    assert job_resources.request(PAPER, "generate_beams", BEAMS_7B, 2) == (1, 51_040, 120, 1, 1)
    oracle = job_resources.request(PAPER, "train_oracle", ORACLE_32B)
    # four models of 64,400 MB, each in a process of its own
    assert (oracle.gpu, oracle.mem_mb, oracle.ranks) == (8, 317_120, 4)
    pooled = {**ORACLE_32B, "recipe": "oracle_pooled_data", "trained_on": "step262000"}
    minutes = 4 * (4 * 32.2e9 * 195 * 5000 * 3 / 150e12 * 5 / 8 + 64.4) / 60
    assert job_resources.request(PAPER, "train_oracle_pooled_data", pooled).runtime == round(
        minutes
    )


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


def test_finished_jobs_correct_the_hours_of_the_same_rule_and_model(tmp_path):
    name = "olmo3-7b.tsv"
    expected = costs.expected_cost(PAPER, "generate_beams", BEAMS_7B).hours * 3600
    (tmp_path / name).write_text(f"s\th:m:s\n{3 * expected}\t-\n{5 * expected}\t-\n")
    done, to_do, other = (
        PlannedJob("generate_beams", tuple(job.items()), benchmark)
        for job, benchmark in [
            (BEAMS_7B, name),
            ({**BEAMS_7B, "checkpoint": "step707000"}, "not yet.tsv"),
            (BEAMS_32B, "not yet.tsv"),
        ]
    )
    factors = estimate_cost.corrections(PAPER, [done, to_do, other], tmp_path)
    assert factors == {("generate_beams", "olmo3-7b"): pytest.approx(4)}
    totals = estimate_cost.total_costs(PAPER, [to_do, other], factors)
    hours_32b = costs.expected_cost(PAPER, "generate_beams", BEAMS_32B).hours
    assert totals["generate_beams"].gpu_hours == pytest.approx(
        4 * expected / 3600 + 2 * hours_32b
    )
    assert totals["judge_answers"] == Total()


def test_the_documented_cost_is_that_of_the_paper(paper_dry_runs):
    jobs = estimate_cost.jobs_of(paper_dry_runs["study"])
    table = estimate_cost.as_table(estimate_cost.total_costs(PAPER, jobs, {}))
    assert table in (ROOT / "docs" / "cluster.md").read_text(), table
    assert "results/logs/generate_beams/olmo3-7b/step141000/triviaqa.tsv" in {
        job.benchmark for job in jobs
    }
    n_jobs = sum(job.rule != "study" for job in jobs)
    assert f"the default target has {n_jobs} of them" in PAGE


@pytest.fixture(scope="module")
def jobs_of_all(paper_dry_runs):
    jobs = estimate_cost.jobs_of(paper_dry_runs["all"])
    return [job for job in jobs if job.rule != "all"]


def test_the_documented_cost_of_all_is_that_of_the_paper(jobs_of_all):
    table = estimate_cost.as_table(estimate_cost.total_costs(PAPER, jobs_of_all, {}))
    assert table in PAGE, table


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


LAST = {"olmo3-7b": "step1413814", "olmo3-32b": "step656000"}
LAST_SET = {
    "non_oracle": ["step141000+step283000+step424000", "step66000+step131000+step197000"],
    "oracle": [
        "step566000+step707000+step1272000+step1413814",
        "step262000+step328000+step590120+step656000",
    ],
}


@pytest.mark.parametrize("line", re.findall(r"^\| `.* × .*", PAGE, flags=re.MULTILINE))
def test_the_documented_cost_of_a_job(line):
    named, *cells = line.strip("| ").split(" | ")
    rule = named.split("`")[1]
    recipe = rule.removeprefix("train_")
    for place, (model, checkpoint) in enumerate(LAST.items()):
        job = {
            "model": model,
            "checkpoint": checkpoint,
            "dataset": "triviaqa",
            "answers": "own",
            "verifier": "gcm",
            "estimator": "self_consistency_surrogate",
        }
        if rule == "score_answers":
            job["recipe"] = "oracle"
        elif recipe != rule:
            sets = LAST_SET.get(recipe, LAST.values())
            job |= {"recipe": recipe, "trained_on": list(sets)[place]}
        cost = costs.expected_cost(PAPER, rule, job)
        if cells[place] != "–":  # the paper has no such job
            assert cells[place] == f"{cost.gpus} × {60 * cost.hours:.0f} min"


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
