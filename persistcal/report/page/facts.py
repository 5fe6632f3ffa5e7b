"""Texts about how a study was made, for the foot of the page."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from importlib import metadata
from typing import Any

import pandas as pd

from persistcal.models.checkpoint import Checkpoint

PACKAGES = ("snakemake", "torch", "transformers", "peft", "numpy", "scipy", "pandas", "pyarrow")


def config_of_study(
    config: Mapping[str, Any], estimators: Collection[str], datasets: Collection[str]
) -> dict[str, Any]:
    """Return the config without models, datasets and so on that the study does not use.

    `config` includes the defaults. `estimators` and `datasets` were evaluated, for the study or
    for further tables.
    """
    chosen = config["study"]
    described = config.get("estimators", {})
    rated = [described[name] for name in estimators if name in described]
    verifiers = [entry["verifier"] for entry in rated if "verifier" in entry]
    analyses = {
        name: analysis
        for name, analysis in config.get("analyses", {}).items()
        if set(analysis.get("models", chosen["models"])) & set(chosen["models"])
        and set(analysis.get("datasets", chosen["datasets"])) & set(chosen["datasets"])
    }
    shown = [*chosen.get("datasets", []), *datasets]
    recipes = [name for analysis in analyses.values() for name in analysis.get("recipes", [])]
    recipes += [entry.get("recipe") for entry in (*rated, *analyses.values())]
    used = {
        "models": [*chosen["models"], *(config["verifiers"][v]["model"] for v in verifiers)],
        "datasets": shown
        + [t for d in shown for t in config["datasets"][d].get("train_datasets", [])],
        "estimators": estimators,
        "verifiers": verifiers,
        "recipes": [name for name in recipes if isinstance(name, str)],
        "tables": [*chosen.get("tables", []), *chosen.get("further", [])],
        "analyses": analyses,
    }
    return {
        section: {name: entry for name, entry in content.items() if name in used[section]}
        if section in used
        else content
        for section, content in config.items()
    }


def about(
    config: Mapping[str, Any],
    *,
    commit: str,
    weights: Mapping[str, Checkpoint],
    seeds: Iterable[int],
) -> list[tuple[str, str]]:
    """Return terms and their texts, for a list of definitions.

    `commit` is the code's commit, or empty outside a checkout. `weights` contains records by
    "model/checkpoint", and `seeds` the seeds of estimators, 0 for untrained ones.
    """
    judge, evaluation = config["judge"], config["evaluation"]
    model = f" ({judge['model']})" if judge["backend"] != "lexical" else ""
    trained = sorted({int(seed) for seed in seeds if seed})
    versions = []
    for package in PACKAGES:
        with suppress(metadata.PackageNotFoundError):
            versions.append(f"{package} {metadata.version(package)}")
    lines = [
        ("Page made", datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")),
        ("Results", config["results"]),
        ("Code", commit or "no git checkout"),
        ("Judge", f"{judge['backend']}{model}"),
        ("Seeds of training", ", ".join(map(str, trained)) or "none"),
        (
            "Bootstrap",
            f"{evaluation['replicates']:,} replicates, seed {evaluation['seed']} "
            "(reliability bands: 200)",
        ),
        ("Versions", ", ".join(versions)),
    ]
    for name, record in weights.items():
        digests = [digest[:12] for digest in record.weights.values()]
        source = record.commit or record.revision or "local files"
        more = f" and {len(digests) - 1} more files" if digests[1:] else ""
        text = f"{source}; weights sha256 {digests[0]}{more}" if digests else source
        lines.append((name, text))
    return lines


def jobs_of(benchmarks: Sequence[tuple[str, pd.DataFrame]]) -> list[dict[str, Any]]:
    """Add up the benchmark files of jobs, by rule.

    Snakemake's column `max_rss` (MB) is "-" or missing for short jobs.
    """
    if not benchmarks:
        return []
    rows = pd.concat([frame.assign(rule=rule) for rule, frame in benchmarks])
    rows["max_rss"] = pd.to_numeric(rows["max_rss"], errors="coerce").fillna(0)
    summed = rows.groupby("rule", sort=False).agg(
        n=("s", "size"), seconds=("s", "sum"), memory=("max_rss", "max")
    )
    summed = summed.sort_values("seconds", ascending=False)
    return [
        {"name": rule, "n": n, "seconds": round(seconds, 1), "memory": float(memory)}
        for rule, n, seconds, memory in summed.itertuples(name=None)
    ]
