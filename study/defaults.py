"""The defaults below a config, as they are wherever the workflow is called from."""

import copy
from pathlib import Path

from snakemake.common.configfile import load_configfile
from snakemake.utils import update_config

from study.checkpoints import Config

FILES = ("config.yaml", "tables.yaml")


def over_defaults(config: Config, project: Path) -> Config:
    """Return `config` laid over the defaults of the `project`, key by key.

    Snakemake's `configfile:` does the same, but not in a module that is given a config:
    there it reads no file.
    """
    # In Snakemake's order, so that no parameter of a job changes with the way in.
    merged = copy.deepcopy(config)
    for name in FILES:
        update_config(merged, load_configfile(project / "config" / name))
    update_config(merged, config)
    return merged
