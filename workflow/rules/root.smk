"""Find the project's folder, for any way to name its Snakefile.

Not `workflow.basedir`: that is the folder of whoever uses this workflow as a module.
"""

import sys
import tarfile
import tempfile
from pathlib import Path

from snakemake.sourcecache import HostingProviderFile


def laid_out(source):
    """Return the folder with the whole project, for a Snakefile named by `github(...)`.

    Snakemake fetches only the files that rules name; this also unpacks the packages.
    """
    commit = source.hosted_repo.repo.commit(source.ref).hexsha
    root = Path(".snakemake", "persistent-calibration", commit).resolve()
    if not root.exists():
        root.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=root.parent) as folder:
            packed, whole = Path(folder, "packed.tar"), Path(folder, "whole")
            source.hosted_repo.repo.git.archive(commit, output=packed)
            with tarfile.open(packed) as archive:
                archive.extractall(whole, filter="data")
            whole.rename(root)
    sys.path.insert(0, str(root))
    return root


HERE = workflow.current_basedir.join("../..")
if isinstance(HERE, HostingProviderFile):
    ROOT = laid_out(HERE)
else:
    ROOT = Path(HERE.get_path_or_uri(secret_free=True))
