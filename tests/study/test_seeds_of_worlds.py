"""Several seeds of one pre-training: a model each, wherever the model is named."""

import pytest
from configs import pretraining, shipped

from study.check import check_config
from study.schema import ConfigError
from study.selection import Study
from study.worlds import expand_worlds

ATLAS = pretraining()


def with_seeds(seed):
    seeds = {"models": {"atlas": {"pretraining": {"seed": seed}}}}
    return pretraining(seeds)


def test_a_model_per_seed():
    config = with_seeds([17, 5])
    check_config(config)
    expand_worlds(config)
    study = Study(config)
    assert study.worlds == {"atlas": ["atlas-17", "atlas-5"]}
    assert study.names_of_worlds == {"atlas": "Atlas"}
    assert study.chosen["models"] == ["atlas-17", "atlas-5"]
    assert [study.pretraining(model)["seed"] for model in study.chosen["models"]] == [17, 5]
    assert study.labels["models"] == {"atlas-17": "Atlas, seed 17", "atlas-5": "Atlas, seed 5"}
    # Tables and analyses that name the model are about its worlds; the verifier stays one.
    assert ("atlas-5", "atlas") in study.analysed("confounds")
    assert config["tables"]["gcm"]["models"] == ["atlas-17", "atlas-5"]
    assert study.models_made == ["atlas-17", "atlas-5", "atlas-verifier"]
    assert "atlas" not in config["models"]


def test_one_seed_changes_nothing():
    config = with_seeds(17)
    expand_worlds(config)
    assert config == ATLAS
    assert Study(config).worlds == {}


def test_the_overlay_that_ships():
    config = pretraining(shipped("atlas_worlds"))
    check_config(config)
    expand_worlds(config)
    assert len(Study(config).worlds["atlas"]) == 3


def test_refusals():
    config = with_seeds([1, 2])
    config["models"]["atlas-2"] = config["models"]["atlas-verifier"]
    with pytest.raises(ConfigError, match="makes a model atlas-2, but models has one of that"):
        check_config(config)
    config = with_seeds(1)
    config["models"]["atlas-verifier"]["pretraining"]["seed"] = [1, 2]
    with pytest.raises(ConfigError, match=r"verifier\.pretraining\.seed lists several, but"):
        check_config(config)
    for wrong in ([], [1, 1], ["a"]):
        with pytest.raises(ConfigError, match=r"models\.atlas\.pretraining\.seed"):
            check_config(with_seeds(wrong))
