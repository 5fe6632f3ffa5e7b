"""Check a config before anything runs. Messages name the key and the remedy."""

from collections.abc import Iterable
from typing import Any

from persistcal.evaluation.settings import EVERY
from persistcal.questions.catalogue import SHARED_KEYS, SOURCES
from persistcal.questions.labels import word_form
from study import check_estimators, check_states
from study.schema import ConfigError, check_names, check_schema
from study.study import Study, estimators_in_rows


def check_config(config: dict[str, Any]) -> None:
    """Raise `ConfigError` for the first thing in `config` that is not right."""
    check_schema(config)
    _check_study(config)
    study = Study(config)
    for name in config["study"]["models"]:
        _check_model(study, name)
    _check_again(study)
    for name in study.datasets:
        _check_dataset(study, name)
    _check_agreement(study)
    _check_similarity(study)
    added = [row.estimator for row in study.evaluated] if study.estimates else []
    estimators = list(dict.fromkeys([*config["study"]["estimators"], *added]))
    for name in estimators:
        check_estimators.check_estimator(study, name)
        _check_verifier(study, name)
    if study.runs_models:
        check_states.check_served(study)
        check_estimators.check_decoding(study, estimators)
    for name in config["study"]["estimators"] if study.estimates else []:
        check_estimators.check_chosen(study, name)
        check_estimators.check_estimator_of_served(study, name)
    for name, table in study.tables.items() if study.estimates else ():
        _check_table(study, name, table)
    for name, table in study.tables.items():
        listed = config["evaluation"]["conditioning"]
        if table["conditioning"] == "cross_fitted" and "cross_fitted" not in listed:
            raise ConfigError(
                f"config: tables.{name}.conditioning is cross_fitted, which "
                "evaluation.conditioning does not list; add it there."
            )
    _check_labels(study, estimators)
    _check_judge_words(config["judge"].get("labels"))
    judges = study.estimates and not study.has_own_options
    if config["analyses"]["audit"]["filled"] and not judges:
        raise ConfigError(
            "config: analyses.audit.filled names a person's labels, but no judge labels "
            "answers in this study; leave it empty."
        )


def _check_study(config: dict[str, Any]) -> None:
    study = config["study"]
    for catalogue in ("models", "datasets", "estimators", "tables"):
        check_names(f"study.{catalogue}", study[catalogue], config[catalogue])
    names = [c for m in study["models"] for c in config["models"][m].get("evaluation", [])]
    for key, pair in listed_pairs(config):
        check_names(key, pair, names)
    if control := study["control"]:
        kinds = [control] if isinstance(control, str) else [*control, *control.values()]
        check_names("study.control", kinds, study["pairs"])
    for table in study["tables"]:
        entry = config["tables"][table]
        check_names(f"tables.{table}.datasets", entry.get("datasets", []), config["datasets"])
        if not study.get("predictions"):
            rows = [name for name in estimators_in_rows(entry) if name != EVERY]
            check_names(f"tables.{table}", rows, config["estimators"])
    for name, entry in config["estimators"].items():
        if isinstance(entry.get("recipe"), dict) and name in config["recipes"]:
            raise ConfigError(
                f"config: recipes.{name} and estimators.{name}.recipe are two recipes of one "
                f"name; write your changes into estimators.{name}.recipe."
            )
    check_names(
        "evaluation.by_category", config["evaluation"]["by_category"], config["datasets"]
    )
    for table, datasets in config["analyses"]["questions"].items():
        check_names(f"analyses.questions.{table}", datasets, config["datasets"])


def _check_again(study: Study) -> None:
    """Refuse a second ask of a study that has none after other examples."""
    if not study.chosen.get("again"):
        return
    if study.config["decoding"]["strategy"] != "beams":
        raise ConfigError(
            "config: study.again is for beams; samples are asked twice by "
            "decoding.n_samples of 4 or more, so leave it out."
        )
    sources = {d: study.config["datasets"][d].get("source") for d in study.datasets}
    tied = [d for d, s in sources.items() if s and SOURCES[s].examples_by_category]
    if tied:
        raise ConfigError(
            "config: study.again needs other few-shot examples, but those of "
            f"datasets.{tied[0]} are tied to the type of a question; leave again out, or this "
            "dataset (and tables of it, with complete_tables)."
        )


def listed_pairs(config: dict[str, Any]) -> list[tuple[str, list[str]]]:
    """Return each pair of checkpoints in `study.pairs` with the key of the list."""
    pairs = config["study"]["pairs"]
    lists = (
        {f"study.pairs.{name}": members for name, members in pairs.items()}
        if isinstance(pairs, dict)
        else {"study.pairs": [] if isinstance(pairs, str) else pairs}
    )
    return [(key, pair) for key, members in lists.items() for pair in members]


def _check_judge_words(labels: dict[str, str] | None) -> None:
    """Refuse words of a judge that are read alike, or that never mean right or wrong."""
    if labels is None:
        return
    by_form: dict[str, str] = {}
    for word in labels:
        if (same_word := by_form.setdefault(word_form(word), word)) != word:
            raise ConfigError(
                f"config: judge.labels has '{same_word}' and '{word}', which are read alike; "
                "keep one."
            )


def _check_labels(study: Study, estimators: Iterable[str]) -> None:
    """Refuse equal labels of two models, datasets, estimators or checkpoints."""
    labels = study.labels
    shown = {name: labels["estimators"][name] for name in estimators}
    groups = {"models": labels["models"], "datasets": labels["datasets"], "estimators": shown}
    for model in study.chosen["models"]:
        groups[f"models.{model}.checkpoints"] = study.checkpoint_labels(model)
    for kind, by_name in groups.items():
        first: dict[str, str] = {}
        for name, label in by_name.items():
            if (same := first.setdefault(label, name)) != name:
                raise ConfigError(
                    f"config: {kind}.{same} and {kind}.{name} both have the label {label!r}, "
                    "but tables need different ones; change a label."
                )


def _check_table(study: Study, name: str, table: dict[str, Any]) -> None:
    if not study.shown(name):
        names = ", ".join(dict.fromkeys(estimators_in_rows(table)))
        if study.chosen["complete_tables"] and study.runs_models:
            raise ConfigError(
                f"config: study.tables names '{name}', but none of its estimators ({names}) "
                "can be evaluated on the study's models and datasets; drop the table."
            )
        raise ConfigError(
            f"config: study.tables names '{name}', but study.estimators contains no estimator "
            f"of the table; add one ({names}) or drop the table."
        )


def _check_agreement(study: Study) -> None:
    entry = study.config["analyses"]["agreement"]
    for model in dict.fromkeys(model for model, _ in study.analysed("agreement")):
        if not study.estimates:
            raise ConfigError(
                "config: analyses.agreement names models, but this study brings confidences "
                "without the answers that could agree; set its models to []."
            )
        names = [entry["reference"], *(name for pair in entry["pairs"] for name in pair)]
        check_names("analyses.agreement", names, study.evaluation(model))


def _check_similarity(study: Study) -> None:
    names = study.config["analyses"]["weight_similarity"]["models"] if study.runs_models else []
    for model in study.chosen["models"]:
        if model in names and len(study.checkpoints_in_files(model)) < 2:
            raise ConfigError(
                f"config: analyses.weight_similarity names {model}, but fewer than two "
                "checkpoints of the model have weights in files (without merge, adapter and "
                "quantization); leave it out."
            )


def _check_model(study: Study, name: str) -> None:
    config = study.config
    model = config["models"][name]
    if name in config["study"]["models"] and "evaluation" not in model:
        raise ConfigError(
            f"config: models.{name} lacks the key evaluation; add the checkpoints to evaluate."
        )
    earlier, evaluation = model.get("earlier", []), model.get("evaluation", [])
    if clashing := [checkpoint for checkpoint in evaluation if checkpoint in earlier]:
        raise ConfigError(
            f"config: models.{name} has '{clashing[0]}' in both earlier and evaluation; "
            "remove it from one."
        )
    for key, (first, second) in listed_pairs(config):
        if {first, second} <= set(evaluation) and evaluation.index(first) >= evaluation.index(
            second
        ):
            raise ConfigError(
                f"config: {key} lists [{first}, {second}], but {first} is not before {second} "
                f"in models.{name}.evaluation; name two checkpoints, the earlier one first."
            )
    if config["study"].get("predictions") or study.has_own_answers:
        return
    described = model.get("checkpoints", {})
    check_names(f"models.{name}.earlier", earlier, described)
    check_names(f"models.{name}.evaluation", evaluation, described)
    if not study.runs_models:
        return
    names, starts = [*earlier, *evaluation], set()
    for checkpoint in names:  # origins are appended during the loop
        made_from = [start for start in study.made_from(name, checkpoint) if start in described]
        names += [start for start in made_from if start not in names]
        starts.update(made_from)
    for checkpoint in names:
        served = "api" in described[checkpoint] and "pretraining" not in model
        if not served or checkpoint in starts:
            check_states.check_state(study, name, checkpoint)
    if "pretraining" in model:
        check_states.check_pretraining(config, name)
        for dataset in model["pretraining"]["datasets"]:
            _check_dataset(study, dataset)
    for recipe, settings in study.recipes.items():
        # A verifier's model answers nothing, so no adapter is trained on it.
        if name in study.chosen["models"] and isinstance(settings["train_on"], list):
            is_own = recipe not in config["recipes"]
            key = f"estimators.{recipe}.recipe" if is_own else f"recipes.{recipe}"
            check_names(f"{key}.train_on", settings["train_on"], described)


def _check_verifier(study: Study, estimator: str) -> None:
    config = study.config
    name = config["estimators"][estimator].get("verifier")
    if not name or not study.runs_models:
        return
    model, checkpoint = (config["verifiers"][name][key] for key in ("model", "checkpoint"))
    check_names(f"verifiers.{name}.model", [model], config["models"])
    names = config["models"][model].get("checkpoints", {})
    check_names(f"verifiers.{name}.checkpoint", [checkpoint], names)
    _check_model(study, model)


def _check_dataset(study: Study, name: str) -> None:
    config = study.config
    dataset = config["datasets"][name]
    key, trained_on = f"datasets.{name}.train_datasets", dataset.get("train_datasets", [])
    check_names(key, trained_on, config["datasets"])
    studied = config["study"]["datasets"]
    if absent := [
        dataset for dataset in trained_on if name in studied and dataset not in studied
    ]:
        raise ConfigError(
            f"config: {key} names '{absent[0]}', which study.datasets leaves out; add it "
            f"there, or leave out '{name}' too."
        )
    _check_groups(study, name, dataset)
    if "train" in dataset and "test" in dataset:
        (begin, end), (first, last) = sorted([dataset["train"], dataset["test"]])
        if begin >= end or first >= last or first < end:
            raise ConfigError(
                f"config: datasets.{name}.train {dataset['train']} and test {dataset['test']} "
                "overlap or are empty; each is [first index, index after the last]."
            )
    if not study.runs_models:
        ranges = ("train", "test") if study.chosen["source"] == "release" else ()
        unread = [key for key in dataset if key not in (*SHARED_KEYS, *ranges)]
        if unread and "source" not in dataset:
            raise ConfigError(
                f"config: datasets.{name}.{unread[0]} is for a source of questions, but this "
                "study reads files with their questions; remove it."
            )
        return
    if "source" not in dataset:
        raise ConfigError(
            f"config: datasets.{name} lacks the key source; set it to {' or '.join(SOURCES)}."
        )
    kept = SOURCES[dataset["source"]].kept_for_prompts
    n_needed = study.examples_needed
    available = dataset.get("n_few_shot", kept)
    if available is not None and available < n_needed:
        more = "raise its n_few_shot" if kept is None else "drop it from study.datasets"
        raise ConfigError(
            f"config: prompts.few_shot, the checkpoints' examples and study.again ask for "
            f"{n_needed} questions before others, but datasets.{name} keeps {available} for "
            f"prompts; {more} or lower prompts.few_shot."
        )


def _check_groups(study: Study, name: str, dataset: dict[str, Any]) -> None:
    key, groups = f"datasets.{name}.groups", dataset.get("groups", {})
    if (total := sum(groups.values())) > 1 + 1e-9:
        raise ConfigError(
            f"config: {key} has shares that add up to {total:g}; the sum can be at most 1."
        )
    for group, share in groups.items():
        if abs(100 * share - round(100 * share)) > 1e-9:
            raise ConfigError(
                f"config: {key}.{group} is {share}; give whole hundredths, such as 0.05."
            )
    check_names(f"datasets.{name}.edits", dataset.get("edits", []), study.checkpoint_names())
