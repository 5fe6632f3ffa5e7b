"""The overlay with the release's settings, and the settings that a comparison lists."""

import hashlib

from configs import overlaid, shipped
from workflow_runs import ROOT

from reproduce.released import NOT_THE_PAPERS, settings_compared, shares_cells
from study.check import check_config
from study.config_files import limited


def compared(*overlays):
    config, _ = limited(overlaid(*overlays))
    check_config(config)
    return settings_compared(config, ROOT).split("; ")


def test_the_papers_study_differs_in_nothing_and_its_tables_in_no_number():
    assert compared() == ["the paper's"]
    tables, complete = compared(shipped("whole_paper"))
    assert tables.startswith('study.tables: ["oracle_vs_methods", ')
    assert complete == "study.complete_tables: true"
    [ceiling] = compared({"judge": {"max_cost": 700}})
    assert ceiling == "judge.max_cost: 700"


def test_the_overlay_of_the_release_changes_only_the_documented_keys():
    head, *differs = compared(shipped("as_released"))
    assert head == NOT_THE_PAPERS
    assert {text.partition(": ")[0] for text in differs} == {
        "equivalence.dtype",  # the library's default
        "equivalence.form",
        "judge.endpoint",
        "judge.labels",
        "judge.request.max_completion_tokens",
        "judge.request.max_output_tokens",
        "judge.request.reasoning_effort",
        "prompts.judge_together",
        "scoring.head",
    }


def test_a_smoke_run_is_not_the_papers_study_and_names_its_limit_first():
    head, limit, *further = compared(shipped("smoke"))
    assert head == NOT_THE_PAPERS == "not the paper's study"
    assert limit.startswith('study.limit: {"questions": 20')
    assert {
        'judge.backend: "lexical"',
        "evaluation.replicates: 200",
        "training.seeds: [17, 18]",
        'models.olmo3-7b.evaluation: ["step566000", "step707000"]',
    } <= set(further)


def test_another_prompt_is_named_with_its_digest_and_a_copy_is_not(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "config/prompts/confidence.txt").read_text()
    (tmp_path / "mine.txt").write_text(text)
    assert compared({"prompts": {"confidence": "mine.txt"}}) == ["the paper's"]
    (tmp_path / "mine.txt").write_text(f"{text} ")
    digest = hashlib.sha256(f"{text} ".encode()).hexdigest()[:12]
    assert compared({"prompts": {"confidence": "mine.txt"}}) == [
        NOT_THE_PAPERS,
        f"prompts.confidence: mine.txt ({digest})",
    ]


def test_a_comparison_of_imported_results_lists_only_settings_applied_here():
    config = overlaid({"decoding": {"weighting": "probability"}})
    config["study"] |= {"source": "release", "archive": "a.tar.zst"}
    shown = 'study.source: "release"; study.archive: "a.tar.zst"'
    assert settings_compared(config, ROOT) == shown
    config["estimators"]["gcm_posthoc"]["posthoc"] = "platt"
    assert settings_compared(config, ROOT) == (
        f'{NOT_THE_PAPERS}; {shown}; estimators.gcm_posthoc.posthoc: "platt"'
    )
    config["study"]["predictions"] = "mine.csv"
    assert settings_compared(config, ROOT) == "study.predictions: mine.csv"


def test_only_studies_of_the_papers_models_and_datasets_are_compared():
    paper = ROOT / "resources/paper/results.csv"
    labels = {"models": {"mine": "Olmo 3 7B"}, "datasets": {"own": "TriviaQA", "two": "Quiz"}}
    assert shares_cells(labels, paper)
    assert not shares_cells({**labels, "datasets": {"two": "Quiz"}}, paper)
    assert not shares_cells({**labels, "models": {"olmo3-7b": "Atlas"}}, paper)
