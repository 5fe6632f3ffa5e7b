"""Measure whether confidence follows knowledge as the knowledge changes.

The functions for notebooks are here: `persistcal.evaluate(predictions, checkpoints)` and those
beside it in `__all__`. Each is imported when it is first used, so that the package imports
nothing by itself. Scripts and rooms import from rooms: an edit of these names reruns nothing.
"""

import os
from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "1.0.0"

_MODULES = {
    "compare": "evaluate",
    "contrast_sets": "evaluate",
    "evaluate": "evaluate",
    "generate_beams": "checkpoints",
    "load": "checkpoints",
    "plan": "evaluate",
    "score_answers": "checkpoints",
    "smooth_ece": "evaluate",
    "threshold": "thresholds",
    "train_adapter": "checkpoints",
}
__all__ = list(_MODULES)

if not os.environ.get("SOURCE_DATE_EPOCH", "0").isdecimal():
    del os.environ["SOURCE_DATE_EPOCH"]  # SciPy and Matplotlib take a number only

if TYPE_CHECKING:
    from persistcal.api.checkpoints import generate_beams, load, score_answers, train_adapter
    from persistcal.api.evaluate import compare, contrast_sets, evaluate, plan, smooth_ece
    from persistcal.api.thresholds import threshold
else:

    def __getattr__(name: str) -> object:
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"{__name__}.api.{_MODULES[name]}"), name)

    def __dir__() -> list[str]:
        return [*globals(), *__all__]
