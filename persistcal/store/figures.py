"""Figures as files, whole or not at all."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import matplotlib as mpl
from matplotlib.figure import Figure

from persistcal.store.files import written_whole

# Neither dates nor versions, so that equal figures are equal files
_PDF = {"metadata": dict.fromkeys(["CreationDate", "ModDate", "Producer", "Creator"])}
_PNG = {"metadata": {"Software": None}, "dpi": 200}


class FigureFile(NamedTuple):
    """Figures as PDF or PNG, by the ending of the name, drawn with the settings `style`."""

    style: Mapping[Any, Any]

    def write(self, figure: Figure, path: str, about: Mapping[str, Any]) -> None:
        """Write `figure` to `path`; a figure does not show what it is `about`."""
        kind = path.rsplit(".", 1)[1]
        how: dict[str, Any] = _PDF if kind == "pdf" else _PNG
        with mpl.rc_context(dict(self.style)), written_whole(path) as part:
            # A legend may be wider than the panels.
            figure.savefig(part, format=kind, bbox_inches="tight", **how)
