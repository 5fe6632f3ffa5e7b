"""Send a rule's records and tracebacks to its log file."""

import logging
import sys
from pathlib import Path
from types import TracebackType


def log_to(path: str | Path) -> None:
    """Log to the file `path` and to standard error, uncaught exceptions too."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    logging.basicConfig(
        level=logging.INFO,
        format="%(asctime)s %(levelname)s %(message)s",
        handlers=[logging.FileHandler(path, mode="w"), logging.StreamHandler()],
        force=True,
    )
    logging.getLogger("fontTools").setLevel(logging.WARNING)  # names every glyph of a figure

    def record(
        kind: type[BaseException], error: BaseException, trace: TracebackType | None
    ) -> None:
        logging.getLogger(kind.__module__).critical("%s", error, exc_info=(kind, error, trace))

    sys.excepthook = record
