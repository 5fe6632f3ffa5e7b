"""Run a causal language model with vLLM: samples, and next tokens for a search.

vLLM's own beam search ends beams only at end-of-sequence tokens, not at a newline
(https://github.com/vllm-project/vllm/issues/9253). Therefore `persistcal.answers.continuations`
runs the search, and vLLM returns the likeliest next tokens of all beams at each step.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from transformers import AutoConfig, GenerationConfig

from persistcal.models.checkpoint import Checkpoint
from persistcal.models.hub import fetch_checked


class Drawn(NamedTuple):
    """A sample: tokens, log-probabilities, and the summed margin of the two best tokens."""

    tokens: list[int]
    logprobs: list[float]
    margin: float


class VllmModel:
    """Model that draws samples, and returns the likeliest next tokens of texts.

    Only safetensors files are read, and no code from the model's repository is run.
    """

    device = torch.device("cpu")  # of log-probabilities; the model can use several GPUs

    def __init__(self, source: str, *, dtype: str | None = None) -> None:
        try:
            from vllm import LLM, SamplingParams
            from vllm.platforms import current_platform
        except ImportError as error:
            raise ImportError(
                f"decoding.backend vllm needs vLLM ({error}); install it as docs/cluster.md "
                "explains under 'Decoding with vLLM', or set decoding.backend to transformers."
            ) from error
        config = AutoConfig.from_pretrained(source, trust_remote_code=False)
        self.vocab_size: int = config.vocab_size
        try:
            self.generation_config = GenerationConfig.from_pretrained(source)
        except OSError:  # the file is optional, also to transformers
            self.generation_config = GenerationConfig.from_model_config(config)
        self._sampling = SamplingParams
        self._llm: Any = LLM(
            source,
            dtype=dtype or ("float32" if current_platform.is_cpu() else "bfloat16"),
            tensor_parallel_size=max(1, torch.cuda.device_count()),
            load_format="safetensors",
            trust_remote_code=False,
            skip_tokenizer_init=True,
            enable_prefix_caching=True,
            logprobs_mode="raw_logprobs",
            max_logprobs=-1,  # no limit below the vocabulary
            max_model_len=-1,  # the longest that fits in memory
            enforce_eager=True,  # CUDA graphs do not cover steps with many new tokens
        )

    def next_tokens(self, texts: list[list[int]], n: int) -> tuple[Tensor, Tensor]:
        """Return log-probabilities and ids of the `n` likeliest next tokens of each text.

        They are at temperature 1, in descending order, of shape (n_texts, n); fewer if the
        vocabulary is smaller.
        """
        n = min(n, self.vocab_size)
        outputs = self._llm.generate(
            [{"prompt_token_ids": tokens} for tokens in texts],
            self._sampling(temperature=0.0, max_tokens=1, logprobs=n, detokenize=False),
            use_tqdm=False,
        )
        logprobs, ids = [], []
        for output in outputs:
            [likeliest] = output.outputs[0].logprobs  # one new token
            pairs = [(entry.logprob, token) for token, entry in likeliest.items()]
            # vLLM adds its own choice if it is not among the `n` likeliest.
            pairs = sorted(pairs, key=lambda pair: -pair[0])[:n]
            logprobs.append([logprob for logprob, _ in pairs])
            ids.append([token for _, token in pairs])
        return torch.tensor(logprobs), torch.tensor(ids)

    def draw(
        self,
        texts: list[list[int]],
        seeds: Sequence[int],
        ends: list[int],
        **settings: Any,  # noqa: ANN401
    ) -> list[list[Drawn]]:
        """Return samples of each text; a token of `ends` ends a sample.

        A text is one request. Its random numbers depend only on its seed. `settings` are
        vLLM's n, max_tokens, temperature and top_p. Log-probabilities are at temperature 1.
        """
        settings |= {"stop_token_ids": ends, "logprobs": 2, "detokenize": False}
        outputs = self._llm.generate(
            [{"prompt_token_ids": tokens} for tokens in texts],
            [self._sampling(seed=seed, **settings) for seed in seeds],
            use_tqdm=False,
        )
        return [[_read_sample(sample) for sample in output.outputs] for output in outputs]


def _read_sample(sample: Any) -> Drawn:  # noqa: ANN401
    tokens = list(sample.token_ids)
    ranked = [
        sorted((entry.logprob for entry in p.values()), reverse=True) for p in sample.logprobs
    ]
    margin = sum(math.exp(best) - math.exp(second) for best, second, *_ in ranked)
    logprobs = [p[token].logprob for p, token in zip(sample.logprobs, tokens, strict=True)]
    return Drawn(tokens, logprobs, margin)


def open_vllm(checkpoint: Checkpoint) -> VllmModel:
    """Load the model of a checkpoint, after a check against its record."""
    return VllmModel(str(fetch_checked(checkpoint)), dtype=checkpoint.dtype)
