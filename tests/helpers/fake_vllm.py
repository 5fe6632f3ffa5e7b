"""The part of vLLM that `persistcal.models.vllm` uses, on top of transformers."""

import sys
from types import ModuleType, SimpleNamespace
from typing import ClassVar

import torch
from transformers import AutoModelForCausalLM

from persistcal.answers.continuations import nucleus


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
        if isinstance(sampling, list):
            self.steps.append(len(prompts))
            return [
                SimpleNamespace(
                    outputs=[self.draw(p["prompt_token_ids"], s, i) for i in range(s.n)]
                )
                for p, s in zip(prompts, sampling, strict=True)
            ]
        assert (sampling.temperature, sampling.max_tokens) == (0.0, 1)
        self.steps.append(len(prompts))
        return [self.answer(p["prompt_token_ids"], sampling.logprobs) for p in prompts]

    def draw(self, prompt, sampling, index):
        """Draw a sample of a request, whose seed counts up like vLLM's."""
        generator = torch.Generator().manual_seed(sampling.seed + index)
        tokens, logprobs = [], []
        while len(tokens) < sampling.max_tokens and not set(tokens) & {
            *sampling.stop_token_ids
        }:
            logits = self.model(torch.tensor([prompt + tokens])).logits[0, -1].float()
            chance = nucleus((logits[None] / sampling.temperature).softmax(1), sampling.top_p)
            tokens.append(torch.multinomial(chance[0], 1, generator=generator).item())
            logprob, best = logits.log_softmax(0), logits.topk(sampling.logprobs).indices
            listed = {*best.tolist(), tokens[-1]}
            logprobs.append({t: SimpleNamespace(logprob=logprob[t].item()) for t in listed})
        return SimpleNamespace(token_ids=tuple(tokens), logprobs=logprobs)

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
