"""The part of a study that its page shows: the record `Shown`, and the config."""

from collections.abc import Mapping
from itertools import combinations
from typing import Any

import yaml

from study.checkpoints import Config
from study.study import Study

# Keys of a checkpoint that differ for a control, and keys that can differ
ASKED = {"examples", "seed"}
FREE = {"label", "tokens", "allow_identical_weights", *ASKED}


def shown_on_page(study: Study, labels: Mapping[str, Any]) -> Config:
    """Return the fields of the record `Shown`."""
    config, models = study.config, study.chosen["models"]
    stages: Config = {name: {} for name in models}  # in order of training
    for model, of_model in stages.items():
        catalogue = study.catalogue(model)
        for name in study.group(model, "all"):
            entry = catalogue.get(name, {})
            label = str(entry.get("label", name))
            of_model[name] = {"label": label, "tokens": entry.get("tokens")}
    blocks = [block for table in [*study.tables.values()][:1] for block in table["blocks"]]
    return {
        "labels": labels,
        "checkpoints": stages,
        "settings": {name: study.settings(name) for name in study.datasets},
        "judge": _judge(study),
        "results": config["results"],
        "descriptions": study.tables,
        "main": [row["estimator"] for block in blocks for row in block.get("rows", [])],
        "earlier": {name: study.earlier(name) for name in models},
        "controls": {name: _controls(study, name) for name in models},
        "analyses": list(_analyses(study)) if study.runs_models else [],
        "recipes": config["analyses"]["transfer"]["recipes"],
    }


def _judge(study: Study) -> str:
    """Return the source of the labels."""
    judge = study.config["judge"]
    if not study.estimates:
        return "none (labels of the files)"
    if study.config["decoding"]["strategy"] == "options":
        return "none (the right options of the questions)"
    model = f" ({judge['model']})" if "model" in study.judge.needs else ""
    return judge["backend"] + model


def _controls(study: Study, model: str) -> list[tuple[str, str]]:
    """Return the pairs of evaluation checkpoints that differ only in examples or seed."""
    entries = study.catalogue(model)
    return [
        (earlier, later)
        for earlier, later in combinations(study.evaluation(model), 2)
        for first, second in [(entries.get(earlier, {}), entries.get(later, {}))]
        if any(first.get(key) != second.get(key) for key in ASKED)
        and all(first.get(key) == second.get(key) for key in {*first, *second} - FREE)
    ]


def _analyses(study: Study) -> Config:
    """Return the analyses of the study's own models and datasets."""
    chosen = study.chosen
    return {
        name: analysis
        for name, analysis in study.config["analyses"].items()
        if set(analysis.get("models", chosen["models"])) & set(chosen["models"])
        and set(analysis.get("datasets", chosen["datasets"])) & set(chosen["datasets"])
    }


def used_config(study: Study) -> Config:
    """Return the config without the models, datasets, … that the study does not use."""
    config, chosen, rows = study.config, study.chosen, study.evaluated
    estimators = {row.estimator for row in rows}
    if not study.estimates:  # the file contains the estimators
        estimators = set(chosen["estimators"]) if not chosen["predictions"] else set()
    rated = [config["estimators"][name] for name in estimators]
    verifiers = [entry["verifier"] for entry in rated if "verifier" in entry]
    datasets = [*chosen["datasets"], *(row.dataset for row in rows)]
    analyses = _analyses(study)
    recipes = [name for analysis in analyses.values() for name in analysis.get("recipes", [])]
    recipes += [entry.get("recipe") for entry in (*rated, *analyses.values())]
    used = {
        "models": [*chosen["models"], *(config["verifiers"][v]["model"] for v in verifiers)],
        "datasets": [*datasets, *(t for d in datasets for t in study.train_elsewhere(d))],
        "estimators": estimators,
        "verifiers": verifiers,
        "recipes": [name for name in recipes if isinstance(name, str)],
        "tables": chosen["tables"],
        "analyses": analyses,
    }
    return {
        section: {name: entry for name, entry in content.items() if name in used[section]}
        if section in used
        else content
        for section, content in config.items()
    }


def config_text(study: Study) -> str:
    """Return the used part of the config as YAML."""
    return yaml.safe_dump(used_config(study), sort_keys=False, allow_unicode=True)
