"""Make the record of a state that averages the weights of other checkpoints."""

from dataclasses import replace
from typing import Any

from persistcal.models import hub, load
from persistcal.models.checkpoint import Checkpoint
from persistcal.store.jobs import run


def merge_checkpoints(
    parts: list[Checkpoint],
    *,
    merge: dict[str, float],
    dtype: str | None,
    beside_weights: dict[str, Any],
    key: str,
) -> Checkpoint:
    """Return the record of the average; each job that loads it computes the weights.

    `merge` maps the names of `parts` to shares. `beside_weights` contains the state's other
    settings; an adapter and a quantization change the average. `key` is the config key.
    """
    empty = {
        part.name: load.build_empty(hub.fetch_checked(part, weights=False)) for part in parts
    }
    load.check_same_shapes(empty, key)
    model = empty[parts[0].name]
    changes: dict[str, Any] = {
        "merge": [{"share": merge[part.name], "checkpoint": part.content()} for part in parts]
    }
    if adapter := beside_weights.get("adapter"):
        checkpoint = hub.resolve_revision(**adapter)
        load.check_adapter_fits(hub.fetch_checked(checkpoint), model)
        changes["adapter"] = checkpoint.content()
    if kind := beside_weights.get("quantization"):
        load.check_rounding(model, kind, f"config: {key}")
        changes["quantization"] = kind
    return replace(parts[0], dtype=dtype, changes=changes)


if __name__ == "__main__":
    run(merge_checkpoints, snakemake)
