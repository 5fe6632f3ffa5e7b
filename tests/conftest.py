"""What several test files share: one finished study."""

import shutil

import pytest
from workflow_runs import ATLAS, ROOT, snakemake


@pytest.fixture(scope="session")
def study(tmp_path_factory):
    """A folder in which the small atlas study is complete; tests change copies of it."""
    folder = tmp_path_factory.mktemp("study")
    # As in a clone, where what the rules read is named relative to the working directory.
    shutil.copytree(ROOT / "resources", folder / "resources")
    snakemake(folder, "--cores", "2", configs=ATLAS)
    return folder
