"""The policy of a release gate, from words or a YAML file, and its rulings as files."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

from persistcal.evaluation.gate import (
    ACCURACY,
    FAIL,
    THRESHOLD,
    UNDECIDED,
    Gate,
    Limit,
    PolicyError,
    Ruling,
    check_policy,
)
from persistcal.evaluation.predictions import NO_CONFIDENCE
from persistcal.readers.inputs import PredictionTables
from persistcal.report.phrases import ruling_text

SIGNS = {"pass": "✅", FAIL: "❌", UNDECIDED: "❔"}
DATASETS = "datasets"  # the key of a file with other limits by dataset


class Rules(NamedTuple):
    """Limits by key, and other limits for some datasets.

    The short form `--fail-if` is not strict: it accepts files without data.
    """

    policy: Mapping[str, Limit]
    by_dataset: Mapping[str, Mapping[str, Limit]] = {}
    is_strict: bool = True

    @property
    def precision(self) -> float | None:
        """The precision in the policy, or None."""
        limit = self.policy.get(THRESHOLD)
        return None if limit is None else float(limit)


def rules_of_words(words: Sequence[str], precision: float) -> Rules:
    """Read rules from words. The word `threshold` alone means the given precision.

    >>> rules_of_words(["accuracy=-0.02", "threshold"], 0.9).policy
    {'accuracy': -0.02, 'threshold': 0.9}
    """
    limits: dict[str, Any] = {}
    for word in words:
        key, has_limit, limit = word.partition("=")
        if key in limits:
            raise PolicyError(f"The gate has {key} twice; keep one.")
        limits[key] = precision if key == THRESHOLD and not has_limit else limit
    return Rules(check_policy(limits))


def read_rules(path: str) -> Rules:
    """Read rules from a YAML file."""
    import yaml

    try:
        content = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        line = " ".join(str(error).split())
        raise PolicyError(f"{path}: is no YAML file ({line}); write accuracy: -0.02.") from None
    if not isinstance(content, dict):
        raise PolicyError(f"{path}: has no keys; write accuracy: -0.02.")
    datasets = content.pop(DATASETS, None) or {}
    of_datasets = datasets.values() if isinstance(datasets, dict) else [datasets]
    if not all(isinstance(limits, dict) for limits in of_datasets):
        raise PolicyError(f"{path}: datasets must name a dataset and its limits.")
    try:
        by_dataset = {str(name): check_policy(limits) for name, limits in datasets.items()}
        policy = check_policy(content) if content or not by_dataset else {}
    except PolicyError as error:
        raise PolicyError(f"{path}: {error}") from None
    if any(THRESHOLD in limits for limits in by_dataset.values()):
        raise PolicyError(f"{path}: all datasets have one threshold; give it above them.")
    return Rules(policy, by_dataset)


def check_rules(rules: Rules, estimators: Sequence[str], inputs: PredictionTables) -> str:
    """Say why a gate has nothing to check, or return ""; refuse unknown estimators."""
    rows = inputs.all_predictions
    names = sorted({*map(str, rows["estimator"].unique())} - {NO_CONFIDENCE})
    if unknown := [name for name in estimators if name not in names]:
        raise PolicyError(
            f"The gate names the estimator {unknown[0]!r}; choose from {', '.join(names)}."
        )
    limits = (rules.policy, *rules.by_dataset.values())
    keys = list(dict.fromkeys(key for policy in limits for key in policy if key != ACCURACY))
    if keys and not names:
        return (
            f"The gate has {keys[0]}, and the answers have no confidence; add the column, or "
            f"leave {keys[0]} out."
        )
    if absent := [name for name in rules.by_dataset if name not in {*rows["dataset"].unique()}]:
        return f"The gate has the dataset {absent[0]!r}, and the files have no row of it."
    return ""


def versions_alone(inputs: PredictionTables) -> dict[tuple[str, str], str]:
    """Find each model and dataset with one checkpoint only, and name this checkpoint."""
    return {
        (place["model"], place["dataset"]): names[0]
        for place in inputs.subjects()
        if len(names := inputs.checkpoints[place["model"]]) < 2
    }


def as_markdown(verdict: str, gate: Gate | None) -> str:
    """Return a verdict, and a table of the rulings of a gate, as Markdown."""
    lines = ["```", verdict, "```", ""]
    if gate:
        rows = [
            f"| {SIGNS[ruling.result]} {ruling.result} | {ruling_text(ruling)} |"
            for ruling in gate.rulings
        ]
        lines += [f"**Gate: {gate.result}**", "", "| result | rule |", "|---|---|", *rows, ""]
    return "\n".join(lines)


def as_junit(gate: Gate) -> str:
    """Return a test case per ruling: a failure, or skipped if it is undecided."""

    def count(result: str) -> str:
        return str(sum(ruling.result == result for ruling in gate.rulings))

    suite = ElementTree.Element("testsuite", name="persistcal", tests=str(len(gate.rulings)))
    suite.set("failures", count(FAIL))
    suite.set("skipped", count(UNDECIDED))
    for ruling in gate.rulings:
        case = ElementTree.SubElement(
            suite,
            "testcase",
            classname=_place(ruling),
            name=f"{ruling.key} {ruling.estimator}".strip(),
        )
        kind = {FAIL: "failure", UNDECIDED: "skipped"}.get(ruling.result)
        if kind:
            ElementTree.SubElement(case, kind, message=ruling_text(ruling))
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def _place(ruling: Ruling) -> str:
    pair = f"{ruling.earlier} → {ruling.later}"
    return ", ".join(filter(None, (ruling.model, ruling.dataset, pair, ruling.slice)))
