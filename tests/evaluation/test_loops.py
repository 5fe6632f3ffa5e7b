import numba

from persistcal.evaluation import loops


def test_where_nothing_can_be_kept_loops_are_compiled_all_the_same(monkeypatch):
    compiled = numba.njit

    def cannot_keep(*arguments, cache=False, **options):
        if cache:
            raise RuntimeError("no locator available")
        return compiled(*arguments, **options)

    monkeypatch.setattr(numba, "njit", cannot_keep)
    assert loops._compiled(lambda x: x + 1)(1) == 2
