"""The laboratory at test size: from facts to the figure of changes, with its controls."""

import pytest
from workflow_runs import PRETRAINING, ROOT, planned, snakemake

from persistcal.questions.labels import normalise_answer
from persistcal.questions.question_list import truths_of
from persistcal.store import artifacts

LAB = [*PRETRAINING[:2], ROOT / "config" / "lab.yaml"]
TINY = """
results: out
study: {estimators: [self_consistency, sequence_probability]}
models:
  atlas:
    pretraining:
      steps: 28
      vocab_size: 800
      batch_size: 8
      schedule: {lr: 1.2e-2}
      architecture: {hidden_size: 32, intermediate_size: 64, n_layers: 2, n_heads: 2}
    checkpoints:
      p10: {step: 2}
      p20: {step: 4}
      p30: {step: 6}
      p40: {step: 8}
      p50: {step: 10}
      p90: {step: 24}
      p100: {step: 28}
      full: {change: {epochs: 1}}
      lora: {change: {epochs: 1}}
      further: {change: {epochs: 1}}
      difference: {change: {epochs: 1}}
      npo: {change: {epochs: 1}}
      edited_tuning: {change: {epochs: 40, learning_rate: 1.0e-2, max_change: 1.0}}
datasets: {atlas: {n_train: 12, n_test: 80, min_contrast: 1, min_city_population: 5000000}}
decoding: {n_beams: 2, max_new_tokens: 6}
evaluation: {replicates: 200, conditioning: [odds]}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lab")
    (folder / "tiny.yaml").write_text(TINY)
    wanted = ["out/changes.csv", "out/tables/by_change.csv", "out/figures/changes.png"]
    snakemake(folder, *wanted, "--cores", 2, configs=[*LAB, folder / "tiny.yaml"])
    return folder


def answers(folder, state):
    path = folder / f"out/answers/atlas/{state}/atlas/test.parquet"
    return artifacts.read(path, artifacts.ANSWERS).set_index("question_id")


@pytest.mark.slow
def test_the_same_weights_have_no_flips(folder):
    changes = artifacts.read_csv(folder / "out/changes.csv", artifacts.CHANGES)
    assert changes["change"].nunique() == 12
    same = changes[changes["change"] == "Control: same weights"]
    assert set(same["estimator"]) == {"self_consistency", "sequence_probability"}
    assert same["questions"].eq(0).all() and same["value"].isna().all()
    numbers = [name for name in same.columns if name.startswith(("beyond_", "of_knowledge"))]
    assert len(numbers) == 6 and same[numbers].isna().all(axis=None)
    assert changes["control"].unique().tolist() == ["Control: other examples", ""]
    assert answers(folder, "p100").equals(answers(folder, "same"))


@pytest.mark.slow
def test_an_edit_is_mirrored_where_the_old_answers_stay_true(folder):
    """The edited state is rated by new truths, and the mirrored state by old truths."""
    path = folder / "out/questions/atlas.parquet"
    questions = artifacts.read(path, artifacts.QUESTIONS).set_index("question_id", drop=False)
    new, mirrored = answers(folder, "edited_tuning"), answers(folder, "edited_before")
    assert new["answer"].equals(mirrored["answer"])
    asked = 0
    for question, truths in truths_of(questions).items():
        assert questions.at[question, "category"] == "edited"
        if question not in new.index:
            continue  # few-shot examples are not asked
        answer = normalise_answer(new.at[question, "answer"])
        is_new = answer in map(normalise_answer, truths["edited_tuning"])
        is_old = answer in map(normalise_answer, questions.at[question, "references"])
        assert not (is_new and is_old)
        labels = new.at[question, "correct"], mirrored.at[question, "correct"]
        assert labels == (is_new, is_old)
        asked += 1
    assert asked > 0
    unedited, base = answers(folder, "unedited"), answers(folder, "p100")
    assert unedited["answer"].equals(base["answer"])
    edited = questions.loc[new.index, "category"] == "edited"
    lost = edited & base["correct"] & ~mirrored["correct"] & new["correct"]
    assert not unedited["correct"][lost].any()  # by the new truths, the edit gains them
    unedited_ids = questions.index[questions["category"] != "edited"].intersection(new.index)
    assert new.loc[unedited_ids, "correct"].equals(mirrored.loc[unedited_ids, "correct"])


@pytest.mark.slow
def test_the_laboratory_plans(tmp_path):
    jobs = planned(snakemake(tmp_path, "-n", configs=LAB))
    assert jobs["change_checkpoint"] == 6 and jobs["retrain_checkpoint"] == 1
    assert jobs["compare_study"] == 1
