"""The page of a study as one HTML file that needs nothing else, and its summary as text.

The first screen is drawn here, so that it needs no script. The other charts are drawn by a few
hundred lines of plain JavaScript. Observable Plot was tried: it draws an axis in one line, but
adds 0.49 MB to each page and a style sheet that the policy must name, and glyphs, tables for
screen readers, and charts without axes would stay our own. Vega-Lite would add 0.8 MB and,
under a policy without eval, an interpreter.
"""

import base64
import gzip
import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import chain, groupby
from textwrap import fill
from typing import Any, NamedTuple

import jinja2
import numpy as np
import pandas as pd

from persistcal.evaluation.findings import is_constant, read_finding
from persistcal.evaluation.predictions import training_seeds
from persistcal.evaluation.settings import Member
from persistcal.models.checkpoint import Checkpoint
from persistcal.report.curves import TINY
from persistcal.report.drawing import Look, looks
from persistcal.report.grid import lay_out
from persistcal.report.page import charts, overview, tables
from persistcal.report.page.contents import Contents, Part
from persistcal.report.page.verdict import CommandWords, Verdict, chance_of, next_step, verdicts
from persistcal.report.phrases import (
    MARKS,
    as_number,
    exact_percent,
    phrase_numbers,
    phrase_word,
    short,
    slice_numbers,
)
from persistcal.store.provenance import package_versions
from persistcal.store.tables import TableFiles

_ASSETS = jinja2.PackageLoader("persistcal.report.page", "assets")
# These files are joined into one script, in this order.
_SCRIPTS = ("base.js", "charts.js", "explorer.js", "main.js")
SURE = 0.8  # confidence that counts as high without a threshold
WIDTH = 100  # characters of the summary's lines
RECORD = "study.yaml (the whole config) and provenance.json, in the folder of the results"
# The values of an estimator in the first chart, by label
_HERO = {
    "follows": ("contrast", "delta0_balanced"),
    "contrast": ("contrast", "change_auc"),
    "full": ("full", "auc"),
}


class Origin(NamedTuple):
    """Origin of a study: terms and texts, kinds of jobs, and the settings as text.

    `gate` is the line of a release gate, and `given` are the words of the command.
    """

    about: list[tuple[str, str]]
    jobs: list[dict[str, Any]]
    config: str
    gate: str = ""
    given: CommandWords | None = None


def about(
    study: Contents, *, commit: str, weights: Mapping[str, Checkpoint], machines: str = ""
) -> list[tuple[str, str]]:
    """Return terms and their texts, for a list of definitions.

    `commit` is the code's commit, or empty outside a checkout. `weights` contains records by
    "model/checkpoint", and `machines` are the machines of a study's jobs.
    """
    shown = study.shown
    settings = next(iter(shown.settings.values()))
    estimators = study.made.predictions.groupby(["train_dataset", "estimator"])["seed"]
    trained = sorted({*chain.from_iterable(training_seeds(of) for _, of in estimators)})
    lines = [
        ("Page made", datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")),
        *([("Results", shown.results)] if shown.results != "." else []),
        *([("Code", commit)] if commit else []),
        ("Judge", shown.judge),
        ("Seeds of training", ", ".join(map(str, trained)) or "none"),
        (
            "Bootstrap",
            f"{settings.n_replicates:,} replicates, seed {settings.seed}",
        ),
        ("Versions", ", ".join(f"{name} {v}" for name, v in package_versions().items())),
        *([("Machines", machines), ("Record", RECORD)] if machines else []),
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


def compose(study: Contents, origin: Origin) -> str:
    """Return the page of a study."""
    parts, labels = study.parts, study.labels
    chosen = charts.choose_questions(parts, seed=study.seed)
    kept = [len(c) == len(p.answers.questions) for c, p in zip(chosen, parts, strict=True)]
    shown_tables = [_table(files, study) for files in study.made.tables]
    names = [e for part in parts for _, e in part.members]
    ordered = [e for e in labels["estimators"] if e in names]
    rows = [row for t in shown_tables for grid in t["grids"] for row in grid.rows()]
    seen = looks([*ordered, *names, *(row.estimator for row in rows)])
    classes = family_classes(seen)
    words: dict[str, int] = {}
    packed_parts = [charts.pack(p, c, words) for p, c in zip(parts, chosen, strict=True)]
    analysed = charts.analyses(study)
    found = verdicts(study)
    shown_parts = [
        _part(part, study, verdict) for part, verdict in zip(parts, found, strict=True)
    ]
    data = {
        "looks": {
            name: {
                "class": classes[look.family],
                "marker": look.marker,
                "dash": " ".join(map(str, look.dash)),
                "variant": look.variant,
            }
            for name, look in seen.items()
        },
        "labels": dict(labels["estimators"]),
        "main": study.main,
        "hero": _hero(study),
        "accuracy": _accuracy(study),
        "parts": shown_parts,
        "analyses": analysed,
        "tables": {
            files.name: {"csv": files.csv, "tex": files.tex} for files in study.made.tables
        },
    }
    models = [labels["models"].get(model, model) for model in study.stages]
    view = {
        "title": f"Persistent calibration: {', '.join(models)}",
        "verdicts": _first_screens(study, shown_parts, found, origin.given),
        "marks": MARKS,
        "lede": overview.lede(study),
        "facts": overview.counts(study),
        "sentences": overview.findings(study),
        "tables": shown_tables,
        "parts": [{"label": part.subject.title(labels)} for part in parts],
        "analyses": any(analysed.values()),
        "explorer_note": overview.explorer_note(study, chosen, kept),
        "missing": overview.missing(study, kept),
        "looks": seen,
        **origin._asdict(),
    }
    return render(view, data, {"parts": packed_parts, "texts": list(words)})


def summary(study: Contents) -> str:
    """Return a study's sentences, its first table of results, and a list of gaps, as text."""
    lines = [fill(f"{topic}: {text}", WIDTH) for topic, text in overview.sentences(study)]
    descriptions = study.shown.descriptions
    for name in [name for name in study.rows if name in descriptions][:1]:
        bootstraps = {
            (part.subject.model, part.subject.dataset): part.replicates for part in study.parts
        }
        rows = tables.mark_best_sets(study.rows[name], bootstraps)
        grids = lay_out(rows, descriptions[name], labels=study.labels)
        lines += [tables.plain_text(grid) for grid in grids]
        lines.append(
            "* best of its block, ~ cannot be distinguished from the best (simultaneous 95 % "
            "intervals)"
        )
    absent = overview.missing(study, [True] * len(study.parts))
    lines += [fill(f"Left out: {line}", WIDTH, subsequent_indent="  ") for line in absent]
    return "\n\n".join(lines) + "\n"


def _first_screens(
    study: Contents,
    shown_parts: Sequence[Mapping[str, Any]],
    verdicts: Sequence[Verdict | None],
    given: CommandWords | None,
) -> list[dict[str, Any] | None]:
    """Return the verdict on each part with the curves of the small pictures."""
    screens: list[dict[str, Any] | None] = []
    for number, verdict in enumerate(verdicts):
        if verdict is None:
            screens.append(None)
            continue
        part, rows = study.parts[number], []
        for row in verdict.rows:
            diagrams = shown_parts[number]["calibration"][list(part.members).index(row.member)]
            curves = [[p[:2] for p in diagrams[k]["points"]] for k in verdict.update[:2]]
            rows.append({**row._asdict(), "is_baseline": row.is_baseline, "curves": curves})
        lowest = [row.follows.lower for row in verdict.rows if row.follows]
        ends, _, by = phrase_numbers(verdict.accuracy).partition(", by ")
        screens.append(
            {
                **verdict._asdict(),
                "headline": verdict.headline,
                "title": "" if verdict.title == "model · dataset" else verdict.title,
                "rows": rows,
                "slices": [
                    (row["slice"], row["estimator"], read_finding(row))
                    for row in verdict.slices
                ],
                "part": number,
                "next": given and next_step(verdict, given),
                "broken": len((shown_parts[number]["broken"] or {"ids": ()})["ids"]),
                "earlier": verdict.update.earlier_name,
                "later": verdict.update.later_name,
                "accuracy_ends": ends,
                "accuracy_by": by,
                "low": min(0.4, *(np.floor(10 * v) / 10 for v in lowest if v == v), 0.4),
                "precision": verdict.target,
                "target": "" if verdict.target is None else exact_percent(verdict.target),
                "facts": overview.pairs_that_differ(study, part),
            }
        )
    return screens


def _broken(part: Part, verdict: Verdict | None) -> dict[str, Any] | None:
    """List the best estimator's confident answers that broke, the surest first, by id.

    An answer is confident if a seed gives it, at both checkpoints, at least the confidence of
    the seed's threshold. Without a threshold, the mean confidence must be at least .8.
    """
    rated = [row for row in verdict.rows if not row.is_baseline] if verdict else []
    if not rated or verdict is None:
        return None
    best, (earlier, later, *names) = rated[0], verdict.update
    ends = [earlier, later]
    runs = {s.seed: c[ends] for s, c in part.answers.confidence.items() if s[:2] == best.member}
    mean = np.mean(list(runs.values()), axis=0)
    cuts = {seed: cut for seed, cut in best.cuts.items() if cut > 0}
    chosen = [(runs[seed], cut) for seed, cut in cuts.items()] or [(mean, SURE)]
    is_sure = np.any([(run >= cut - TINY).all(axis=0) for run, cut in chosen], axis=0)
    was_right, is_right = part.answers.correct[ends]
    positions = np.flatnonzero(is_sure & (was_right == 1) & (is_right == 0))
    if not len(positions):
        return None
    positions = positions[np.argsort(-mean[1, positions], kind="stable")]
    lowest, highest = (short(end(cut for _, cut in chosen)) for end in (min, max))
    least = lowest if lowest == highest else f"{lowest} to {highest}, by seed,"
    several = " (the list shows means over seeds)" if len(chosen) > 1 else ""
    return {
        "ids": [str(part.answers.questions[position]) for position in positions],
        "about": f"{best.label} gave these answers a confidence of at least {least} at both "
        f"checkpoints{several}. They were right at {names[0]} and are wrong at {names[1]}.",
        "member": list(part.members).index(best.member),
    }


def _hero(study: Contents) -> list[dict[str, Any]]:
    """Return a facet per part: each measure with its interval, a point per estimator."""
    odds = study.made.intervals[
        (study.made.intervals["conditioning"] == "odds") & study.made.intervals["value"].notna()
    ]
    key = ["model", "dataset", "train_dataset", "estimator", "scope", "metric"]
    ends = odds.set_index(key)[["value", "lower_2_5pct", "upper_97_5pct"]]
    bounds = {place: list(map(as_number, row)) for place, *row in ends.itertuples(name=None)}
    facets = []
    for part in study.parts:
        subject, points = part.subject, []
        for member in part.members:
            measured = {
                name: bounds.get((subject.model, subject.dataset, *member, *label), [None] * 3)
                for name, label in _HERO.items()
            }
            if measured["full"][0] is not None and measured["contrast"][0] is not None:
                label = subject.name(member, study.labels)
                control = _control(part, study, member)
                points.append(
                    {"estimator": member[1], "label": label, "control": control, **measured}
                )
        title, chance = subject.title(study.labels), chance_of(part.findings)
        facets.append({"title": title, "points": points, "chance": chance})
    return facets


def _control(part: Part, study: Contents, member: Member) -> float | None:
    """Return an estimator's change AUC on pairs of the same weights, their mean, or None."""
    names = part.answers.checkpoints
    asked_again = {tuple(ends) for ends in study.shown.controls.get(part.subject.model, ())}
    pairs = [p for p in part.pairs if (names[p.earlier], names[p.later]) in asked_again]
    values = [charts.on_pair(part.members[member], pair)["change_auc"] for pair in pairs]
    defined = [value for value in values if value is not None]
    return as_number(float(np.mean(defined))) if defined else None


def _accuracy(study: Contents) -> list[dict[str, Any]]:
    """Return by model a line per dataset, from the accuracies or else the predictions."""
    models = []
    for model, model_parts in groupby(study.parts, key=lambda part: part.subject.model):
        parts = list(model_parts)
        accuracies = {
            (row["dataset"], row["checkpoint"]): (row["accuracy"], row["n"])
            for row in study.made.accuracies.to_dict("records")
            if row["model"] == model
        }
        for part in parts:
            for name, row in zip(part.checkpoints, part.correct, strict=True):
                defined = row[row >= 0]
                if len(defined):
                    accuracy = float(defined.mean()), len(defined)
                    accuracies.setdefault((part.subject.dataset, name), accuracy)
        answered = {checkpoint for _, checkpoint in accuracies}
        stages = {name: s for name, s in study.stages[model].items() if name in answered}
        evaluation = {c for part in parts for c in part.answers.checkpoints}
        lines = []
        for dataset in (part.subject.dataset for part in parts):
            series = [accuracies.get((dataset, name), (float("nan"), 0)) for name in stages]
            lines.append(
                {
                    "label": study.labels["datasets"].get(dataset, dataset),
                    "accuracy": [as_number(accuracy) for accuracy, _ in series],
                    "n": [int(n) for _, n in series],
                }
            )
        checkpoints = [
            {**stage._asdict(), "role": "evaluation" if name in evaluation else "earlier"}
            for name, stage in stages.items()
        ]
        models.append({"model": model, "checkpoints": checkpoints, "datasets": lines})
    return models


def _part(part: Part, study: Contents, verdict: Verdict | None) -> dict[str, Any]:
    subject, stages = part.subject, study.stages[part.subject.model]
    roles = ["earlier"] * part.n_earlier + ["evaluation"] * len(part.answers.checkpoints)
    thresholds: dict[str, Any] | None = None
    if verdict:
        selected = {row.member: [*row.cuts.values()] for row in verdict.rows}
        ends, target = verdict.update[:2], verdict.target
        thresholds = {
            "target": target,
            "names": [verdict.update.earlier_name, verdict.update.later_name],
            "selected": [selected.get(member, []) for member in part.members],
            "estimators": charts.threshold_curves(part, ends, target),
        }
    return {
        "key": f"{subject.model}/{subject.dataset}",
        "label": subject.title(study.labels),
        "model": subject.model,
        "n_earlier": part.n_earlier,
        "checkpoints": [
            {"label": stages[name].label, "role": role}
            for name, role in zip(part.checkpoints, roles, strict=True)
        ],
        "estimators": [
            {
                "estimator": member[1],
                "label": subject.name(member, study.labels),
                "main": member[1] in study.main,
                "baseline": all(is_constant(run[k]) for run in runs for k in range(len(run))),
            }
            for member, runs in part.members.items()
        ],
        "flows": charts.flows(part.correct),
        "pairs": [
            {
                "earlier": pair.earlier,
                "later": pair.later,
                "size": len(pair.questions),
                "improvement": int(pair.improvement.sum()),
                "regression": int((~pair.improvement).sum()),
                "kept": pair.kept,
            }
            for pair in part.pairs
        ],
        "calibration": charts.calibration(part),
        "pair_metrics": [
            [charts.on_pair(runs, pair) for pair in part.pairs]
            for runs in part.members.values()
        ],
        "shifts": charts.shifts(part),
        "update": list(verdict.update[:2]) if verdict else None,
        "broken": _broken(part, verdict),
        "risks": charts.risk_curves(part),
        "thresholds": thresholds,
    }


def _table(files: TableFiles, study: Contents) -> dict[str, Any]:
    name, rows = files.name, study.rows[files.name]
    title = tables.heading(name, list(study.labels["datasets"]), study.labels)
    entry = {"name": name, "heading": title, "tex": bool(files.tex)}
    if name not in study.shown.descriptions:
        return {**entry, "caption": "", "grids": [], "plain": tables.plain_grid(rows)}
    described = study.shown.descriptions[name]
    grids = lay_out(rows, described, labels=study.labels, intervals=study.made.intervals)
    return {**entry, "caption": described["caption"], "grids": grids, "plain": None}


def render(
    view: Mapping[str, Any], study: Mapping[str, Any], explorer: Mapping[str, Any]
) -> str:
    """Return the page from the variables of the template, such as the estimators' `looks`.

    `study` and `explorer` are data for the page's script: for charts and for the explorer.
    """
    environment = jinja2.Environment(
        loader=_ASSETS,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters |= {
        "group_heads": tables.group_heads,
        "shown": tables.shown,
        "word": phrase_word,
        "numbers": phrase_numbers,
        "slice_numbers": slice_numbers,
    }
    looks: Mapping[str, Look] = view["looks"]
    classes = family_classes(looks)
    style = environment.get_template("page.css").render(
        families={classes[look.family]: look for look in looks.values()}
    )
    script = "\n".join(_ASSETS.get_source(environment, name)[0] for name in _SCRIPTS)
    script = f"'use strict';\n(() => {{\n{script}\n}})();"
    digests = [hashlib.sha256(text.encode()).digest() for text in (style, script)]
    of_style, of_script = (f"sha256-{base64.b64encode(digest).decode()}" for digest in digests)
    policy = (
        "default-src 'none'; base-uri 'none'; form-action 'none'; "
        f"style-src '{of_style}'; script-src '{of_script}'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    )
    return environment.get_template("page.html").render(
        **{name: value for name, value in view.items() if name != "looks"},
        looks={name: (classes[look.family], look) for name, look in looks.items()},
        policy=policy,
        style=style,
        script=script,
        study=packed(study),
        explorer=packed(explorer),
    )


def family_classes(looks: Mapping[str, Look]) -> dict[str, str]:
    """Return the CSS class of each family of estimators."""
    families = dict.fromkeys(look.family for look in looks.values())
    return {family: f"f{place}" for place, family in enumerate(families)}


def packed(data: Mapping[str, Any]) -> str:
    """Return JSON, compressed and as ASCII; the same data give the same text."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return base64.b64encode(gzip.compress(text.encode(), compresslevel=9, mtime=0)).decode()
