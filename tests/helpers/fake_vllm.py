"""The part of vLLM that `persistcal.models.vllm` uses, on top of transformers."""

import sys
from types import ModuleType, SimpleNamespace
from typing import ClassVar

import torch
from transformers import AutoModelForCausalLM


class SamplingParams(SimpleNamespace):
    """The settings of a request."""


class LLM:
    """A model that answers like vLLM, one request at a time.

    `made` lists all models; `steps` lists the number of requests in each call.
    """

    made: ClassVar[list] = []

    def __init__(self, model, **settings):
        self.model = AutoModelForCausalLM.from_pretrained(model, dtype=settings["dtype"])
        self.settings, self.steps = settings, []
        self.made.append(self)

    @torch.inference_mode()
    def generate(self, prompts, sampling, use_tqdm):
        assert not use_tqdm
        assert (sampling.temperature, sampling.max_tokens) == (0.0, 1)
        self.steps.append(len(prompts))
        return [
            self.answer(prompt["prompt_token_ids"], sampling.logprobs) for prompt in prompts
        ]

    def answer(self, tokens, n):
        logits = self.model(torch.tensor([tokens])).logits[0, -1]
        logprob, token = logits.float().log_softmax(0).topk(n)
        # vLLM lists the chosen token first. Here it is an unlikely token: rounding can choose
        # among equally likely tokens.
        unlikely = logits.argmin().item()
        logprobs = {
            unlikely: SimpleNamespace(logprob=logits.log_softmax(0)[unlikely].item(), rank=1)
        }
        for rank, (p, t) in enumerate(zip(logprob.tolist(), token.tolist(), strict=True), 1):
            logprobs[t] = SimpleNamespace(logprob=p, rank=rank)
        return SimpleNamespace(outputs=[SimpleNamespace(logprobs=[logprobs])])


def install(monkeypatch):
    """Let ``import vllm`` find this, and return the list of models made since."""
    monkeypatch.setattr(LLM, "made", [])
    package, platforms = ModuleType("vllm"), ModuleType("vllm.platforms")
    package.LLM, package.SamplingParams = LLM, SamplingParams
    platforms.current_platform = SimpleNamespace(is_cpu=lambda: True)
    monkeypatch.setitem(sys.modules, "vllm", package)
    monkeypatch.setitem(sys.modules, "vllm.platforms", platforms)
    return LLM.made
