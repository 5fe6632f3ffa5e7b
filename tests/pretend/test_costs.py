"""No step of decoding, scoring or training waits more, or launches more, than `costs` says."""

import costs
import pytest


@pytest.mark.parametrize("name", costs.RUNS)
def test_steps_cost_no_more(name):
    cost, counts = costs.measure(name)
    for now, most, what in zip(cost, costs.MOST[name], cost._fields, strict=True):
        told = f"{name}: {what} is {now}, and {most} in tests/pretend/costs.py"
        assert now <= most, f"{told}; find out why it has grown:\n{counts}"
        assert now >= 0.9 * most, f"{told}; lower the number there."
