"""A study's decisions about a paid judge."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from persistcal.server.spending import Budget


@dataclass(frozen=True)
class JudgeSettings:
    """The section ``judge`` of a config, and the text of the prompt.

    Attributes
    ----------
    backend : {"openai", "openai_batch"}
    model, prompt, base_url : str
    request : dict
        Further fields of each request; None leaves a field out.
    concurrency : int
        Requests on their way at once, over all jobs.
    timeout_s, poll_s : float
    retries : int
    price_input, price_output : float
        Per million tokens.
    max_requests, max_cost : int, float
        Ceilings for the whole study.
    api_key_env : str
        Name of the environment variable that holds the key.
    batch_requests : int
        Largest batch.
    together : bool
        Ask about all candidates of a question in one request.
    form : {"chat", "released"}
        See `persistcal.judge.prompt.request_body`.
    undecided : {"stop", "not_attempted"}
        How a job treats answers that wait for a person.
    """

    backend: str
    model: str
    prompt: str
    base_url: str
    max_requests: int
    max_cost: float
    price_input: float
    price_output: float
    api_key_env: str = "OPENAI_API_KEY"
    request: Mapping[str, Any] = field(default_factory=dict)
    concurrency: int = 16
    timeout_s: float = 60
    retries: int = 8
    poll_s: float = 60
    batch_requests: int = 50_000
    first_wait_s: float = 1
    together: bool = False
    form: str = "chat"
    undecided: str = "stop"

    @property
    def budget(self) -> Budget:
        """Prices and ceilings."""
        prices = self.model, self.price_input, self.price_output
        return Budget(*prices, self.max_requests, self.max_cost, "judge", "Judging")
