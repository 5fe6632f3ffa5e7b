"""Refuse states of a model that cannot share an adapter, before their weights are loaded."""

from collections.abc import Collection, Mapping

from persistcal.models import hub
from persistcal.models.checkpoint import Checkpoint, CheckpointError
from persistcal.models.load import build_empty, open_tokenizer
from persistcal.models.states import linear_layers


def check_alike(checkpoints: Mapping[str, Checkpoint], prompts: Collection[str]) -> None:
    """Refuse checkpoints whose layers differ, or that read `prompts` as other tokens.

    Those of one architecture and vocabulary share an adapter, whatever tokens one of them
    has on top that no prompt is made of.
    """
    last, reference = list(checkpoints.items())[-1]
    for name, checkpoint in checkpoints.items():
        if checkpoint.files and checkpoint.files == reference.files:
            continue
        remedy = "let the recipe train_on each, or on checkpoints of one architecture"
        ours, theirs = _layers(checkpoint), _layers(reference)
        if ours != theirs:
            layer = next(n for n in [*theirs, *ours] if ours.get(n) != theirs.get(n))
            raise CheckpointError(
                f"checkpoints {name} and {last} cannot share an adapter: {layer} is "
                f"{ours.get(layer, 'missing')} in {name} and {theirs.get(layer, 'missing')} in "
                f"{last}; {remedy}."
            )
        texts = list(prompts)
        tokens, other = (open_tokenizer(c)(texts)["input_ids"] for c in (checkpoint, reference))
        if differ := [text for text, a, b in zip(texts, tokens, other, strict=True) if a != b]:
            raise CheckpointError(
                f"checkpoints {name} and {last} cannot share an adapter: their vocabularies "
                f"read {differ[0]!r} as different tokens; {remedy}."
            )


def _layers(checkpoint: Checkpoint) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the layers that an adapter changes."""
    layers = linear_layers(build_empty(hub.fetch_small_checked(checkpoint)))
    return {name: tuple(layer.weight.shape) for name, layer in layers.items()}
