"""Result of every benchmark, and its printed form."""

import json
import math
import sys
from collections.abc import Callable, Iterable
from typing import NamedTuple


class Result(NamedTuple):
    """The way of this project against another one, in one run.

    Attributes
    ----------
    name : str
    against : str
        The other way.
    seconds : float
        Of the processor, unless `how` says otherwise, that this project's way takes.
    ratio : float
        How many times as long the other way takes.
    difference, tolerance : float
        Between the results of both ways: the largest, and the largest that counts as equal.
    floor : float, optional
        How many times as long as the least possible this project's way takes.
    how : str
        Sizes, and whatever else a reader must know.
    """

    name: str
    against: str
    seconds: float
    ratio: float
    difference: float
    tolerance: float
    floor: float | None = None
    how: str = ""

    @property
    def agrees(self) -> bool:
        """Return whether both ways have the same results."""
        return self.difference <= self.tolerance

    def __str__(self) -> str:
        """Return a sentence."""
        floor = "" if self.floor is None else f", {self.floor:.1f} times the floor"
        return (
            f"{self.name}: {self.seconds:.3g} s{floor}; {self.against} takes {self.ratio:.1f} "
            f"times as long and differs by {self.difference:.0e}. {self.how}"
        )


class Growth(NamedTuple):
    """Growth of processor time with the number of something."""

    of: str
    sizes: list[int]
    seconds: list[float]
    how: str = ""

    @property
    def exponent(self) -> float:
        """Slope of the logarithm of seconds over that of sizes, between the last two.

        >>> Growth("questions", [1, 10, 20], [5.0, 6.0, 12.0]).exponent
        1.0
        """
        times = self.seconds[-1] / self.seconds[-2]
        return math.log(times) / math.log(self.sizes[-1] / self.sizes[-2])

    def __str__(self) -> str:
        """Return a sentence."""
        points = ", ".join(
            f"{n}: {s:.3g} s" for n, s in zip(self.sizes, self.seconds, strict=True)
        )
        return f"{self.of}: {points}; exponent {self.exponent:.2f}. {self.how}"


Measured = Result | Growth


def show(measure: Callable[[bool], Iterable[Measured]]) -> None:
    """Print what `measure` finds, quickly if the command line says ``quick``.

    With ``json``, a line each that `from_json` reads.
    """
    for found in measure("quick" in sys.argv):
        row = [type(found).__name__, found._asdict()]
        print(json.dumps(row) if "json" in sys.argv else found, flush=True)


def from_json(line: str) -> Measured:
    """Return the result or growth that a line of `show` holds."""
    kind, values = json.loads(line)
    return {"Result": Result, "Growth": Growth}[kind](**values)
