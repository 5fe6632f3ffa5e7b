"""Hide the packages that ABSENT_PACKAGES lists, as if they were not installed."""

import importlib.abc
import os
import sys
from importlib import metadata

ABSENT = os.environ["ABSENT_PACKAGES"].split()


class Absent(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ABSENT:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def from_name(name, _original=metadata.Distribution.from_name):
    if name.replace("-", "_") in ABSENT:
        raise metadata.PackageNotFoundError(name)
    return _original(name)


sys.meta_path.insert(0, Absent())
metadata.Distribution.from_name = staticmethod(from_name)
