"""A model behind an API, on the loopback, that answers questions and misbehaves on request."""

import hashlib
import logging
import os
import time

from judge_server import FakeServer, as_json, reply_to

from persistcal.answers.served import (
    ApiSettings,
    SampleDraws,
    Served,
    samples_of_questions,
)

logging.getLogger("werkzeug").setLevel(logging.WARNING)  # a line for each request
KEY = "sk-test-SECRET0123456789"
SECTION = "models.m.checkpoints.c.api"


def prompts(n):
    """Return the request bodies for n questions."""
    return [{"prompt": f"Prompt: Fact {i}?\nAnswer:"} for i in range(n)]


def answer(question, seed, model="m1"):
    """Return an answer of three, chosen by the question, the request's seed and the model."""
    digest = hashlib.sha256(f"{question}|{seed}|{model}".encode()).digest()
    return f"thing {digest[0] % 3}"


def question_of(body):
    prompt = body["prompt"] if "prompt" in body else body["messages"][-1]["content"]
    return prompt.rsplit("Prompt: ", 1)[-1].removesuffix("\nAnswer:")


def chosen(body, text, index=0, **changes):
    """A choice of a completion or chat completion; two tokens with -0.5 and -1 each."""
    numbers, finish = None, {"index": index, "finish_reason": "stop"}
    if "prompt" in body:
        if body.get("logprobs"):
            numbers = {"tokens": [" x", "\n"], "token_logprobs": [-0.5, -1.0]}
        return {**finish, "text": f" {text}", "logprobs": numbers, **changes}
    if body.get("logprobs"):
        numbers = {"content": [{"token": "x", "logprob": p} for p in (-0.5, -1.0)]}
    message = {"role": "assistant", "content": text}
    return {**finish, "message": message, "logprobs": numbers, **changes}


class FakeModel(FakeServer):
    """Answers with `answer` or `write_answer`.

    `asked` counts the requests for each question and seed. `bodies` lists all requests.
    `reply_fields` are further fields of each reply.
    """

    cache = "replies"

    def __init__(self, folder=None, url=""):
        super().__init__(folder, {("POST", "(chat/)?completions"): self.reply})
        self._url, self.bodies = url, []
        self.write_answer, self.reply_fields = None, {"model": "m1-2026"}

    @property
    def url(self):
        return self._url or self.server.url_for("/v1")

    def completion(self, body):
        question, seed = question_of(body), body.get("seed")
        n = body.get("n", 1)
        texts = [
            self.write_answer(question, seed)
            if self.write_answer
            else answer(question, f"{seed}{i or ''}", body["model"])
            for i in range(n)
        ]
        choices = [chosen(body, text, i) for i, text in enumerate(texts)]
        return {"choices": choices[::-1], **self.reply_fields}

    def reply(self, request):
        body = request.get_json()
        assert ("prompt" in body) == request.path.endswith("v1/completions")
        self.bodies.append(body)
        scripted = self.scripted_reply()
        time.sleep(self.delay_s)
        if scripted is not None:
            return reply_to(request, scripted)
        with self.lock:
            self.asked[question_of(body), body.get("seed")] += 1
        return as_json(self.completion(body))

    def served(self, **changes):
        return Served(**{"base_url": self.url, "model": "m1", **changes})

    def reach(self, **changes):
        defaults = {"concurrency": 4, "timeout_s": 5, "retries": 3, "first_wait_s": 0.01}
        return ApiSettings(**{"section": SECTION, "max_requests": 1000, **defaults, **changes})

    def sample(self, questions, *, n=1, api_key=KEY, reach=None, **changes):
        """Return the samples for each of the `questions`."""
        os.environ["OPENAI_API_KEY"] = api_key
        samples = samples_of_questions(
            dict(enumerate(questions)),
            self.served(**changes),
            SampleDraws(n, 0.5, 0.9, 17, 20),
            self.reach(**(reach or {})),
            folder=str(self.folder),
            replies=f"{self.folder}/replies",
        )
        return list(samples.values())
