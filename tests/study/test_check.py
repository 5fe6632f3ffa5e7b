"""Checks of a config: shipped configs are valid, and each mistake is one sentence."""

import pytest
from configs import CONFIG, cases, overlaid, pretraining, shipped
from programs import python
from workflow_runs import ROOT

from persistcal.questions.catalogue import SHARED_KEYS, SOURCES
from study.check import check_config
from study.config_files import over_defaults, refuse_misread
from study.schema import ConfigError, check_schema
from study.study import Study

WHOLE_PAPER = shipped("whole_paper")
OWN = {
    "results": "out",
    "models": {"m1": {"label": "Model 1", "evaluation": ["a", "b", "c"]}},
    "datasets": {"quiz": {"min_contrast": 200}},
    "study": {"predictions": "predictions.csv", "models": ["m1"], "datasets": ["quiz"]},
}


@pytest.mark.parametrize("name", sorted(path.stem for path in CONFIG.glob("*.yaml")))
def test_every_shipped_config_is_valid(name):
    atlas_configs = ["atlas", "atlas_pretraining"]
    below = {"atlas_pretraining": atlas_configs[:1], "whole_atlas": atlas_configs[:1]}
    below["lab"] = atlas_configs
    check_config(overlaid(*map(shipped, [*below.get(name, []), name])))
    refuse_misread([CONFIG / f"{name}.yaml"])


def test_names_of_checkpoints_that_make_a_folder_name_too_long_are_refused():
    names = [f"{i:03}-{'n' * 76}" for i in range(4)]  # 4 * 80 and three plus signs
    described = {name: {"revision": name} for name in names}
    model = {"checkpoints": described, "earlier": ["kestrel"], "evaluation": names}
    study = {"models": ["marin-8b"], "datasets": ["triviaqa"], "estimators": ["oracle"]}
    config = overlaid({"models": {"marin-8b": model}, "study": study})
    with pytest.raises(ConfigError, match=r"estimators\.oracle trains .* 323 characters tog"):
        check_config(config)


def test_agreement_is_refused_for_predictions_without_answers():
    places = {"models": ["m1"], "datasets": ["quiz"]}
    agreement = {**places, "reference": "a", "pairs": [["b", "c"]]}
    with pytest.raises(ConfigError, match=r"analyses\.agreement .* set its models to \[\]"):
        check_config(overlaid({**OWN, "analyses": {"agreement": agreement}}))


def own_answers(**study):
    chosen = {"answers": "answers.csv", "estimators": ["end_correct", "self_consistency"]}
    models = {"m1": {"earlier": ["z"], "evaluation": ["a", "b", "c"]}}
    places = {"models": ["m1"], "datasets": ["quiz"]}
    return overlaid({**OWN, "models": models, "study": {**places, **chosen, **study}})


def test_own_answers_include_earlier_checkpoints_only_if_an_estimator_needs_them():
    check_config(own_answers())
    assert Study(own_answers()).checkpoints("m1") == ["a", "b", "c"]
    fitted = Study(own_answers(estimators=["self_consistency_posthoc"]))
    assert fitted.checkpoints("m1") == ["z", "a", "b", "c"]
    assert fitted.splits_needed("m1", "z") == {"train": "estimators.self_consistency_posthoc"}
    copied = Study(own_answers(estimators=["self_consistency_copy"]))
    assert copied.splits_needed("m1", "z") == {"test": "estimators.self_consistency_copy"}


def test_a_column_of_own_answers_can_be_an_estimator():
    config = over_defaults(own_answers(estimators=["end_correct", "words"]), CONFIG.parent)
    check_config(config)
    assert config["estimators"]["words"]["function"] == "stated"
    of_models = over_defaults(own_answers(estimators=["words"], answers=None), CONFIG.parent)
    with pytest.raises(ConfigError, match=r"study\.estimators names 'words'"):
        check_config(of_models)


@pytest.mark.parametrize(
    ("study", "message"),
    [
        ({"estimators": ["oracle"]}, "estimators.oracle needs the weights of checkpoints"),
        ({"estimators": ["linear_probe"]}, "estimators.linear_probe needs the weights"),
        ({"estimators": ["gcm"]}, "estimators.gcm needs a verifier"),
        ({"estimators": ["said_words"]}, "estimators.said_words needs the weights"),
        (
            {"predictions": "p.csv"},
            "study.answers is .*, but study.predictions is another source of results; keep one",
        ),
    ],
)
def test_estimators_that_need_more_than_answers_are_refused(study, message):
    with pytest.raises(ConfigError, match=message):
        check_config(own_answers(**study))


@pytest.mark.parametrize(
    ("decoding", "message"),
    [
        ({"weighting": "probability"}, "decoding.weighting is 'probability', but"),
        ({"normalisation": "per_byte"}, "decoding.normalisation is 'per_byte'"),
    ],
)
def test_settings_that_do_not_fit_scored_options_are_refused(decoding, message):
    config = own_answers(estimators=["option_margin", "sequence_probability"])
    config["decoding"] |= {"strategy": "options", **decoding}
    with pytest.raises(ConfigError, match=message):
        check_config(config)
    config["decoding"] |= {"normalisation": "per_token", "weighting": "softmax"}
    check_config(config)


def test_a_control_applies_to_all_other_kinds_of_change():
    pairs = {name: [["phoenix", "starling"]] for name in ("Tuned", "Edited", "Same")}
    settings = {"study": {"pairs": pairs, "control": "Same"}}
    assert Study(overlaid(settings)).controls == {"Tuned": "Same", "Edited": "Same"}
    settings["study"]["control"] = {"Tuned": "Same"}
    assert Study(overlaid(settings)).controls == {"Tuned": "Same"}
    assert Study(overlaid()).controls == {}


# Overlays of the paper's config, and the expected messages
REFUSED = r"""
training: {answers: 1}
> training\.answers is not a known key; did you mean 'n_answers'
training: {micro_batch: all}
> training\.micro_batch is 'all', which it cannot be\. It means: Candidate answers
judge: {labels: {not correct: incorrect, NOT_CORRECT: correct}}
> judge\.labels has 'not correct' and 'NOT_CORRECT', which are read alike; keep one
judge: {labels: {A: correct, C: not_attempted}}
> judge\.labels is .*, but no word means incorrect; add the judge's
judge: {labels: {A: right, B: incorrect}}
> judge\.labels\.A is 'right'
judge: {labels: {yes: correct, no: incorrect}}
> judge\.labels is True, which YAML reads as bool and not as text; put it in quotes
judge: {endpoint: responses, request: {reasoning_effort: null}}
> request\.max_completion_tokens is .* no field of judge\.endpoint responses; write .*tokens: 4
judge: {request: {reasoning: {effort: none}}}
> reasoning is .* no field of judge\.endpoint chat; write `judge: {request: {reasoning: null}}`
study: {pairs: [[phoenix, starlin]]}
> study.pairs names 'starlin'; did you mean 'starling'
study: {pairs: {Fine-tuning: [[phoenix, starling]], Back: [[starling, phoenix]]}}
> study.pairs.Back lists \[starling, phoenix\], but starling is not before phoenix
study: {pairs: {Tuned: [[phoenix, starling]]}, control: Tunned}
> study\.control names 'Tunned'; did you mean 'Tuned'
study: {pairs: all, control: Same}
> study\.control is 'Same', but it names a kind of change, and study\.pairs has no names
study: {pairs: {Fine-tuning: []}}
> study.pairs.*\[\]
tables: {oracle_vs_methods: {conditioning: cross_fitted}}
> tables\.oracle_vs_methods\.conditioning is cross_fitted, which evaluation\.conditioning
estimators: {oracle: {label: Self-consistency}}
> estimators\.self_consistency and estimators\.oracle both have the label 'Self-c
models: {marin-8b: {label: Olmo 3 7B}}
study: {models: [olmo3-7b, marin-8b]}
> models\.olmo3-7b and models\.marin-8b both have the label 'Olmo 3 7B', but
models: {marin-8b: {checkpoints: {phoenix: {label: ocelot}}}}
> models\.marin-8b\.checkpoints\.ocelot and models.* both have the label 'ocelot'
models: {marin-8b: {evaluation: [2024-01-01, phoenix]}}
> evaluation\.0 is 2024-01-01, which YAML reads as date and not as text; put it
models: {marin-8b: {checkpoints: {7: {revision: main}}}}
> models\.marin-8b\.checkpoints is 7, which YAML reads as int and not as text; put
study: {datasets: ["nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn\
  nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"]}
> study\.datasets\.0 is 'nnn.*too long
decoding: {n_beams: 1}
> estimators\.self_consistency needs several .* decoding\.n_beams is 1; raise
decoding: {backend: vllm}
study: {estimators: [mean_token_entropy], tables: [all_estimators]}
> estimators\.mean_token_entropy needs the entropy .* vllm does not give it; set
estimators: {mine: {function: said_words, reads: [evaluation], prompt: a.txt}}
study: {estimators: [mine]}
> estimators\.mine lacks the key asks: how many replies it asks
estimators: {said_words: {reads_weights: true}}
study: {estimators: [said_words]}
> estimators\.said_words\.reads_weights is True, but an estimator with asks reads
estimators: {base_probability: {rater: ocelott}}
study: {models: [marin-8b], estimators: [base_probability]}
> estimators\.base_probability\.rater names 'ocelott'; .*ocelot
estimators: {mine: {function: base_probability, reads: [evaluation]}}
study: {estimators: [mine]}
> estimators\.mine lacks the key rater: the checkpoint whose probabilities
estimators: {perplexity: {layer: 3}}
study: {estimators: [perplexity]}
> estimators\.perplexity has layer, which perplexity does not read
estimators: {entropy_probe: {fit_at: training}}
study: {estimators: [entropy_probe]}
> estimators\.entropy_probe\.fit_at is 'training', but .*; set fitted to true
estimators: {'true': {function: p_true, reads: [evaluation]}}
study: {estimators: ['true']}
> estimators\.true lacks the key words: what follows its prompt
recipes: {asked: {train_on: all}}
estimators: {asked: {function: verbalised, reads: [evaluation], by_checkpoint: true}}
study: {estimators: [asked]}
> estimators\.asked works by_checkpoint and has the name of a recipe
estimators: {stated: {function: stated, by_checkpoint: true}}
study: {estimators: [stated]}
> estimators\.stated has by_checkpoint, but confidences of stated may be missing
decoding: {strategy: options}
> decoding\.strategy is options, which describes given answers .*; set it to beams
decoding: {temperature: 0}
> decoding\.temperature is 0, .*Of samples
study: {pairs: neighbours}
> study.pairs is 'neighbours'.*Pairs of evaluation
study: {modles: [m]}
> study\.modles is not a known key; did you mean 'models'
resutls: x
> config: resutls is not a known key; did you mean 'results'
study: {models: [olmo3-7B]}
> study\.models names 'olmo3-7B'.*'olmo3-7b'
study: {datasets: [trivia]}
> study\.datasets names 'trivia'.*'triviaqa'
study: {estimators: [orcle]}
> study\.estimators names 'orcle'.*'oracle'
study: {models: []}
> study\.models is \[\]
analyses:
  agreement:
    {models: [marin-8b], datasets: [triviaqa], reference: phoenix, pairs: [[starling, starlng]]}
> analyses\.agreement names 'starlng'; did you mean 'starling'
analyses: {agreement: {models: [marin-8b], datasets: [triviaqa], reference: phoenix}}
> analyses\.agreement\.pairs is \[\], but models are named, .* name no models
analyses: {questions: {categories: [jeopady]}}
> analyses\.questions\.categories names 'jeopady'; did you mean 'jeopardy'
study: {source: release}
> study\.archive is .*, but source release needs the path of the authors'
models: {marin-8b: {evaluation: [phoenix, starlin]}}
> models\.marin-8b\.evaluation names 'starlin'; did you mean 'starling'
models: {marin-8b: {evaluation: [phoenix, kestrel]}}
> 'kestrel' in both earlier and evaluation
models: {marin-8b: {earlier: []}}
> posthoc needs earlier checkpoints, but models\.marin-8b\.earlier is empty
datasets: {triviaqa: {test: [4000, 9961]}}
> datasets\.triviaqa\.train \[0, 5000\] and test \[4000, 9961\] overlap
estimators: {oracle: {recipe: {train_on: [phoenx, starling]}}}
> estimators\.oracle\.recipe\.train_on names 'phoenx'; did you mean 'phoenix'
recipes: {oracle: {train_on: all}}
> recipes\.oracle and estimators\.oracle\.recipe are two recipes
estimators: {oracle: {recipe: {train_on: evalation}}}
> estimators\.oracle\.recipe
estimators: {oracle_respective: {posthoc: isotonic}}
study: {estimators: [oracle_respective]}
> oracle_respective has posthoc, but its recipe trains several adapters
estimators: {end_correct: {function: end_corect}}
> end_correct\.function names 'end_corect'; did you mean 'end_correct'
estimators: {gcm: {recipe: transfer}}
study: {estimators: [gcm]}
> estimators\.gcm needs either a recipe or a function
estimators: {oracle: {layer: 3}}
> estimators\.oracle has layer, which a recipe does not read
study: {tables: [gmc]}
> study\.tables names 'gmc'; did you mean 'gcm'
tables: {gcm: {blocks: [{rows: [{estimator: gmc}]}]}}
study: {tables: [gcm]}
> tables\.gcm names 'gmc'; did you mean 'gcm'
study: {tables: [gcm], estimators: [self_consistency]}
> study\.tables names 'gcm', but study\.estimators contains no estimator of the table; add
> one \(gcm, gcm_posthoc, oracle\) or drop the table
prompts: {few_shot: 11}
> examples and study.again ask for 11 questions .* datasets\.triviaqa keeps 10
models: {marin-8b: {checkpoints: {phoenix: {examples: 2}}}}
study: {models: [marin-8b]}
> examples and study.again ask for 15 questions .* datasets\.triviaqa keeps 10
study: {again: true, datasets: [triviaqa, jeopardy, bioasq]}
> study\.again needs other few-shot examples, but those of datasets\.bioasq are tied
study: {again: true, datasets: [triviaqa], tables: [domain_transfer], complete_tables: true}
tables: {domain_transfer: {datasets: [bioasq]}}
> study\.again needs other few-shot examples, but those of datasets\.bioasq are tied
study: {again: true, datasets: [triviaqa], tables: []}
prompts: {few_shot: 6}
> study\.again ask for 12 questions .* datasets\.triviaqa keeps 10 .* drop it from
datasets: {triviaqa: {n_few_shot: 12}}
> datasets\.triviaqa\.n_few_shot is a key that the dataset's source does not read; remove it
study: {again: true, datasets: [triviaqa], tables: []}
decoding: {strategy: sample}
> study\.again is for beams; samples are asked twice by decoding\.n_samples of 4
study: {again: true, predictions: mine.csv}
> study\.again is True, but it asks checkpoints, and this study reads files
models: {marin-8b: {checkpoints: {phoenix: {seed: 3}}}}
> marin-8b\.checkpoints\.phoenix\.seed is for samples, but decoding\.strategy is beams
estimators: {non_oracle_copy: {recipe: orakle}}
study: {estimators: [non_oracle_copy]}
> estimators\.non_oracle_copy\.recipe names 'orakle'; did you mean 'oracle'
study: {models: [qwen3-8b]}
> models\.qwen3-8b lacks the key evaluation; add the checkpoints to evaluate
verifiers: {gcm: {checkpoint: mian}}
study: {estimators: [gcm]}
> verifiers\.gcm\.checkpoint names 'mian'; did you mean 'main'
estimators: {gcm: {verifier: gmc}}
study: {estimators: [gcm]}
> estimators\.gcm\.verifier names 'gmc'; did you mean 'gcm'
training: {learning_rate: 2e-4}
> training\.learning_rate is '2e-4'
study: {datasets: [bioasq, triviaqa]}
> bioasq\.train_datasets names 'jeopardy', which study\.datasets leaves out; add it there, or
datasets: {mine: {min_contrast: 10, source: file}}
study: {datasets: [mine]}
> datasets\.mine lacks the key file, which source file needs
"""


@pytest.mark.parametrize(("overlay", "message"), cases(REFUSED))
def test_a_mistake_in_a_config_is_refused_in_one_sentence_with_key_and_remedy(overlay, message):
    chosen = {"models": ["marin-8b"], "datasets": ["triviaqa"]} | overlay.get("study", {})
    overlay = overlay | {"study": chosen}
    with pytest.raises(ConfigError, match=message) as error:
        check_config(overlaid(overlay))
    assert "\n" not in str(error.value)


def drifting(drift, n_sets=2):
    sets = {"fact_sets": {"n": n_sets, "rare_factor": 0.1}} if n_sets else {}
    atlas = pretraining()
    settings = atlas["models"]["atlas"]["pretraining"]
    settings.pop("fact_sets", None)
    settings |= {"drift": drift, **sets}
    return atlas


# Overlays of the atlas config, and the expected messages
REFUSED_FOR_ATLAS = r"""
models: {atlas: {checkpoints: {p100: {step: 1000000}}}}
> pretraining\.steps is \d+; raise it
models: {atlas: {checkpoints: {p100: {step: 1}}}}
> listed by rising step
models: {atlas: {repo: lab/atlas}}
> models\.atlas\.repo is 'lab/atlas', but pretraining makes the checkpoints; remove one
datasets: {atlas: {groups: {new: 0.6, forget: 0.5}}}
> shares that add up to 1.1; the sum can be at most 1
datasets: {atlas: {groups: {new: 0.125}}}
> groups\.new is 0\.125; give whole hundredths
datasets: {atlas: {groups: {retain: 0.5}}}
> groups.retain is 0.5, but it gets the remaining questions; remove it
datasets: {atlas: {groups: {new: 0.1}, edits: [p100]}}
> groups has no share of the group edited; add it
datasets: {atlas: {groups: {edited: 0.1}, edits: [p101]}}
> edits names 'p101'; did you mean 'p10
"""


@pytest.mark.parametrize(("overlay", "message"), cases(REFUSED_FOR_ATLAS))
def test_a_mistake_in_the_pretraining_of_the_demo_is_refused(overlay, message):
    with pytest.raises(ConfigError, match=message):
        check_config(pretraining(overlay))


REFUSED_DRIFTS = r"""
drift: [{until: 0.5}, {until: 0.9}]
> drift has phases until \[0.5, 0.9\]; let until rise
drift: [{until: 0.5}, {until: 0.5}, {until: 1.0}]
> let until rise and end at 1
drift: [{until: 1.0, rare: [3]}]
> drift\.0\.rare names set 3, but there are 2 sets
drift: [{until: 1.0, rare: [1]}]
n_sets: 0
> but there are 0 sets of facts; raise .*fact_sets.n
drift: [{until: 1.0, rare: [2, 1]}]
> names every set of facts, so none
drift: [{until: 1.0, rare: [1, 1]}]
> drift\.0\.rare
"""


@pytest.mark.parametrize(("phases", "message"), cases(REFUSED_DRIFTS))
def test_a_mistake_in_the_drift_of_facts_is_refused(phases, message):
    with pytest.raises(ConfigError, match=message) as error:
        check_config(drifting(**phases))
    assert "\n" not in str(error.value)


def test_some_sets_of_facts_can_be_rare_in_a_phase():
    check_config(drifting([{"until": 0.5}, {"until": 1.0, "rare": [1, 3]}], 3))


def test_a_model_without_earlier_checkpoints_skips_estimators_that_need_them():
    config = overlaid(
        {
            "models": {"marin-8b": {"earlier": []}},
            "study": {
                "models": ["marin-8b"],
                "datasets": ["triviaqa"],
                "estimators": ["end_correct", "self_consistency", "oracle"],
            },
        },
        WHOLE_PAPER,
    )
    check_config(config)
    collected = {row.estimator for row in Study(config).evaluated}
    assert not {"non_oracle", "self_consistency_copy", "gcm_posthoc"} & collected
    assert {"oracle", "oracle_respective", "gcm"} <= collected


def test_a_users_study_does_not_include_the_papers_verifier():
    model = {
        "label": "Mine",
        "repo": "mine",
        "checkpoints": {c: {"revision": c} for c in "abc"},
        "earlier": ["a"],
        "evaluation": ["b", "c"],
    }
    config = overlaid(
        {
            "models": {"mine": model},
            "datasets": {"quiz": {"min_contrast": 5, "source": "file", "file": "quiz.csv"}},
            "study": {"models": ["mine"], "datasets": ["quiz"]},
        },
        WHOLE_PAPER,
    )
    check_config(config)
    study = Study(config)
    assert "gcm" not in study.tables
    assert not {"gcm", "gcm_posthoc"} & {row.estimator for row in study.evaluated}
    assert "oracle_vs_methods_fitted" in study.tables


def test_an_audit_is_refused_without_judged_answers():
    audited = {"analyses": {"audit": {"filled": "sheet.csv"}}}
    check_config(overlaid(own_answers(), audited))
    with pytest.raises(ConfigError, match=r"analyses\.audit\.filled names a person's labels"):
        check_config(overlaid({**OWN, **audited}))


KEY_VALUES = {
    **{"label": "Quiz", "min_contrast": 5, "train_datasets": ["triviaqa"]},
    **{"repo": "hub/quiz", "revision": "main", "file": "quiz.csv", "categories": "names.txt"},
    **{"train": [0, 5], "test": [5, 9], "aliases": True, "expect": {"questions": 4}},
    **{"n_train": 5, "n_test": 4, "n_few_shot": 5, "seed": 1, "min_city_population": 1},
    **{"groups": {"edited": 0.5}, "edits": ["phoenix"]},
}


@pytest.mark.parametrize("source", SOURCES)
def test_a_dataset_has_only_keys_that_its_source_reads(source):
    read = {*SHARED_KEYS, *SOURCES[source].needs, *SOURCES[source].optional} - {"source"}
    dataset = {"source": source, **{key: KEY_VALUES[key] for key in read}}
    check_schema(overlaid({"datasets": {"quiz": dataset}}))
    for key in KEY_VALUES.keys() - read:
        config = overlaid({"datasets": {"quiz": {**dataset, key: KEY_VALUES[key]}}})
        with pytest.raises(ConfigError, match=rf"datasets\.quiz\.{key} is .* remove it, or"):
            check_schema(config)


def test_a_study_of_predictions_refuses_the_keys_of_a_source():
    config = overlaid(OWN, {"datasets": {"quiz": {"file": "quiz.csv"}}})
    with pytest.raises(ConfigError, match=r"datasets\.quiz\.file is for a source .* remove it"):
        check_config(config)


@pytest.mark.parametrize("name", shipped("tables")["tables"])
def test_a_table_with_nothing_to_show_is_left_out_with_a_remedy(name):
    chosen = {"models": ["marin-8b"], "datasets": ["triviaqa"], "tables": [name]}
    of_others = {"tables": {name: {"models": ["olmo3-7b"], "datasets": [*chosen["datasets"]]}}}
    study = Study(overlaid(of_others, {"study": chosen}))
    assert study.tables == {}
    [sentence] = study.tables_left_out
    assert sentence.startswith(
        f"Table {name} is left out, because it shows only the models olmo3"
    )
    assert "add one to study.models, or take the table out of study.tables" in sentence
    is_transfer = shipped("tables")["tables"][name].get("transfer", False)
    chosen |= {"models": ["olmo3-7b"], "datasets": ["bioasq", "triviaqa", "jeopardy"]}
    of_others["tables"][name]["datasets"] = ["bioasq" if is_transfer else "triviaqa"]
    study = Study(overlaid(of_others, {"study": chosen}))
    assert study.tables and study.tables_left_out == []


def test_a_table_about_transfer_names_the_datasets_that_it_lacks():
    chosen = {"datasets": ["triviaqa", "jeopardy"], "tables": ["domain_transfer"]}
    [sentence] = Study(overlaid({"study": chosen})).tables_left_out
    assert "shows only datasets with train_datasets; add one to study.datasets" in sentence
    narrowed = {"tables": {"domain_transfer": {"datasets": ["bioasq"]}}, "study": chosen}
    [sentence] = Study(overlaid(narrowed)).tables_left_out
    assert "shows only the datasets bioasq; add one to study.datasets" in sentence
    chosen["datasets"].append("bioasq")
    assert Study(overlaid(narrowed)).tables_left_out == []


def test_own_answers_have_the_tables_that_the_study_names():
    assert list(Study(own_answers()).tables) == ["all_estimators"]
    named = own_answers(tables=["oracle_vs_methods"])
    check_config(named)
    rows = Study(named).shown("oracle_vs_methods")
    assert [row.estimator for row in rows] == ["end_correct", "self_consistency"]
    lacking = own_answers(tables=["beyond_the_paper"], estimators=["end_correct"])
    with pytest.raises(
        ConfigError, match=r"'beyond_the_paper', but study\.estimators contains"
    ):
        check_config(lacking)


UNSAFE_NAMES = ["..", "a/b", "a\\b", "", " a", "ü", "{a}", "$a", "a\n"]
KINDS = ["datasets", "estimators", "tables", "checkpoint"]


@pytest.mark.parametrize(
    ("section", "name"),
    [*(("models", name) for name in UNSAFE_NAMES), *((section, "../up") for section in KINDS)],
)
def test_names_that_are_unsafe_as_folders_are_refused(section, name):
    config = overlaid(OWN)
    if section == "checkpoint":
        config["models"]["m1"]["evaluation"] = ["a", name]
    else:
        config[section][name] = next(iter(config[section].values()))
    with pytest.raises(ConfigError, match="does not match"):
        check_config(config)


BRACES = """
results: my {x}.csv
> results
study: {predictions: "my {x}.csv"}
> study.predictions
study: {archive: "my {x}.csv"}
> study.archive
study: {predictions: null, answers: "my {x}.csv"}
> study.answers
study: {predictions: null, answers: [{file: "my {x}.csv"}]}
> study.answers.0.file
datasets: {quiz: {file: "my {x}.csv"}}
> datasets.quiz.file
estimators: {end_correct: {function: "my {x}.csv"}}
> estimators.end_correct.function
"""


@pytest.mark.parametrize(("overlay", "key"), cases(BRACES))
def test_braces_in_a_path_are_refused_with_the_key(overlay, key):
    with pytest.raises(ConfigError, match=f"{key} is 'my {{x}}.csv', but braces .* rename it"):
        check_config(overlaid(OWN, overlay))


def test_the_snakefile_imports_only_snakemakes_dependencies():
    code = """
import sys
import study.check, study.config_files, study.inputs, study.preflight, study.record
import reproduce.released
print({"numpy", "pandas", "pyarrow", "scipy", "torch"} & set(sys.modules))
"""
    assert python("-c", code, folder=ROOT).strip() == "set()"
