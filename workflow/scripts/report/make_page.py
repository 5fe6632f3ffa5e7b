"""Make the page of a study: what it says, and every answer behind it."""

import io
import json
import logging
import subprocess
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

import persistcal
from persistcal.evaluation.replicates import from_table
from persistcal.report.page.analyses import Analyses
from persistcal.report.page.compose import Facts, compose
from persistcal.report.page.facts import about, config_of_study, installed_versions, jobs_of
from persistcal.report.page.parts import Part, Texts, arrange_part
from persistcal.report.page.study import Checkpoint, Study, StudyTable
from persistcal.report.page.summary import summary
from persistcal.store import artifacts
from persistcal.store.artifacts import Table
from persistcal.store.logs import log_to

log = logging.getLogger(__name__)

Files = Mapping[str, Sequence[str]]


def make_page(
    files: Files,
    page_path: str,
    summary_path: str,
    *,
    config: Mapping[str, Any],
    tables: Mapping[str, Mapping[str, Any]],
    main: Sequence[str],
    labels: Mapping[str, Mapping[str, str]],
    logs: str,
) -> None:
    """Write the page of a study, and what it says in a few lines of text.

    Parameters
    ----------
    files : mapping of str to sequence of str
        What the study has, by kind: `predictions` and `replicates`
        (…/{model}/{dataset}/{estimator}.parquet) and `intervals` always; and where it
        has them `questions` (…/{dataset}.parquet), `clusters` and `labels`
        (…/{model}/{checkpoint}/{dataset}.parquet), `checkpoints`
        (…/{model}/{checkpoint}.json), `accuracies`, `tables` (CSV; its TeX is beside
        it), `transfer`, `variance` (the table's CSV), `headroom` and `similarity`.
    page_path : str
        HTML.
    summary_path : str
        Text, which a run ends with.
    config : mapping
        The study's config, laid over the defaults.
    tables : mapping
        Descriptions of the tables of results, by name.
    main : sequence of str
        Estimators that the page speaks of; the others are a click away. All where the
        study has none of them.
    labels : mapping
        What is printed for the study's `models`, `datasets` and `estimators`.
    logs : str
        Folder whose benchmark files tell how long the jobs took.
    """
    predictions = _by_part(files["predictions"], artifacts.PREDICTIONS)
    replicates = _by_part(files["replicates"], artifacts.REPLICATES)
    order = list(labels["estimators"])
    parts = [_part(*key, frame, files, config, order) for key, frame in predictions.items()]
    there = list(dict.fromkeys(e for part in parts for _, e in part.members))
    config = config_of_study(config, there)
    study = Study(
        parts=parts,
        n_confidences=sum(map(len, predictions.values())),
        replicates=[from_table(replicates[key]) for key in predictions],
        main=[name for name in main if name in there] or there,
        checkpoints={
            m: _checkpoints(config["models"][m]) for m in dict.fromkeys(p.model for p in parts)
        },
        accuracies=_together(files.get("accuracies", ()), artifacts.ACCURACIES),
        intervals=_together(files["intervals"], artifacts.INTERVALS),
        min_contrast={d: config["datasets"][d]["min_contrast"] for _, d in predictions},
        tables=[_table(Path(path), tables) for path in files.get("tables", ())],
        analyses=Analyses(
            transfer=_together(files.get("transfer", ()), artifacts.TRANSFER),
            headroom=_together(files.get("headroom", ()), artifacts.HEADROOM),
            similarity=_together(files.get("similarity", ()), artifacts.WEIGHT_SIMILARITIES),
            variance=pd.concat(
                [pd.DataFrame(columns=["model", "dataset", "mean_rho"])]
                + [pd.read_csv(path) for path in files.get("variance", ())]
            ),
            recipes=config["analyses"].get("transfer", {}).get("recipes", {}),
            asked=config["analyses"] if files.get("checkpoints") else (),
        ),
        labels=labels,
        seed=config["evaluation"]["seed"],
    )
    html = compose(study, _facts(predictions, files, config, logs))
    Path(page_path).parent.mkdir(parents=True, exist_ok=True)
    Path(page_path).write_text(html, encoding="utf-8")
    Path(summary_path).write_text(summary(study), encoding="utf-8")
    log.info("The page has %.2f MB", len(html) / 1e6)


def _by_part(paths: Sequence[str], table: Table) -> dict[tuple[str, str], pd.DataFrame]:
    """Read a table of several estimators by (model, dataset)."""
    by_place: dict[tuple[str, str], list[pd.DataFrame]] = {}
    for path in map(Path, paths):
        frame = artifacts.read(path, table)
        by_place.setdefault((path.parents[1].name, path.parent.name), []).append(frame)
    return {key: pd.concat(frames, ignore_index=True) for key, frames in by_place.items()}


def _part(
    model: str,
    dataset: str,
    predictions: pd.DataFrame,
    files: Files,
    config: Mapping[str, Any],
    order: Sequence[str],
) -> Part:
    about_model = config["models"][model]

    def per_checkpoint(kind: str, table: Table) -> dict[str, pd.DataFrame]:
        chosen = [
            path
            for path in map(Path, files.get(kind, ()))
            if path.stem == dataset and path.parent.parent.name == model
        ]
        return {path.parent.name: artifacts.read(path, table) for path in chosen}

    questions = [p for p in map(Path, files.get("questions", ())) if p.stem == dataset]
    texts = None
    if questions:
        texts = Texts(
            artifacts.read(questions[0], artifacts.QUESTIONS),
            per_checkpoint("clusters", artifacts.CLUSTERS),
            per_checkpoint("labels", artifacts.LABELS),
        )
    return arrange_part(
        predictions,
        model=model,
        dataset=dataset,
        earlier=about_model.get("earlier", []),
        evaluation=about_model["evaluation"],
        min_contrast=config["datasets"][dataset]["min_contrast"],
        texts=texts,
        order=order,
        pairs=config["study"]["pairs"],
    )


def _checkpoints(model: Mapping[str, Any]) -> dict[str, Checkpoint]:
    entries = model.get("checkpoints") or {}
    names = [*model.get("earlier", []), *model["evaluation"]]
    return {
        name: Checkpoint(
            str(entries.get(name, {}).get("label", name)), entries.get(name, {}).get("tokens")
        )
        for name in names
    }


def _together(paths: Sequence[str], table: Table) -> pd.DataFrame:
    frames = [artifacts.read_csv(path, table) for path in paths]
    if not frames:
        return artifacts.empty(table)
    return pd.concat(frames, ignore_index=True).drop_duplicates(list(table.key))


def _table(path: Path, tables: Mapping[str, Mapping[str, Any]]) -> StudyTable:
    csv, tex = path.read_text(encoding="utf-8"), path.with_suffix(".tex")
    return StudyTable(
        path.stem,
        csv,
        tex.read_text(encoding="utf-8") if tex.exists() else "",
        pd.read_csv(io.StringIO(csv), keep_default_na=False, na_values=[""]),
        tables.get(path.stem),
    )


def _facts(
    predictions: Mapping[Any, pd.DataFrame], files: Files, config: Mapping[str, Any], logs: str
) -> Facts:
    seeds = {
        int(seed) for frame in predictions.values() for seed in frame["seed"].unique() if seed
    }
    benchmarks = [
        (path.relative_to(logs).parts[0], pd.read_csv(path, sep="\t"))
        for path in sorted(Path(logs).rglob("*.tsv"))
    ]
    return Facts(
        about=about(
            config,
            made=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
            commit=_commit(),
            versions=installed_versions(),
            weights={
                f"{path.parent.name}/{path.stem}": json.loads(path.read_text(encoding="utf-8"))
                for path in map(Path, files.get("checkpoints", ()))
            },
            seeds=seeds,
        ),
        jobs=jobs_of(benchmarks),
        config=yaml.safe_dump(dict(config), sort_keys=False, allow_unicode=True),
    )


def _commit() -> str:
    """Return the commit of the code that runs, and whether it was changed since."""
    root = Path(persistcal.__file__).parents[1]
    try:
        described = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=12"],
            cwd=root,
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return described.stdout.strip()


if __name__ == "__main__":
    log_to(snakemake.log[0])
    make_page(
        {
            name: list(paths) if not isinstance(paths, str) else [paths]
            for name, paths in snakemake.input.items()
        },
        snakemake.output.page,
        snakemake.output.summary,
        # Shown as it is: as a parameter it would make the page anew whenever anything changes.
        config=snakemake.config,
        tables=snakemake.params.tables,
        main=snakemake.params.main,
        labels=snakemake.params.labels,
        logs=snakemake.params.logs,
    )
