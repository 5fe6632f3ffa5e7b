"""A causal language model that vLLM runs, for beam search of our own.

vLLM's own beam search ends beams at end-of-sequence tokens only, not at a newline
(https://github.com/vllm-project/vllm/issues/9253). So `persistcal.answers.beam_search`
searches here too, and asks vLLM at each step for the likeliest next tokens of all beams.
"""

from typing import Any

import torch
from torch import Tensor
from transformers import AutoConfig, GenerationConfig

from persistcal.models.checkpoint import Checkpoint
from persistcal.models.hub import fetch_checked


class VllmModel:
    """A model as decoding needs it: its likeliest next tokens, and where answers end.

    Weights are read from safetensors files only, and no code that comes with them is run. By
    default it computes in bfloat16 on a GPU and in float32 on the CPU. Log-probabilities come
    to `device`; the model itself may be on several GPUs.
    """

    device = torch.device("cpu")

    def __init__(self, source: str, *, dtype: str | None = None) -> None:
        try:
            from vllm import LLM, SamplingParams
            from vllm.platforms import current_platform
        except ImportError as error:
            raise ImportError(
                f"decoding.backend vllm needs vLLM ({error}); install it as docs/cluster.md "
                "says under 'Decoding with vLLM', or set decoding.backend to transformers."
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
            max_model_len=-1,  # as long as fits; a model's own limit may need too much memory
            enforce_eager=True,  # steps have many new tokens, for which graphs are not made
        )

    def next_tokens(self, texts: list[list[int]], n: int) -> tuple[Tensor, Tensor]:
        """Return the log-probabilities and tokens of the `n` likeliest next ones of each text.

        Both are tensors of shape (n_texts, n), from the likeliest, at temperature 1, for texts
        of one token at least; n is the vocabulary's size where that is smaller.
        """
        n = min(n, self.vocab_size)
        outputs = self._llm.generate(
            [{"prompt_token_ids": tokens} for tokens in texts],
            self._sampling(temperature=0.0, max_tokens=1, logprobs=n, detokenize=False),
            use_tqdm=False,
        )
        rows = []
        for output in outputs:
            [likeliest] = output.outputs[0].logprobs  # of the one new token
            pairs = [(entry.logprob, token) for token, entry in likeliest.items()]
            # vLLM's choice comes on top of the `n`, should it not be among them.
            rows.append(sorted(pairs, key=lambda pair: -pair[0])[:n])
        logprobs = torch.tensor([[logprob for logprob, _ in row] for row in rows])
        return logprobs, torch.tensor([[token for _, token in row] for row in rows])


def open_vllm(checkpoint: Checkpoint) -> VllmModel:
    """Load the model of a checkpoint, whose files are those of its record."""
    return VllmModel(str(fetch_checked(checkpoint)), dtype=checkpoint.dtype)
