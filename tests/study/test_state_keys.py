"""Keys of checkpoints: sources of weights, defaults of the model, merges and changes."""

import copy

import pytest
from configs import cases, overlaid, pretraining
from snakemake.utils import update_config

from study.check import check_config
from study.schema import ConfigError
from study.study import Study

MODEL = {
    "chat": True,
    "checkpoints": {
        "base": {"repo": "lab/base", "revision": "main", "chat": False},
        "sft": {"repo": "lab/sft", "revision": "v1"},
        "exact": {"repo": "lab/sft", "revision": "v1", "dtype": "float32"},
        "half": {"merge": {"base": 0.5, "exact": 0.5}},
    },
    "evaluation": ["base", "sft", "exact"],
}
STUDY = {"models": ["post"], "datasets": ["triviaqa"], "estimators": ["end_correct"]}


def released(**sft):
    """Return a config of four checkpoints in other repositories; `sft` replaces the entry."""
    model = copy.deepcopy(MODEL)
    if sft:
        model["checkpoints"]["sft"] = sft
    return overlaid({"models": {"post": model}, "study": STUDY})


def check_refused(config, message):
    with pytest.raises(ConfigError) as error:
        check_config(config)
    assert message in str(error.value)


def test_a_checkpoint_inherits_the_keys_of_its_model():
    config = released()
    check_config(config)
    study = Study(config)
    states = [study.state("post", c) for c in MODEL["evaluation"]]
    assert [state["repo"] for state in states] == ["lab/base", "lab/sft", "lab/sft"]
    assert [state["chat"] for state in states] == ["", "turns", "turns"]
    assert study.beside_weights("post", "sft") == {"chat": "turns"}
    assert study.beside_weights("post", "exact") == {"chat": "turns", "dtype": "float32"}
    assert "dtype" not in study.state("olmo3-7b", "step141000")
    assert study.state("olmo3-7b", "step141000")["repo"] == "allenai/Olmo-3-1025-7B"


def test_weights_that_are_changed_while_loading_are_not_compared():
    config = released(repo="lab/sft", revision="v1", quantization="int8")
    config["analyses"]["weight_similarity"]["models"] = ["post"]
    check_config(config)
    assert Study(config).checkpoints_in_files("post") == ["base", "exact"]
    config["models"]["post"]["evaluation"] = ["sft", "exact"]
    check_refused(config, "weight_similarity names post, but fewer than two checkpoints")


def test_checkpoints_can_share_the_repository_of_their_model():
    config = released()
    config["models"]["post"]["repo"] = "lab/post"
    for keys in config["models"]["post"]["checkpoints"].values():
        keys.pop("repo", None)
    check_config(config)
    assert Study(config).state("post", "exact")["repo"] == "lab/post"


REFUSED = """
merge: {base: 0.5, exakt: 0.5}
> sft.merge names 'exakt'; did you mean 'exact'
merge: {sft: 1}
> sft.merge names 'sft'
merge: {base: 0.5, exact: 0.6}
> sft.merge has shares that add up to 1.1; change the sum
merge: {base: 1}
chat: false
> sft.merge is only base, and no other key differs
merge: {base: 1}
repo: x
> sft.repo is 'x', but merge makes the weights
merge: {exact: 1, half: 0}
> sft.merge names half, which is a merge itself; name the checkpoints that it merges
{repo: x, revision: y, quantization: int3}
> sft.quantization is 'int3', but
{revision: v1}
> sft lacks the key repo; add it here, or for all checkpoints to the model.
{repo: lab/sft}
> sft lacks the key revision; add it.
{repo: lab/sft, revision: v1, repositry: lab/x}
> sft.repositry is not a known key; did you mean 'repo
change: {method: retraining, without: [new]}
> sft.change is a retraining, but models.post has no pretraining that could be done again
"""


@pytest.mark.parametrize(("sft", "message"), cases(REFUSED))
def test_a_checkpoint_without_a_valid_source_of_weights_is_refused(sft, message):
    check_refused(released(**sft), f"config: models.post.checkpoints.{message}")


def test_vllm_refuses_weights_that_are_changed_in_memory():
    config = released(repo="lab/sft", revision="v1", quantization="int8")
    check_config(config)
    config["decoding"]["backend"] = "vllm"
    check_refused(
        config, "sft.quantization changes weights in memory, but decoding.backend vllm"
    )


def test_a_merge_needs_its_parts_even_if_they_are_not_evaluated():
    config = released()
    config["models"]["post"]["evaluation"] = ["half", "sft"]
    check_config(config)
    study = Study(config)
    assert study.made_from("post", "half") == ["base", "exact"]
    assert [study.made_by("post", c) for c in ("half", "sft")] == ["merge", "repo"]
    del config["models"]["post"]["checkpoints"]["base"]["repo"]
    check_refused(config, "checkpoints.base lacks the key repo; add it")


TRAINING = {"epochs": 2, "learning_rate": 0.001, "batch_size": 16}
TUNING = {"of": "p100", "method": "fine_tuning", "learn": ["new"], **TRAINING}
NPO = {"of": "full", "method": "npo", "forget": ["a"], "keep": ["b"], "beta": 0.1, **TRAINING}
CHANGED = {
    "full": {"change": TUNING, "examples": 0, "label": "Tuned"},
    "npo": {"change": NPO},
    "retrained": {"change": {"method": "retraining", "without": ["new"]}},
    "int8": {"merge": {"npo": 1}, "quantization": "int8"},
}


def with_changes(states):
    """Return the atlas config with derived checkpoints. A value of None deletes the key."""
    config = pretraining()
    atlas = config["models"]["atlas"]
    update_config(atlas["checkpoints"], copy.deepcopy(CHANGED))
    update_config(atlas["checkpoints"], states)
    for state in atlas["checkpoints"].values():
        for key in [k for k, value in state.get("change", {}).items() if value is None]:
            del state["change"][key]
    atlas["evaluation"] = ["p100", "retrained", "int8"]
    return config


def test_checkpoints_that_others_are_derived_from_are_made_too():
    config = with_changes({})
    check_config(config)
    study = Study(config)
    made = {c: study.made_by("atlas", c) for c in ("p100", *CHANGED)}
    assert made.pop("p100") == "pretraining"
    assert list(made.values()) == ["change", "change", "retraining", "merge"]
    assert [study.made_from("atlas", c) for c in CHANGED] == [["p100"], ["full"], [], ["npo"]]
    assert study.last_step("atlas") == 620


REFUSED_CHANGES = """
full: {change: {of: p1000}}
> full.change.of names 'p1000'; did you mean 'p100'
npo: {change: {beta: null}}
> npo.change lacks the key beta, which method npo needs.
full: {change: {beta: 0.1}}
> full.change.beta is set, but fine_tuning has no such key; remove it.
full: {change: {rank: 8, max_change: 0.1}}
> full.change.max_change is 0.1, but rank trains an adapter; remove one.
npo: {change: {keep: [b, a]}}
> npo.change lists 'a' in both forget and keep; remove it from one.
full: {change: {keep: [new]}}
> full.change lists 'new' in both learn and keep; remove it
full: {change: {keep_weight: 2}}
> full.change.keep_weight is 2, but nothing is kept; add keep.
full: {change: {of: npo}}
> npo.change.of leads back to npo (npo of full of npo); let it begin at a checkpoint that is
> not changed.
full: {change: {of: int8}}
> full.change.of is int8, which is a merge; name a merged checkpoint
full: {change: {datasets: [triviaqa]}}
> full.change.datasets names 'triviaqa'; known are
full: {change: {learn: []}}
> full.change.learn is [], but [] should be non-empty.
retrained: {change: {of: p100}}
> retrained.change.of is set, but retraining has no such
full: {repo: x}
> full.repo is 'x', but change makes the weights; remove one.
full: {quantization: int8}
> full.quantization is 'int8', but its weights are made here; set it in a further checkpoint
p100: {repo: lab/base}
> p100.repo is 'lab/base', but pretraining makes the checkpoints; remove one
"""


@pytest.mark.parametrize(("states", "message"), cases(REFUSED_CHANGES))
def test_inconsistent_keys_of_a_change_are_refused(states, message):
    check_refused(with_changes(states), f"config: models.atlas.checkpoints.{message}")
