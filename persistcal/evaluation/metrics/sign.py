"""Δ: conditioned confidence in the right answer minus that in the wrong one. Δ₀: its sign."""

from __future__ import annotations

from typing import TYPE_CHECKING

from persistcal.evaluation.metrics.base import GAPS, BalancedMean, Mean

if TYPE_CHECKING:
    from persistcal.evaluation.contrast import OnContrastSet
    from persistcal.evaluation.predictions import Array


class BalancedSign(BalancedMean):
    """Δ₀ᵇ: an estimator that always prefers the later checkpoint has 0."""

    name, heading, latex = "delta0_balanced", "Δ₀ᵇ", r"$\Delta_0^b$"
    bounds = GAPS
    conditioned = False
    chance = 0.0

    def contrast_values(self, run: OnContrastSet) -> Array:
        """Return 1 if the confidence follows the change, −1 if it moves against it, else 0."""
        return run.sign


class Sign(Mean):
    """Δ₀."""

    name, heading, latex = "delta0", "Δ₀", r"$\Delta_0$"
    bounds = GAPS
    conditioned = False
    contrast_values = BalancedSign.contrast_values


class BalancedGap(BalancedMean):
    """Δᵇ."""

    name, heading, latex = "delta_balanced", "Δᵇ", r"$\Delta^b$"
    bounds = GAPS

    def contrast_values(self, run: OnContrastSet) -> Array:
        """Return the confidence in the correct answer minus that in the incorrect one."""
        return run.gap


class Gap(Mean):
    """Δ."""

    name, heading, latex = "delta", "Δ", r"$\Delta$"
    bounds = GAPS
    contrast_values = BalancedGap.contrast_values
