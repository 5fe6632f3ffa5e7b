"""Write envs/cpu.yaml, gpu.yaml and vllm.yaml from the lists of packages: `make envs`.

Snakemake copies such a file elsewhere before conda reads it, so that it can name no other
file: every version of envs/constraints.txt that is needed is in it.
"""

from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ENVS = Path(__file__).resolve().parents[1] / "envs"
PYTHON = "3.11"
CPU_INDEX = "https://download.pytorch.org/whl/cpu"  # builds of torch without CUDA
ABOUT = {
    "cpu": "Jobs that run no model of size: tables, figures, questions, atlas.",
    "gpu": "Jobs that run models. PyPI's torch is built for CUDA and runs without a GPU too.",
    "vllm": "generate_beams with decoding.backend vllm, which fixes versions of its own.",
}
VLLM = "vllm==0.32.0"


def listed(name: str) -> list[str]:
    """Return the requirements in a file of `envs`, without comments."""
    lines = (ENVS / name).read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def constraints() -> dict[str, str]:
    """Return the pinned requirements of envs/constraints.txt by name."""
    return {canonicalize_name(Requirement(r).name): r for r in listed("constraints.txt")}


def closure(wanted: Iterable[str], installed: Iterable[str]) -> list[str]:
    """Return the names in `wanted` and their dependencies, with versions as installed here."""
    waiting, seen = [Requirement(r) for r in wanted], set()
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        if name in seen or name not in installed:
            continue
        seen.add(name)
        try:
            needed = [Requirement(r) for r in requires(name) or []]
        except PackageNotFoundError:
            continue
        extras = [{"extra": extra} for extra in ["", *requirement.extras]]
        waiting += [
            r for r in needed if r.marker is None or any(r.marker.evaluate(e) for e in extras)
        ]
    return sorted(seen)


def packages(environment: str) -> list[str]:
    """Return what pip installs in an environment, options first."""
    if environment == "vllm":
        return [VLLM, *listed("vllm.txt")]
    pinned = constraints()
    pins = [pinned[name] for name in closure(listed("requirements.txt"), pinned)]
    if environment == "gpu":
        return pins
    on_cpu = [f"{r}+cpu" if r.startswith("torch==") else r for r in pins]
    return [f"--extra-index-url {CPU_INDEX}", *on_cpu]


def page(environment: str) -> str:
    """Return the text of an environment's file."""
    lines = [f"# {ABOUT[environment]}", "# Made by `make envs`.", "channels: [conda-forge]"]
    lines += ["dependencies:", f"  - python={PYTHON}", "  - pip", "  - pip:"]
    return "\n".join([*lines, *(f"      - {r}" for r in packages(environment))]) + "\n"


if __name__ == "__main__":
    for environment in ABOUT:
        (ENVS / f"{environment}.yaml").write_text(page(environment), encoding="utf-8")
