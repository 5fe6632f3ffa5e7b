"""The released isotonic regression, literally and slowly."""

import numpy as np


def pool_adjacent_violators(confidence, correct):
    """Return the knots of the released procedure: merge a violation, then step back a block."""
    in_order = sorted(range(len(confidence)), key=lambda i: confidence[i])  # a stable sort
    blocks = [[i] for i in in_order]

    def share(block):
        return sum(int(correct[i]) for i in block) / len(block)

    block_index = 0
    while block_index + 1 < len(blocks):
        if share(blocks[block_index]) > share(blocks[block_index + 1]):
            blocks[block_index : block_index + 2] = [
                blocks[block_index] + blocks[block_index + 1]
            ]
            block_index = max(block_index - 1, 0)
        else:
            block_index += 1
    knots = [(np.mean([confidence[i] for i in block]), share(block)) for block in blocks]
    if knots[0][0] > 0:
        knots.insert(0, (0.0, 0.0))
    if knots[-1][0] < 1:
        knots.append((1.0, 1.0))
    return knots


def slowly_interpolated(knots, value):
    """Return the height of the last knot at `value`, or interpolate between its neighbours."""
    heights = [y for x, y in knots if x == value]
    if heights:
        return heights[-1]
    x0, y0 = [knot for knot in knots if knot[0] < value][-1]
    x1, y1 = next(knot for knot in knots if knot[0] > value)
    return y0 + (y1 - y0) * (value - x0) / (x1 - x0)
