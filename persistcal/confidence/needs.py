"""Columns and weights that an estimator needs, and a refusal of answers that lack them.

The file of an estimator says it as ``NEEDS = ("logprob",)``: columns of BEAMS that may be
empty, and `SEVERAL`. It is read without running the file, so that a study is refused in time.
"""

import ast
from collections.abc import Collection
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

SEVERAL = "several_answers"
KNOWN = (SEVERAL, "logprob", "n_tokens", "entropy", "unconditional", "stated")


def declared_needs(source: str) -> tuple[str, ...]:
    """Return what the estimator whose file holds `source` needs, refused if it is unknown."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "NEEDS":
            try:
                needs = ast.literal_eval(node.value)
            except ValueError:
                needs = None
            if not isinstance(needs, tuple) or not set(needs) <= set(KNOWN):
                raise ValueError(
                    f"NEEDS is {ast.unparse(node.value)}, but it may be a tuple of "
                    f"{', '.join(map(repr, KNOWN))}"
                )
            return needs
    return ()


def check_needs(estimator: str, needs: Collection[str], beams: "pd.DataFrame") -> None:
    """Refuse `beams`, of one or several checkpoints, that lack what `estimator` needs."""
    place = [name for name in ("checkpoint", "question_id") if name in beams]
    for need in needs:
        if need == SEVERAL:
            if len(beams) and not beams.duplicated(place).any():
                raise ValueError(
                    f"estimators.{estimator} needs several answers to each question, but there "
                    "is one; generate more, or drop it from study.estimators"
                )
        elif (lacking := beams[need].isna()).any():
            where = ", ".join(f"{name} {beams.loc[lacking, name].iloc[0]!r}" for name in place)
            raise ValueError(
                f"estimators.{estimator} needs the {need} of each answer, and {lacking.sum()} "
                f"have none, the first at {where}; give it, or drop the estimator from "
                "study.estimators"
            )
