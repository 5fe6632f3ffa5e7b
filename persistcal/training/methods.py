"""Methods of the laboratory to change a checkpoint. Each method is one class.

`METHODS` has the classes by ``change.method`` of the config. The fields of a class are further
keys of ``change``; keys without a default are required. A study imports this module, so torch
is imported only inside the losses.
"""

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from torch import Tensor

SETS = ("learn", "forget", "keep")


@dataclass(frozen=True, kw_only=True)
class Method:
    """A change. The first line of a docstring describes it in config/README.md."""

    repeats_pretraining: ClassVar[bool] = False

    @classmethod
    def required(cls) -> list[str]:
        """Return the keys without a default."""
        return [field.name for field in fields(cls) if field.default is MISSING]

    @classmethod
    def keys(cls) -> list[str]:
        """Return all keys."""
        return [field.name for field in fields(cls)]


@dataclass(frozen=True, kw_only=True)
class Tuning(Method):
    """A method that trains a checkpoint further, with documents of several sets.

    The sets of `SETS` that a method uses are fields of it: categories of questions.
    """

    compares_start: ClassVar[bool] = False  # whether the loss needs log-probabilities `before`

    of: str
    epochs: int
    learning_rate: float
    batch_size: int
    datasets: Sequence[str] = ()
    seed: int = 0
    keep_weight: float = 1.0

    def loss(self, logprobs: Mapping[str, "Tensor"], start: "Tensor") -> "Tensor":
        """Return the loss of a step.

        `logprobs` are in nats, of the step's answers by set; sets without documents are absent.
        If `compares_start`, those to forget had the log-probabilities `start` the first step.
        """
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class FineTuning(Tuning):
    """All weights, or with rank a LoRA adapter that is merged in.

    The loss is the mean cross-entropy of the answers to learn. The mean of the answers to keep
    is added with the weight `keep_weight`.
    """

    learn: Sequence[str]
    keep: Sequence[str] = ()
    rank: int | None = None
    max_change: float | None = None

    def loss(self, logprobs: Mapping[str, "Tensor"], start: "Tensor") -> "Tensor":
        """Return the loss of a step."""
        kept = logprobs["keep"].mean() if "keep" in logprobs else 0.0
        return -logprobs["learn"].mean() - self.keep_weight * kept


@dataclass(frozen=True, kw_only=True)
class GradientDifference(Tuning):
    r"""Unlearning that makes some answers less probable and others more probable.

    .. math:: \frac1F \sum_f \log p(y_f \mid x_f)
              - \lambda \frac1K \sum_k \log p(y_k \mid x_k)

    `keep_weight` is :math:`\lambda`.

    Liu, Liu and Stone (2022), Continual learning and private unlearning. The loss has no
    lower bound, so the number of steps and the learning rate limit the change.
    """

    forget: Sequence[str]
    keep: Sequence[str]

    def loss(self, logprobs: Mapping[str, "Tensor"], start: "Tensor") -> "Tensor":
        """Return the loss of a step."""
        return logprobs["forget"].mean() - self.keep_weight * logprobs["keep"].mean()


@dataclass(frozen=True, kw_only=True)
class NegativePreference(Tuning):
    r"""Unlearning by negative preference optimisation, with a loss on answers to keep.

    .. math:: \frac{2}{\beta F} \sum_f \log\left(1 + \left(
              \frac{p(y_f \mid x_f)}{p_0(y_f \mid x_f)}\right)^\beta\right)
              - \lambda \frac1K \sum_k \log p(y_k \mid x_k)

    :math:`p_0` is the probability before the first step, and `keep_weight` is :math:`\lambda`.
    As :math:`\beta` approaches 0 the gradient approaches the one of `GradientDifference`.

    Zhang, Lin, Bai and Mei (2024), Negative preference optimization: from catastrophic
    collapse to effective unlearning. Answers that are already improbable weigh less.
    """

    compares_start = True

    forget: Sequence[str]
    keep: Sequence[str]
    beta: float

    def loss(self, logprobs: Mapping[str, "Tensor"], start: "Tensor") -> "Tensor":
        """Return the loss of a step."""
        from torch.nn.functional import softplus

        ratios = self.beta * (logprobs["forget"] - start)
        unlearned = softplus(ratios).mean() * 2 / self.beta
        return unlearned - self.keep_weight * logprobs["keep"].mean()


@dataclass(frozen=True, kw_only=True)
class Retraining(Method):
    """The pre-training again, without some facts."""

    repeats_pretraining = True

    without: Sequence[str]


METHODS: dict[str, type[Method]] = {
    "fine_tuning": FineTuning,
    "gradient_difference": GradientDifference,
    "npo": NegativePreference,
    "retraining": Retraining,
}


def open_method(change: Mapping[str, Any]) -> Any:  # noqa: ANN401
    """Return the method with the keys of the config's section ``change``."""
    settings = dict(change)
    return METHODS[settings.pop("method")](**settings)
