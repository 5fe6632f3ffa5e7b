"""Configs laid over the defaults, and lists of invalid configs with their messages."""

import copy
import functools
import re
from pathlib import Path

import yaml
from snakemake.utils import update_config

from study.config_files import settle_estimators, settle_sources, settle_tables

CONFIG = Path(__file__).parents[2] / "config"


@functools.cache
def shipped(name):
    return yaml.safe_load((CONFIG / f"{name}.yaml").read_text(encoding="utf-8"))


DEFAULTS = copy.deepcopy(shipped("config"))
update_config(DEFAULTS, shipped("tables"))


def overlaid(*overlays):
    """Return the defaults, which are the paper's study, with overlays."""
    config = copy.deepcopy(DEFAULTS)
    for overlay in overlays:
        update_config(config, copy.deepcopy(overlay))
        settle_tables(config, overlay)
    settle_estimators(config)
    settle_sources(config, CONFIG.parent)
    return config


PAPER = overlaid()


def pretraining(*overlays):
    """The study that pre-trains the checkpoints of atlas."""
    return overlaid(shipped("atlas"), shipped("atlas_pretraining"), *overlays)


def cases(text):
    """Pairs of YAML, read, and of the message that follows it on lines with ``>``."""
    pairs = re.findall(r"((?:^[^>\n].*\n)+)((?:^> .*\n)+)", text, flags=re.MULTILINE)
    return [
        (yaml.safe_load(above), message[2:-1].replace("\n> ", " ")) for above, message in pairs
    ]
