"""The optimizers of a pre-training, and their running means, with which it goes on."""

from collections.abc import Mapping, Sequence

import torch
from transformers import PreTrainedModel

# What each optimizer keeps of a parameter, by its name in torch.
MOMENTS = {"mean": "exp_avg", "square": "exp_avg_sq", "momentum": "momentum_buffer"}


def open_optimizers(
    model: PreTrainedModel, name: str, *, weight_decay: float
) -> list[torch.optim.Optimizer]:
    """Return the optimizers of a training, AdamW and with the `name` "muon" that, too.

    Muon [1]_ is for the matrices of the blocks, at AdamW's scale [2]_; embeddings, the head
    and norms are AdamW's in any case. The learning rate is set step by step.

    References
    ----------
    .. [1] Jordan, "Muon: An optimizer for hidden layers in neural networks".
       https://kellerjordan.github.io/posts/muon/
    .. [2] Liu et al., "Muon is Scalable for LLM Training". https://arxiv.org/abs/2502.16982
    """
    hidden = [
        parameter
        for key, parameter in model.named_parameters()
        if name == "muon" and parameter.ndim == 2 and ".layers." in key
    ]
    chosen = {id(parameter) for parameter in hidden}
    rest = [p for p in model.parameters() if id(p) not in chosen]
    adamw = torch.optim.AdamW(rest, betas=(0.9, 0.95), weight_decay=weight_decay)
    if not hidden:
        return [adamw]
    muon = torch.optim.Muon(
        hidden, momentum=0.95, weight_decay=weight_decay, adjust_lr_fn="match_rms_adamw"
    )
    return [adamw, muon]


def read_moments(
    optimizers: Sequence[torch.optim.Optimizer], model: PreTrainedModel
) -> dict[str, torch.Tensor]:
    """Return the running means of each parameter, as `<kind>.<parameter>`."""
    kinds = {theirs: ours for ours, theirs in MOMENTS.items()}
    state = {p: kept for optimizer in optimizers for p, kept in optimizer.state.items()}
    return {
        f"{kinds[key]}.{name}": value.cpu()
        for name, parameter in model.named_parameters()
        for key, value in state[parameter].items()
        if key in kinds
    }


def restore_moments(
    optimizers: Sequence[torch.optim.Optimizer],
    model: PreTrainedModel,
    moments: Mapping[str, torch.Tensor],
    *,
    step: int,
) -> None:
    """Put the moments of `read_moments`, after so many steps, into new optimizers."""
    names = {parameter: name for name, parameter in model.named_parameters()}
    for optimizer in optimizers:
        adamw = isinstance(optimizer, torch.optim.AdamW)
        for parameter in (p for group in optimizer.param_groups for p in group["params"]):
            name, kept = names[parameter], optimizer.state[parameter]
            for kind in ("mean", "square") if adamw else ("momentum",):
                value = moments[f"{kind}.{name}"]
                kept[MOMENTS[kind]] = value.to(parameter.device, copy=True)
            if adamw:
                kept["step"] = torch.tensor(float(step))
