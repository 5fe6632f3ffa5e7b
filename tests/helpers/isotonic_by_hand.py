"""The released isotonic regression, literally and slowly."""

import numpy as np


def pool_adjacent_violators(confidence, correct):
    """The released procedure, literally: one violation at a time, then one block back."""
    in_order = sorted(range(len(confidence)), key=lambda i: confidence[i])  # a stable sort
    blocks = [[i] for i in in_order]

    def share(block):
        return sum(int(correct[i]) for i in block) / len(block)

    at = 0
    while at + 1 < len(blocks):
        if share(blocks[at]) > share(blocks[at + 1]):
            blocks[at : at + 2] = [blocks[at] + blocks[at + 1]]
            at = max(at - 1, 0)
        else:
            at += 1
    knots = [(np.mean([confidence[i] for i in block]), share(block)) for block in blocks]
    if knots[0][0] > 0:
        knots.insert(0, (0.0, 0.0))
    if knots[-1][0] < 1:
        knots.append((1.0, 1.0))
    return knots


def slowly_interpolated(knots, at):
    """The last knot at `at` if there is one, else the line between its neighbours."""
    here = [y for x, y in knots if x == at]
    if here:
        return here[-1]
    x0, y0 = [knot for knot in knots if knot[0] < at][-1]
    x1, y1 = next(knot for knot in knots if knot[0] > at)
    return y0 + (y1 - y0) * (at - x0) / (x1 - x0)
