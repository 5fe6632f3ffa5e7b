"""The record of a study: merged config, origin of the results, and commits of models."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml
from snakemake.common.configfile import load_configfile

from persistcal import __version__
from persistcal.store.code import commit
from persistcal.store.files import write_whole
from persistcal.store.provenance import read_makers
from study.checkpoints import Config
from study.config_files import FILES, merge_defaults, settle_tables

PINS = "resources/paper/revisions.yaml"
HEADER = "# Commits of the paper's models by repository; the first complete run fills it.\n"
OF_DATASET = ("source", "repo", "revision", "file")


def config_to_record(given: Config, project: Path) -> Config:
    """Return `given` over the defaults, as a config that gives the same study by itself."""
    recorded, study = merge_defaults(given, project), given.get("study") or {}
    settle_tables(recorded, given)
    if study.get("predictions") and not study.get("answers"):  # the file has the estimators
        del recorded["study"]["estimators"]
    return json.loads(json.dumps(recorded))  # nothing is shared, which YAML would show


def write_study(config: Config, results: Path, command: Sequence[str]) -> None:
    """Write `study.yaml`: the commands of all runs as comments, and the config of the last."""
    path = results / "study.yaml"
    earlier = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    line = " ".join([f"# {datetime.now(UTC):%Y-%m-%d %H:%M} UTC {commit()}:", *command])
    comments = [*(text for text in earlier if text.startswith("# ")), " ".join(line.split())]
    text = yaml.safe_dump(config, sort_keys=False, allow_unicode=True)
    write_whole(path, "\n".join([*comments, text]))


def write_provenance(config: Config, results: Path, codes: Mapping[str, Any]) -> None:
    """Write `provenance.json`, the origin of results; `codes` has a digest for each rule."""
    judge, study = config["judge"], config["study"]
    ledger = results / "judge" / "spending.csv"
    lines = ledger.read_text(encoding="utf-8").splitlines()[1:] if ledger.exists() else []
    record = {
        "version": __version__,
        "commit": commit(),
        "code": {rule: code for rule, code in codes.items() if isinstance(code, str)},
        "jobs": read_makers(results / "logs"),
        "models": dict(_resolved(results)),
        "datasets": {
            name: {key: entry[key] for key in OF_DATASET if key in entry}
            for name in study["datasets"]
            for entry in [config["datasets"][name]]
        },
        "judge": {key: judge[key] for key in ("backend", "model") if key in judge}
        | {
            "first_and_last_request": [
                line.partition(",")[0] for line in lines[:1] + lines[-1:]
            ]
        },
        "seeds": {part: config[part]["seed"] for part in ("decoding", "evaluation")}
        | {"training": config["training"]["seeds"]},
    }
    write_whole(results / "provenance.json", json.dumps(record, indent=1, ensure_ascii=False))


def read_summary(results: Path, since: float) -> str:
    """Return the summary of the study and the path of the page, if a run made them `since`."""
    page = results / "report" / "index.html"
    if not page.exists() or page.stat().st_mtime < since:
        return ""
    summary = page.with_name("summary.txt").read_text(encoding="utf-8").rstrip()
    return f"\n{summary}\n\nPage: {page}\n"


def _resolved(results: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the name and the record of each resolved checkpoint and verifier's adapter."""
    files = [*results.glob("revisions/*/*.json"), *results.glob("verifiers/*/revision.json")]
    for path in sorted(files):
        name = "/".join(path.relative_to(results).with_suffix("").parts[1:])
        yield name, json.loads(path.read_text(encoding="utf-8"))


def read_pins(project: Path) -> dict[str, dict[str, str]]:
    """Return the commit of each revision of each repository that an earlier run resolved."""
    path = project / PINS
    return (yaml.safe_load(path.read_text(encoding="utf-8")) if path.exists() else None) or {}


def pin_revisions(results: Path, project: Path) -> None:
    """Add the commits of the paper's models that have none yet to the project's pins."""
    paper = load_configfile(project / "config" / FILES[0])
    pairs = {
        (model["repo"], checkpoint["revision"])
        for model in paper["models"].values()
        for checkpoint in model["checkpoints"].values()
    } | {
        (entry["adapter"]["repo"], entry["adapter"]["revision"])
        for entry in paper["verifiers"].values()
    }
    pins, earlier = read_pins(project), read_pins(project)
    for _, record in _resolved(results):
        if record["commit"] and (record["repo"], record["revision"]) in pairs:
            pins.setdefault(record["repo"], {}).setdefault(record["revision"], record["commit"])
    if pins != earlier:
        with suppress(PermissionError):  # a module's project can be read-only
            write_whole(project / PINS, HEADER + yaml.safe_dump(pins))
