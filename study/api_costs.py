"""Requests and tokens that checkpoints behind an API take, and what they cost, before any."""

from math import ceil
from typing import NamedTuple

from study.costs import Wildcards, n_questions
from study.study import PRICES, Config, Study

QUESTION_TOKENS = 45
CANDIDATE_TOKENS = 15  # a candidate answer and what follows it
EXAMPLE_TOKENS = 30  # a question and its answer in a few-shot prompt
REQUEST_TOKENS = 120  # for a confidence, in words, around question and answer


class OfServer(NamedTuple):
    """Requests, tokens of their prompts and at most of their answers, and their cost."""

    requests: float = 0
    input_tokens: float = 0
    output_tokens: float = 0
    cost: float = 0.0


# What a rule asks checkpoints for, in a word
KINDS = {"sample_from_server": "samples", "ask_server": "confidences"}


def asked_of_api(config: Config, rule: str, job: Wildcards) -> OfServer:
    """Return what the job of a `rule` of `KINDS` with the wildcards `job` asks a server."""
    study, place = Study(config), (job["model"], job["checkpoint"])
    if rule == "sample_from_server":
        how, splits = config["decoding"], study.splits_asked(*place)
        prompt = QUESTION_TOKENS + EXAMPLE_TOKENS * config["prompts"]["few_shot"]
    else:
        how = config["estimators"][job["estimator"]]["asks"]
        splits = [study.split_rated(*place)]
        prompt = REQUEST_TOKENS + QUESTION_TOKENS + CANDIDATE_TOKENS
    api, questions = study.api(*place), n_questions(config, job["dataset"], *splits)
    requests = questions * ceil(how["n_samples"] / api.get("samples_per_request", 1))
    answers = questions * how["n_samples"] * how["max_new_tokens"]
    prices = [api.get(key, 0) for key in PRICES]
    cost = (requests * prompt * prices[0] + answers * prices[1]) / 1e6
    return OfServer(requests, requests * prompt, answers, cost)
