"""Where short labels of crowded points go, so that none hides another."""

import math
from collections.abc import Sequence

RINGS = (9.0, 16.0, 24.0, 33.0, 43.0, 54.0, 66.0, 80.0)  # points from the marker
DIRECTIONS = [math.radians(45 + 360 * k / 16) for k in range(16)]


def label_places(
    points: Sequence[tuple[float, float]], *, width: float, height: float
) -> list[tuple[float, float]]:
    """Return the offset of each label's middle from its point.

    Each label in turn takes the nearest place at which it covers no point and no label
    that stands already; where there is none, the first.

    Parameters
    ----------
    points : sequence of (float, float)
        Where the points are drawn, in the unit of the other lengths.
    width, height : float
        Of a label.

    Examples
    --------
    >>> places = label_places([(0, 0), (5, 0)], width=8, height=6)
    >>> [(round(dx), round(dy)) for dx, dy in places]
    [(8, 6), (-8, 6)]
    """
    taken: list[tuple[float, float]] = []
    offsets = []
    for x, y in points:
        tries = [
            (radius * math.cos(angle) * 1.3, radius * math.sin(angle))
            for radius in RINGS
            for angle in DIRECTIONS
        ]
        free = (
            (dx, dy)
            for dx, dy in tries
            if not any(abs(x + dx - a) < width and abs(y + dy - b) < height for a, b in taken)
            and not any(
                abs(x + dx - a) < (width + 6) / 2 and abs(y + dy - b) < (height + 6) / 2
                for a, b in points
            )
        )
        dx, dy = next(free, tries[0])
        taken.append((x + dx, y + dy))
        offsets.append((dx, dy))
    return offsets
