"""Figures as jobs write them."""

from persistcal.report.drawing import Drawing


def files_of(figure, folder):
    """The bytes of a figure's PDF and PNG."""
    (writer,) = Drawing.__metadata__
    paths = {kind: folder / f"figure.{kind}" for kind in ("pdf", "png")}
    for path in paths.values():
        writer.write(figure, str(path), {})
    return {kind: path.read_bytes() for kind, path in paths.items()}
