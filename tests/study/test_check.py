import copy
from pathlib import Path

import pytest
import yaml
from snakemake.utils import update_config

from study.check import ConfigError, check_config

CONFIG = Path(__file__).parents[2] / "config"
PAPER = yaml.safe_load((CONFIG / "config.yaml").read_text())


def overlaid(overlay):
    config = copy.deepcopy(PAPER)
    update_config(config, overlay)
    return config


OWN = {
    "results": "out",
    "models": {"m1": {"label": "Model 1", "evaluation": ["a", "b", "c"]}},
    "datasets": {"quiz": {"min_contrast": 200}},
    "study": {"predictions": "predictions.csv", "models": ["m1"], "datasets": ["quiz"]},
}


@pytest.mark.parametrize("name", sorted(path.name for path in CONFIG.glob("*.yaml")))
def test_every_config_that_ships_is_valid(name):
    check_config(overlaid(yaml.safe_load((CONFIG / name).read_text())))


def test_own_predictions_need_no_more_than_this():
    check_config(overlaid(OWN))


@pytest.mark.parametrize(
    ("overlay", "message"),
    [
        (
            {"study": {"modles": ["m"]}},
            r"study\.modles is not a known key; did you mean 'models'",
        ),
        ({"resutls": "x"}, r"config: resutls is not a known key; did you mean 'results'"),
        ({"study": {"models": ["olmo3-7B"]}}, r"study\.models names 'olmo3-7B'.*'olmo3-7b'"),
        ({"study": {"datasets": ["trivia"]}}, r"study\.datasets names 'trivia'.*'triviaqa'"),
        ({"study": {"estimators": ["orcle"]}}, r"study\.estimators names 'orcle'.*'oracle'"),
        ({"study": {"tables": ["gmc"]}}, r"study\.tables names 'gmc'; did you mean 'gcm'"),
        ({"study": {"models": []}}, r"study\.models is \[\]"),
        (
            {"analyses": {"questions": {"categories": ["jeopady"]}}},
            r"analyses\.questions\.categories names 'jeopady'; did you mean 'jeopardy'",
        ),
        ({"study": {"source": "release"}}, r"study\.archive is empty; give the path"),
        (
            {"models": {"marin-8b": {"evaluation": ["phoenix", "starlin"]}}},
            r"models\.marin-8b\.evaluation names 'starlin'; did you mean 'starling'",
        ),
        (
            {"models": {"marin-8b": {"evaluation": ["phoenix", "kestrel"]}}},
            r"'kestrel' in both earlier and evaluation",
        ),
        (
            {"models": {"marin-8b": {"earlier": []}}},
            r"needs earlier checkpoints, but models\.marin-8b\.earlier is empty",
        ),
        (
            {"datasets": {"triviaqa": {"test": [4000, 9961]}}},
            r"datasets\.triviaqa\.train \[0, 5000\] and test \[4000, 9961\] overlap",
        ),
        (
            {"recipes": {"oracle": {"train_on": ["phoenx", "starling"]}}},
            r"recipes\.oracle\.train_on names 'phoenx'; did you mean 'phoenix'",
        ),
        (
            {"estimators": {"oracle": {"recipe": "orakle"}}},
            r"estimators\.oracle\.recipe names 'orakle'; did you mean 'oracle'",
        ),
        ({"training": {"epochs": 0}}, r"training\.epochs is 0"),
        (
            {"study": {"models": ["qwen3-8b"]}},
            r"models\.qwen3-8b lacks a key: add the checkpoints of its evaluation",
        ),
        (
            {
                "verifiers": {"gcm": {"checkpoint": "mian"}},
                "study": {"estimators": ["gcm"]},
            },
            r"verifiers\.gcm\.checkpoint names 'mian'; did you mean 'main'",
        ),
        (
            {
                "estimators": {"gcm": {"verifier": "gmc"}},
                "study": {"estimators": ["gcm"]},
            },
            r"estimators\.gcm\.verifier names 'gmc'; did you mean 'gcm'",
        ),
        ({"training": {"learning_rate": "2e-4"}}, r"training\.learning_rate is '2e-4'"),
        (
            {"datasets": {"mine": {"label": "Mine"}}},
            r"datasets\.mine lacks a key.*min_contrast",
        ),
        (
            {
                "datasets": {"mine": {"min_contrast": 10, "source": "file"}},
                "study": {"datasets": ["mine"]},
            },
            r"datasets\.mine lacks the key file, which source file needs",
        ),
    ],
)
def test_one_sentence_names_key_and_remedy(overlay, message):
    overlay = {"study": {"models": ["marin-8b"], "datasets": ["triviaqa"]}} | overlay
    with pytest.raises(ConfigError, match=message) as error:
        check_config(overlaid(overlay))
    assert "\n" not in str(error.value)


def test_steps_of_a_pretraining_rise_and_end_in_time():
    atlas = overlaid(yaml.safe_load((CONFIG / "atlas.yaml").read_text()))
    steps = atlas["models"]["atlas"]["checkpoints"]
    steps["p100"]["step"] = 10 * atlas["models"]["atlas"]["pretraining"]["steps"]
    with pytest.raises(ConfigError, match=r"pretraining\.steps is \d+; raise it"):
        check_config(atlas)
    steps["p100"]["step"] = 1
    with pytest.raises(ConfigError, match="listed by rising step"):
        check_config(atlas)
