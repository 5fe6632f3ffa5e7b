"""A key that stands twice in a config file."""

import pytest
from workflow_runs import ROOT

from study.check import ConfigError
from study.config_files import refuse_repeated_keys


@pytest.mark.parametrize("path", sorted((ROOT / "config").glob("*.yaml")), ids=lambda p: p.name)
def test_no_config_that_ships_repeats_a_key(path):
    refuse_repeated_keys([path])


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a: 1\nb: 2\na: 3\n", "a stands in line 1 and again in line 3"),
        ("a:\n  b: {c: 1,\n    c: 2}\n", r"a\.b\.c stands in line 2 and again in line 3"),
        ("a:\n- b: 1\n- {b: 1, b: 2}\n", r"a\.1\.b stands in line 3 and again in line 3"),
        ('{"a": 1,\n "a": 1}', "a stands in line 1 and again in line 2"),
    ],
)
def test_a_repeated_key_is_named_with_both_lines(tmp_path, text, sentence):
    (tmp_path / "mine.yaml").write_text(text)
    with pytest.raises(ConfigError, match=rf"mine\.yaml: {sentence}.*write it once"):
        refuse_repeated_keys([tmp_path / "mine.yaml"])


def test_the_same_key_in_other_mappings_is_no_repetition(tmp_path):
    (tmp_path / "mine.yaml").write_text("a: &x {b: 1}\nc: *x\nd: [{b: 1}, {b: 2}]\n")
    (tmp_path / "empty.yaml").write_text("")
    refuse_repeated_keys([tmp_path / "mine.yaml", tmp_path / "empty.yaml"])
