"""Texts about how a study was made, for the foot of the page."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from importlib import metadata
from typing import Any

import pandas as pd

from persistcal.models.checkpoint import Checkpoint
from persistcal.report.page.contents import Shown

PACKAGES = ("snakemake", "torch", "transformers", "peft", "numpy", "scipy", "pandas", "pyarrow")


def about(
    shown: Shown,
    *,
    commit: str,
    weights: Mapping[str, Checkpoint],
    seeds: Iterable[int],
) -> list[tuple[str, str]]:
    """Return terms and their texts, for a list of definitions.

    `commit` is the code's commit, or empty outside a checkout. `weights` contains records by
    "model/checkpoint", and `seeds` the seeds of estimators, 0 for untrained ones.
    """
    trained = sorted({int(seed) for seed in seeds if seed})
    versions = []
    for package in PACKAGES:
        with suppress(metadata.PackageNotFoundError):
            versions.append(f"{package} {metadata.version(package)}")
    lines = [
        ("Page made", datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")),
        ("Results", shown.results),
        ("Code", commit or "no git checkout"),
        ("Judge", shown.judge),
        ("Seeds of training", ", ".join(map(str, trained)) or "none"),
        (
            "Bootstrap",
            f"{shown.n_replicates:,} replicates, seed {shown.seed} (reliability bands: 200)",
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
