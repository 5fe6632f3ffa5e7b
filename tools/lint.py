"""Run Snakemake's linter, but for one piece of advice that this house does not follow.

Snakemake wants functions apart from rules; here an input function stands above its rule.
"""

import re
import subprocess
import sys

NOT_FOLLOWED = "Mixed rules and functions in same snakefile."


def complaints(report: str) -> list[str]:
    """Return what is left of the linter's `report`, a line each.

    >>> complaints('''Lints for snakefile a.smk:
    ...     * Mixed rules and functions in same snakefile.:
    ...       Small one-liner functions ...
    ...     * Absolute path "/a" in line 3:
    ... ''')
    ['Lints for snakefile a.smk: Absolute path "/a" in line 3']
    """
    left, place = [], ""
    for line in report.splitlines():
        if line.startswith("Lints for "):
            place = line
        elif (lint := re.fullmatch(r"    \* (.*):", line)) and lint[1] != NOT_FOLLOWED:
            left.append(f"{place} {lint[1]}")
    return left


if __name__ == "__main__":
    command = [sys.executable, "-m", "snakemake", "--lint"]
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if done.returncode and "Lints for " not in done.stdout:
        sys.exit(done.stdout)
    if left := complaints(done.stdout):
        sys.exit("\n".join(left))
