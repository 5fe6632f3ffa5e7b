"""The jobs of the paper's study, counted by hand from its protocol.

Models and their checkpoints, earlier + evaluation: Olmo 3 7B 3 + 4, Marin 8B 3 + 3, Olmo 3
32B 3 + 4, together 9 + 11 = 20. TriviaQA and Jeopardy have a train split, BioASQ only has test
questions: 3 models x 2 train splits = 6.
"""

import re

import pytest
from workflow_runs import planned

STUDY = {
    "prepare_questions": 3,
    "resolve_checkpoint": 20,
    "fetch_checkpoint": 20,
    "fetch_entailment_model": 1,
    # every checkpoint answers the test splits of all three sets and two train splits: 20 x 5
    "generate_beams": 100,
    "cluster_answers": 100,
    "judge_answers": 100,
    # jointly on all earlier, and on all evaluation checkpoints
    "train_non_oracle": 6,
    "train_oracle": 6,
    # a recipe's adapters at a checkpoint behind one load, for each dataset: 2 x 11 x 3
    "score_answers": 66,
    # end_correct, self_consistency: 3 models x 3 datasets; post-hoc needs a train split: 6
    "estimate_confidences": 9 + 9 + 6,
    # non-oracle, oracle
    "gather_confidences": 2 * 9,
    "list_contrast_sets": 9,
    # each estimator: 24 + 18
    "join_labels": 42,
    "evaluate_estimator": 42,
    "compare_table": 1,
    "compare_study": 1,
    "collect_results": 1,
    "make_claims": 1,
    "make_findings": 1,
    "measure_subsets": 9,
    "compute_accuracies": 1,
    "make_table": 1,
    "compare_with_paper": 1,
    "make_page": 1,
}

ALL = {
    **STUDY,
    # Qwen3 8B: the verifier's weights, which also answer TriviaQA and Jeopardy themselves
    "resolve_checkpoint": 21,
    "fetch_checkpoint": 21,
    "generate_beams": 102,
    "cluster_answers": 102,
    "judge_answers": 102,
    "resolve_adapter": 1,
    "fetch_adapter": 1,
    "score_with_verifier": 6,
    "train_non_oracle_single": 6,
    "train_non_oracle_1answer": 6,
    "train_non_oracle_single_1answer": 6,
    "train_oracle_1answer": 6,
    # in a table about Olmo 3 7B: jointly, and for each of 4 evaluation checkpoints, on two sets
    "train_oracle_single_data": 2,
    "train_oracle_pooled_data": 8,
    # an adapter for each evaluation checkpoint: 11 x 2
    "train_oracle_respective": 22,
    "train_oracle_respective_1answer": 22,
    # Olmo 3 7B: each of its 7 checkpoints and each of the 6 pairs of neighbours, on two sets;
    # hidden states on TriviaQA alone
    "train_transfer": 14,
    "train_transfer_random": 12,
    "train_hidden_states": 7,
    "measure_variance": 7,
    # Further recipes on sets with a train split: six of them at 11 x 2, single and pooled data
    # at 4 x 2; the last earlier checkpoint scores the others' answers (surrogate) and its own
    # (copy), 3 x 2 each; transfer matrices: two recipes at 7 x 2.
    "score_answers": 66 + 6 * 22 + 2 * 8 + 2 * 6 + 2 * 14,
    # surrogate, copy, gcm and gcm_posthoc on 6 each
    "estimate_confidences": 24 + 4 * 6,
    # surrogate, copy, single, respective and four with 1 answer on 6; two for Olmo 3 7B on 2
    "gather_confidences": 18 + 8 * 6 + 2 * 2,
    "join_labels": 48 + 70,
    "evaluate_estimator": 48 + 70,
    "compare_table": 8 + 2 * 2,
    # ten tables, of which two are made for each of the sets with a train split
    "make_table": 8 + 2 * 2,
    "measure_transfer": 2,
    "correlate_variance": 1,
    "measure_confounds": 1,
    "measure_headroom": 6,
    "compare_weights": 3,
    "draw_audit": 1,
}


@pytest.mark.parametrize(("target", "jobs"), [("study", STUDY), ("all", ALL)])
def test_the_papers_study_has_the_jobs_of_its_protocol(paper_dry_runs, target, jobs):
    planned_jobs = planned(paper_dry_runs[target])
    # tables and figures that every study has
    assert {planned_jobs.pop(rule) > 0 for rule in ("make_plain_table", "draw_figure")} == {
        True
    }
    assert planned_jobs == jobs


def test_the_papers_study_trains_the_adapters_of_its_protocol(paper_dry_runs):
    """Recipes have three seeds, transfer matrices one and hidden states ten."""
    adapters = set(re.findall(r"\S+/seed\d+/adapter_model.safetensors", paper_dry_runs["all"]))
    of_estimators = 6 * 6 + 2 + 2 * 22 + 8
    assert len(adapters) == 3 * of_estimators + 14 + 12 + 10 * 7
