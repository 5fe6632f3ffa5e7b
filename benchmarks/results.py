"""Results of benchmarks, and their printed form."""

import json
import math
import sys
from collections.abc import Callable, Iterable
from typing import NamedTuple


class Result(NamedTuple):
    """Comparison of this project's way with another one, in one run.

    Attributes
    ----------
    name : str
    against : str
        The other way.
    seconds : float
        Processor time that this project's way takes; `how` names any other clock.
    ratio : float
        Time of the other way, as a multiple of `seconds`.
    difference, tolerance : float
        Largest difference between the results, and the largest that counts as equal.
    floor : float, optional
        `seconds`, as a multiple of the least possible time.
    how : str
        Sizes and other conditions of the run.
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

    quantity: str
    sizes: list[int]
    seconds: list[float]
    how: str = ""

    @property
    def exponent(self) -> float:
        """Slope of log seconds over log sizes, between the last two sizes.

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
        return f"{self.quantity}: {points}; exponent {self.exponent:.2f}. {self.how}"


Measured = Result | Growth


def show(measure: Callable[[bool], Iterable[Measured]]) -> None:
    """Print all results of `measure`; with the argument ``quick``, of its quick run.

    With the argument ``json``, print lines that `from_json` reads.
    """
    for result in measure("quick" in sys.argv):
        row = [type(result).__name__, result._asdict()]
        print(json.dumps(row) if "json" in sys.argv else result, flush=True)


def from_json(line: str) -> Measured:
    """Return the result or growth of a line that `show` printed."""
    kind, values = json.loads(line)
    return {"Result": Result, "Growth": Growth}[kind](**values)
