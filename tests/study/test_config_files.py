"""Reading configs: repeated keys, values that YAML misreads, sources, limits and defaults."""

from pathlib import Path

import pytest
import yaml
from configs import overlaid

from persistcal.confidence.estimators.catalogue import ESTIMATORS
from study.check import check_config
from study.config_files import limited, over_defaults, refuse_misread, settle_sources
from study.schema import ConfigError, without_defaults

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a: 1\nb: 2\na: 3\n", "a stands in line 1 and again in line 3"),
        ("a:\n  b: {c: 1,\n    c: 2}\n", r"a\.b\.c stands in line 2 and again in line 3"),
        ("a:\n- b: 1\n- {b: 1, b: 2}\n", r"a\.1\.b stands in line 3 and again in line 3"),
        ('{"a": 1,\n "a": 1}', "a stands in line 1 and again in line 2"),
    ],
)
def test_a_repeated_key_is_refused_with_both_lines(tmp_path, text, sentence):
    (tmp_path / "mine.yaml").write_text(text)
    with pytest.raises(ConfigError, match=rf"mine\.yaml: {sentence}.*write it once"):
        refuse_misread([tmp_path / "mine.yaml"])


def test_a_key_can_be_used_in_several_mappings(tmp_path):
    (tmp_path / "mine.yaml").write_text("a: &x {b: 1}\nc: *x\nd: [{b: 1}, {b: 2}]\n")
    (tmp_path / "empty.yaml").write_text("")
    refuse_misread([tmp_path / "mine.yaml", tmp_path / "empty.yaml"])


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a: 1\nn_test: 010\n", "line 2 has 010, which YAML reads as the number 8; put it in"),
        ("hours: 1:30", "line 1 has 1:30, which YAML reads as the number 90"),
    ],
)
def test_octal_and_sexagesimal_numbers_are_refused(tmp_path, text, sentence):
    (tmp_path / "mine.yaml").write_text(text)
    with pytest.raises(ConfigError, match=rf"mine\.yaml: {sentence}"):
        refuse_misread([tmp_path / "mine.yaml"])


def test_quoted_texts_and_decimal_numbers_are_accepted(tmp_path):
    text = "a: ['010', \"1:30\", 2024-01-01 x, 0, 0.5, 10, 1.0e-3, -0.1, '2024-01-01']"
    (tmp_path / "mine.yaml").write_text(text)
    refuse_misread([tmp_path / "mine.yaml"])


def test_null_removes_an_inherited_source_of_weights(tmp_path):
    checkpoints = {"a": {"revision": None, "step": 1}, "b": {"revision": "b", "repo": "x/y"}}
    config = {"models": {"m": {"repo": None, "checkpoints": checkpoints}}}
    settle_sources(config, tmp_path)
    assert config == {
        "models": {"m": {"checkpoints": {"a": {"step": 1}, "b": checkpoints["b"]}}}
    }


def test_a_relative_folder_is_first_searched_in_the_working_directory(tmp_path, monkeypatch):
    (tmp_path / "project" / "mine").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    config = {"models": {"m": {"repo": "mine"}, "other": {"repo": "lab/model"}, "odd": None}}
    settle_sources(config, tmp_path / "project")
    assert config["models"]["m"]["repo"] == str(tmp_path / "project" / "mine")
    assert config["models"]["other"]["repo"] == "lab/model"
    (tmp_path / "mine").mkdir()
    config = {"models": {"m": {"repo": "mine"}}}
    settle_sources(config, tmp_path / "project")
    assert config["models"]["m"]["repo"] == "mine"  # the working directory has priority


def test_estimators_are_shown_in_the_order_of_the_config():
    names = list(over_defaults({}, ROOT)["estimators"])
    first = ["end_correct", "self_consistency", "self_consistency_posthoc"]
    assert names[:3] == first
    assert names.index("non_oracle") < names.index("oracle") < names.index("gcm")
    assert set(ESTIMATORS) - {"verifier"} <= set(names)


def test_a_study_of_predictions_has_the_estimators_of_its_file():
    study = {"predictions": "mine.csv", "models": ["m"], "datasets": ["quiz"]}
    assert over_defaults({"study": study}, ROOT)["study"]["tables"] == []
    with pytest.raises(ConfigError, match=r"study\.estimators has no meaning .* leave it out"):
        over_defaults({"study": {**study, "estimators": ["oracle"]}}, ROOT)


def test_a_limit_keeps_adjacent_checkpoints_and_datasets_with_their_files():
    config = over_defaults({"study": {"limit": {"evaluation": 2, "earlier": 1}}}, ROOT)
    small, notes = limited(config)
    # The limit keeps the last training checkpoint and the first two evaluated checkpoints.
    assert small["models"]["olmo3-7b"]["earlier"] == ["step424000"]
    assert small["models"]["olmo3-7b"]["evaluation"] == ["step566000", "step707000"]
    assert small["study"]["datasets"] == ["triviaqa", "jeopardy"]
    [note] = notes
    assert note == "BioASQ is left out, because data/bioasq/training14b.json is missing."
    assert limited(over_defaults({}, ROOT))[1] == []


def test_the_smoke_run_needs_no_server_and_trains_two_seeds():
    smoke = yaml.safe_load((ROOT / "config" / "smoke.yaml").read_text())
    study, _ = limited(over_defaults(smoke, ROOT))
    assert study["judge"]["backend"] == "lexical"
    assert study["training"]["seeds"] == [17, 18]
    assert {d["min_contrast"] for d in study["datasets"].values()} == {1}
    check_config(study)


def test_a_key_that_is_written_with_its_default_changes_no_parameter():
    written = {
        "equivalence": {"dtype": "float32"},
        "models": {"olmo3-7b": {"chat": False, "checkpoints": {"step566000": {"examples": 0}}}},
        "tables": {"oracle_vs_methods": {"marks": "paper"}},
    }
    assert without_defaults(overlaid(written)) == without_defaults(overlaid())
    other = {
        "equivalence": {"dtype": "float16"},
        "models": {"olmo3-7b": {"chat": True, "checkpoints": {"step566000": {"examples": 1}}}},
    }
    assert without_defaults(overlaid(other)) == overlaid(other)


def test_number_one_is_not_the_default_true():
    shape = {"models": {"olmo3-7b": {"shape": {"gated": 1, "tied": False}}}}
    kept = without_defaults(overlaid(shape))["models"]["olmo3-7b"]["shape"]
    assert kept["gated"] == 1 and "tied" not in kept
