"""The names of all metrics: how each is printed, and which direction is better.

A metric is a function of `persistcal.evaluation.metrics` and a line here. The function is named
by scope and metric: `contrast_auc`. Nothing is imported, as the config is checked with it.
"""

from typing import NamedTuple

SCOPES = ("contrast", "full")


class Measure(NamedTuple):
    """A metric as tables and figures name it, in plain text and LaTeX, and its scopes.

    Without `has_interval` it gets no interval and no test between estimators or checkpoints,
    because simulated ones are not valid (docs/validation.md). One of `both_directions` rests on
    gained and on lost questions alike, and needs both.
    """

    heading: str
    latex: str
    scopes: tuple[str, ...] = SCOPES
    lower_is_better: bool = False
    has_interval: bool = True
    both_directions: bool = False

    @property
    def arrow(self) -> str:
        """The direction that is better."""
        return "↓" if self.lower_is_better else "↑"


MEASURES = {
    "delta0_balanced": Measure("Δ₀ᵇ", r"$\Delta_0^b$", ("contrast",), both_directions=True),
    "delta0": Measure("Δ₀", r"$\Delta_0$", ("contrast",)),
    "delta_balanced": Measure("Δᵇ", r"$\Delta^b$", ("contrast",), both_directions=True),
    "delta": Measure("Δ", r"$\Delta$", ("contrast",)),
    "change_auc": Measure("Change AUC", "Change AUC", ("contrast",), both_directions=True),
    "auc": Measure("AUC", "AUC"),
    "brier": Measure("Brier", "BS", lower_is_better=True),
    "smece": Measure("ECE", "ECE", lower_is_better=True, has_interval=False),
}


def names(scope: str) -> list[str]:
    """Return the metrics of a scope, in the order of tables.

    >>> names("full")
    ['auc', 'brier', 'smece']
    """
    return [name for name, measure in MEASURES.items() if scope in measure.scopes]
