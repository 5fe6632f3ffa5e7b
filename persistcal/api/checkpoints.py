"""Checkpoints in memory: their answers, their confidence, and adapters for them."""

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

import pandas as pd
from numpy.typing import NDArray

from persistcal.models.prompts import confidence_prompt, few_shot_prefix, question_suffix
from persistcal.questions.templates import check_fields
from persistcal.store.files import write_whole
from persistcal.training.data import TrainingQuestion

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

Function = TypeVar("Function", bound=Callable)

RANK, ALPHA, MICRO_BATCH = 8, 16, 32  # the paper's adapters; candidates in a forward pass


class LoadedCheckpoint(NamedTuple):
    """A checkpoint's causal language model and its tokenizer, of transformers."""

    model: "PreTrainedModel"
    tokenizer: "PreTrainedTokenizerBase"


def needs_models(function: Function) -> Function:
    """Name the missing extra if a package that the function imports is not installed."""

    @wraps(function)
    def call(*args: Any, **options: Any) -> object:  # noqa: ANN401
        try:
            return function(*args, **options)
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(
                f"persistcal.{function.__name__} needs the package {error.name}; install the "
                'extra models, for example by pip install ".[models]" in a clone.',
                name=error.name,
            ) from error

    return cast("Function", call)


@needs_models
def load(
    source: str,
    revision: str | None = None,
    *,
    dtype: str | None = None,
    device: str | None = None,
) -> LoadedCheckpoint:
    """Load a checkpoint for inference.

    Parameters
    ----------
    source, revision : str
        Hub id with branch, tag or commit, or a local folder. Weights are read from
        safetensors files only, and no code from the repository is run.
    dtype : str, optional
        By default bfloat16 on GPUs that compute in it, else float32.
    device : str, optional
        By default the fastest: CUDA, then MPS, then the CPU.
    """
    from persistcal.models.load import load_model, load_tokenizer

    model = load_model(source, revision, dtype=dtype, device=device)
    return LoadedCheckpoint(model, load_tokenizer(source, revision))


@needs_models
def generate_beams(
    checkpoint: LoadedCheckpoint,
    questions: Mapping[str, str],
    examples: Sequence[tuple[str, str]],
    *,
    n_beams: int = 10,
    max_new_tokens: int = 100,
) -> pd.DataFrame:
    """Answer questions after a few examples, with beams that end at their first newline.

    Parameters
    ----------
    checkpoint : LoadedCheckpoint
        From `load`, or a model and its tokenizer.
    questions : mapping of str to str
        By question_id.
    examples : sequence of (str, str)
        Questions with their answers, shown before each question. Every one is asked as
        ``Prompt: {question}`` and a line ``Answer:``.

    Returns
    -------
    DataFrame
        question_id, beam (0 is the best), text, logprob (summed), n_tokens (including the
        end token), entropy, self_certainty and margin (means over its tokens) and
        min_logprob (of its least probable token).
    """
    from persistcal.answers import decode

    decoded = decode.generate_beams(
        *checkpoint,
        few_shot_prefix(examples),
        [question_suffix(question) for question in questions.values()],
        decode.Search(n_beams, max_new_tokens),
    )
    rows = [
        (question_id, number, *beam)
        for question_id, beams in zip(questions, decoded, strict=True)
        for number, beam in enumerate(beams)
    ]
    return pd.DataFrame(rows, columns=["question_id", "beam", *decode.Beam._fields])


@needs_models
def score_answers(
    checkpoint: LoadedCheckpoint,
    answers: pd.DataFrame,
    *,
    prompt: str,
    adapter: str | None = None,
    batch_size: int = 64,
) -> NDArray:
    """Return a model's confidence in answers, which it states as a digit after a prompt.

    Parameters
    ----------
    checkpoint : LoadedCheckpoint
        As for `generate_beams`; each digit must be one token.
    answers : DataFrame
        Columns question and answer.
    prompt : str
        With ``{question}`` and ``{answer}``, ending where the digit must follow. The
        paper's is `config/prompts/confidence.txt`.
    adapter : str, optional
        Folder of a LoRA adapter, which is in the model only while it scores.

    Returns
    -------
    ndarray of shape (n_answers,)
        In (0, 1): the expected digit, in ninths.
    """
    from persistcal.confidence import verbalised
    from persistcal.models.load import load_adapter

    check_fields(prompt, "prompt", ["question", "answer"])
    model, tokenizer = checkpoint
    texts = zip(answers["question"], answers["answer"], strict=True)
    tokens = tokenizer([confidence_prompt(prompt, *text) for text in texts])["input_ids"]
    digits = verbalised.digit_tokens(tokenizer)
    verbalised.check_digit_logits(model, tokens[:2], digits)
    adapted = None if adapter is None else load_adapter(model, adapter)
    try:
        return verbalised.score_answers(model, tokens, digits, batch_size=batch_size)
    finally:
        if adapted is not None:
            adapted.unload()


@needs_models
def train_adapter(
    checkpoints: Mapping[str, LoadedCheckpoint],
    answers: pd.DataFrame,
    folder: str,
    *,
    prompt: str,
    seed: int = 17,
    epochs: int = 1,
    learning_rate: float = 2e-4,
    batch_size: int = 16,
) -> pd.DataFrame:
    """Train one confidence adapter on the answers of several checkpoints jointly.

    Parameters
    ----------
    checkpoints : mapping of str to LoadedCheckpoint
        Checkpoints of one architecture and one tokenizer. Their models contain the adapter
        afterwards: load them again to use them without it.
    answers : DataFrame
        Columns checkpoint, question_id, question, answer and correct; optionally weight,
        an answer's share in the loss of its question at its checkpoint.
    folder : str
        Folder for the adapter, which `score_answers` and `peft` can load.
    prompt : str
        As for `score_answers`.
    seed : int, default=17
        Seed of the initialisation and of the order of questions.
    epochs : int, default=1
        A step takes `batch_size` questions: with few questions take more epochs, as ten
        steps teach an adapter next to nothing.

    Returns
    -------
    DataFrame
        A row per step: step, loss, lr and seconds.
    """
    from persistcal.training import train

    check_fields(prompt, "prompt", ["question", "answer"])
    rows = _training_rows(answers, checkpoints)
    first, *rest = checkpoints.values()
    words = first.tokenizer.get_vocab()
    if any(checkpoint.tokenizer.get_vocab() != words for checkpoint in rest):
        raise ValueError("The tokenizers differ; train together checkpoints of one tokenizer.")
    data: dict[str, dict[str, TrainingQuestion]] = {name: {} for name in checkpoints}
    for (name, question_id), rows_of in rows.groupby(["checkpoint", "question_id"]):
        texts = zip(rows_of["question"], rows_of["answer"], strict=True)
        data[str(name)][str(question_id)] = TrainingQuestion(
            tuple(confidence_prompt(prompt, *text) for text in texts),
            tuple((rows_of["weight"] / rows_of["weight"].sum()).tolist()),
            tuple(rows_of["correct"].astype(float).tolist()),
        )
    models = {name: checkpoint.model for name, checkpoint in checkpoints.items()}
    trainee = train.prepare(models, first.tokenizer, data.values(), rank=RANK, alpha=ALPHA)
    history = train.train_adapter(
        trainee,
        data,
        list(dict.fromkeys(rows["question_id"])),
        train.Optimisation(learning_rate, epochs, batch_size, MICRO_BATCH),
        seed=seed,
    )
    base = str(first.model.name_or_path)
    files = train.adapter_files(trainee.adapter, rank=RANK, alpha=ALPHA, base_model=base)
    for name, content in files.items():
        write_whole(f"{folder}/{name}", content)
    return history


def _training_rows(answers: pd.DataFrame, checkpoints: Mapping[str, object]) -> pd.DataFrame:
    """Return `answers` with weights; refuse invalid answers in one sentence."""
    needed = ["checkpoint", "question_id", "question", "answer", "correct"]
    rows = answers if "weight" in answers else answers.assign(weight=1.0)
    if rows[needed].isna().any(axis=None):
        raise ValueError(f"A row of answers lacks one of {', '.join(needed)}; fill it in.")
    rows = rows.assign(question_id=rows["question_id"].astype(str))
    if unknown := sorted({*map(str, rows["checkpoint"])} ^ set(checkpoints)):
        raise ValueError(
            "checkpoints and the column checkpoint of answers do not name the same: "
            f"{unknown[0]!r} is in one of them only."
        )
    if not rows["correct"].isin([0, 1]).all():
        raise ValueError("The column correct of answers must be 0 or 1 in every row.")
    if not (rows["weight"] > 0).all():
        raise ValueError("The column weight of answers must be above 0 in every row.")
    return rows
