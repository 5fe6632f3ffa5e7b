"""Contributors see skipped tests with true reasons, and can run the tests of a change."""

import re
from types import SimpleNamespace

import pytest
from changed_tests import ROOT, is_affected
from skips import false_reasons, is_true


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("pandas is not installed", False),
        ("no_such_package is not installed: pip install it", True),
        ("python3 is not installed (see `make test-packages`)", False),
        ("python3, no-such-program not found; run `make test-packages`", True),
        ("there is no python3: make test-packages installs it (Debian)", False),
        ("there is no no-such-program here", True),
        ("needs vLLM in an environment of its own: make test-vllm", True),
        ("/etc/slurm/slurm.conf is there, so this machine may belong to a cluster", False),
        ("flaky", False),
    ],
)
def test_a_reason_to_skip_must_be_true_on_this_machine(reason, expected):
    assert is_true(reason) == expected
    report = SimpleNamespace(nodeid="a.py::test", longrepr=("a.py", 1, f"Skipped: {reason}"))
    assert bool(false_reasons([report])) != expected


@pytest.mark.parametrize(
    ("changed", "test", "expected"),
    [
        ("persistcal/evaluation/smooth_ece.py", "evaluation/test_smooth_ece.py", True),
        # it imports the metric of the module, but its scripts import more than that
        ("persistcal/evaluation/smooth_ece.py", "evaluation/test_evaluate.py", True),
        ("persistcal/evaluation/smooth_ece.py", "command/test_threshold_command.py", False),
        ("persistcal/evaluation/smooth_ece.py", "store/test_provenance.py", False),
        ("tests/helpers/judge_server.py", "judge/test_one_by_one.py", True),
        ("workflow/rules/report.smk", "workflow/test_reruns.py", True),
        ("workflow/rules/report.smk", "evaluation/test_smooth_ece.py", False),
        ("docs/validation.md", "workflow/test_docs.py", True),
        ("config/README.md", "workflow/test_docs.py", True),
        ("config/README.md", "models/test_hub.py", False),  # a README of a model
        ("persistcal/evaluation/metrics/new.py", "test_rooms.py", True),
    ],
)
def test_a_change_affects_the_tests_that_import_or_name_its_files(changed, test, expected):
    assert is_affected(ROOT / "tests" / test, [changed], [changed]) == expected


def test_the_map_of_the_tests_lists_every_folder():
    text = (ROOT / "tests/README.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"`(\w+)/`", text))
    assert listed == {p.parent.name for p in ROOT.glob("tests/*/*.py")} | {"config"}
    assert len(text.splitlines()) <= 40
