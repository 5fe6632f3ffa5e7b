"""Which packages the jobs get, and whether a rule names the environment that it needs."""

import re
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tools import envs

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("environment", ["cpu", "gpu", "vllm"])
def test_an_environment_holds_the_listed_versions_and_no_other_file(environment):
    described = yaml.safe_load((ROOT / "envs" / f"{environment}.yaml").read_text())
    [pip] = [d["pip"] for d in described["dependencies"] if isinstance(d, dict)]
    # Snakemake copies only this file, not the files that it could refer to.
    assert not any(line.startswith(("-r", "-c")) for line in pip)
    listed = [Requirement(line) for line in pip if not line.startswith("-")]
    direct = "vllm.txt" if environment == "vllm" else "requirements.txt"
    wanted = {canonicalize_name(Requirement(r).name) for r in envs.listed(direct)}
    assert wanted <= {canonicalize_name(r.name) for r in listed}
    if environment == "vllm":
        assert "vllm==0.32.0" in pip
        return
    pinned = {name: Requirement(r) for name, r in envs.constraints().items()}
    for requirement in listed:
        pin = pinned[canonicalize_name(requirement.name)].specifier
        [version] = [s.version for s in requirement.specifier]
        assert pin.contains(version), requirement
    torch = next(line for line in pip if line.startswith("torch=="))
    assert torch.endswith("+cpu") == (environment == "cpu")


def test_rules_that_ask_for_gpus_name_an_environment_with_cuda():
    rules = [
        rule
        for path in sorted(ROOT.glob("*/rules/*.smk"))
        for rule in re.split(r"^ *rule ?\w*:$", path.read_text(), flags=re.MULTILINE)[1:]
    ]
    for rule in rules:
        if "script:" not in rule:
            continue
        [environment] = re.findall(r'envs/(.+)\.yaml"', rule) or ["cpu"]
        assert (environment in ("gpu", "{DECODER}")) == ("**ON_GPU" in rule), rule[:300]
    assert sum("**ON_GPU" in rule for rule in rules) >= 7
