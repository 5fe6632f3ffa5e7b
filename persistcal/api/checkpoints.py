"""Checkpoints in memory: their answers, their confidence, and adapters for them."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd
from numpy.typing import NDArray
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from persistcal.answers.decode import generate_beams as decode
from persistcal.confidence import scoring, verbalised
from persistcal.confidence.prompts import confidence_prompt, few_shot_prefix, question_suffix
from persistcal.store import artifacts
from persistcal.store.files import write_whole
from persistcal.training import train
from persistcal.training.data import TrainingQuestion
from persistcal.training.lora import adapter_files, load_adapter


def generate_beams(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    questions: Mapping[str, str],
    examples: Sequence[tuple[str, str]],
    *,
    n_beams: int = 10,
    max_new_tokens: int = 100,
) -> pd.DataFrame:
    """Answer questions after a few examples, with beams that end at their first newline.

    Parameters
    ----------
    model : transformers.PreTrainedModel
        A causal language model, for example `persistcal.models.load.load_model(folder)`.
    tokenizer : transformers.PreTrainedTokenizerBase
        Its own, for example from `persistcal.models.load.load_tokenizer(folder)`.
    questions : mapping of str to str
        By question_id.
    examples : sequence of (str, str)
        Questions with their answers, shown before each question. Every one is asked as
        ``Prompt: {question}`` and a line ``Answer:``.
    n_beams, max_new_tokens : int
        Size and length of the search.

    Returns
    -------
    DataFrame
        question_id, beam (0 is the best), text, logprob (summed), n_tokens (with the one
        that ended it) and entropy (mean over its tokens, in nats).
    """
    suffixes = [question_suffix(question) for question in questions.values()]
    decoded = decode(
        model,
        tokenizer,
        few_shot_prefix(examples),
        suffixes,
        n_beams=n_beams,
        max_new_tokens=max_new_tokens,
    )
    rows = [
        (question_id, number, *beam)
        for question_id, beams in zip(questions, decoded, strict=True)
        for number, beam in enumerate(beams)
    ]
    return pd.DataFrame(rows, columns=artifacts.BEAMS.schema.names)


def score_answers(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    answers: pd.DataFrame,
    *,
    prompt: str,
    adapter: str | Path | None = None,
    batch_size: int = 64,
) -> NDArray:
    """Let a model state its confidence in answers, as a digit after a prompt.

    Parameters
    ----------
    model, tokenizer
        As for `generate_beams`; each digit must be one token.
    answers : DataFrame
        Columns question and answer.
    prompt : str
        With ``{question}`` and ``{answer}``, ending where the digit must follow. The
        paper's is `config/prompts/confidence.txt`.
    adapter : path, optional
        Folder of a LoRA adapter, which is in the model only while it scores.
    batch_size : int, default=64
        Prompts in a forward pass.

    Returns
    -------
    ndarray of shape (n_answers,)
        In (0, 1): the expected digit, in ninths.
    """
    texts = zip(answers["question"], answers["answer"], strict=True)
    tokens = tokenizer([confidence_prompt(prompt, *text) for text in texts])["input_ids"]
    digits = verbalised.digit_tokens(tokenizer)
    verbalised.check_digit_logits(model, tokens[:2], digits)
    if adapter is None:
        return scoring.score_answers(model, tokens, digits, batch_size=batch_size)
    adapted = load_adapter(model, Path(adapter))
    try:
        return scoring.score_answers(model, tokens, digits, batch_size=batch_size)
    finally:
        adapted.unload()


def train_adapter(
    models: Mapping[str, PreTrainedModel],
    tokenizer: PreTrainedTokenizerBase,
    answers: pd.DataFrame,
    folder: str | Path,
    *,
    prompt: str,
    seed: int = 17,
    epochs: int = 1,
    learning_rate: float = 2e-4,
    batch_size: int = 16,
    rank: int = 8,
    alpha: int = 16,
    micro_batch: int = 32,
) -> pd.DataFrame:
    """Train one confidence adapter on the answers of several checkpoints jointly.

    Parameters
    ----------
    models : mapping of str to transformers.PreTrainedModel
        The checkpoints, of one architecture. They hold the adapter afterwards: load them
        anew to use them without it.
    tokenizer
        As for `score_answers`.
    answers : DataFrame
        Columns checkpoint, question_id, question, answer and correct; optionally weight,
        an answer's share in the loss of its question at its checkpoint.
    folder : path
        Where the adapter is written, for `score_answers` and `peft`.
    prompt : str
        As for `score_answers`.
    seed : int, default=17
        Of the initialisation and of the order of questions.
    epochs : int, default=1
        A step takes `batch_size` questions: with few questions take more epochs, as an
        adapter of ten steps states next to nothing.
    learning_rate, batch_size, rank, alpha, micro_batch
        As in the paper. `micro_batch` is the candidates in one forward pass.

    Returns
    -------
    DataFrame
        A row per step: step, loss, lr and seconds.
    """
    needed = ["checkpoint", "question_id", "question", "answer", "correct"]
    rows = answers if "weight" in answers else answers.assign(weight=1.0)
    if rows[needed].isna().any(axis=None):
        raise ValueError(f"A row of answers lacks one of {', '.join(needed)}; fill it in.")
    rows = rows.assign(question_id=rows["question_id"].astype(str))
    if unknown := sorted({*map(str, rows["checkpoint"])} ^ set(models)):
        raise ValueError(
            f"models and the column checkpoint of answers do not name the same: {unknown[0]!r} "
            "is in one of them only."
        )
    if not rows["correct"].isin([0, 1]).all():
        raise ValueError("The column correct of answers must be 0 or 1 in every row.")
    if not (rows["weight"] > 0).all():
        raise ValueError("The column weight of answers must be above 0 in every row.")
    data: dict[str, dict[str, TrainingQuestion]] = {name: {} for name in models}
    for (checkpoint, question_id), some in rows.groupby(["checkpoint", "question_id"]):
        texts = zip(some["question"], some["answer"], strict=True)
        data[str(checkpoint)][str(question_id)] = TrainingQuestion(
            tuple(confidence_prompt(prompt, *text) for text in texts),
            tuple((some["weight"] / some["weight"].sum()).tolist()),
            tuple(some["correct"].astype(float).tolist()),
        )
    trainee = train.prepare(models, tokenizer, data.values(), rank=rank, alpha=alpha)
    history = train.train_adapter(
        trainee,
        data,
        list(dict.fromkeys(rows["question_id"])),
        train.Optimisation(learning_rate, epochs, batch_size, micro_batch),
        seed=seed,
    )
    base = str(next(iter(models.values())).name_or_path)
    files = adapter_files(trainee.adapter, rank=rank, alpha=alpha, base_model=base)
    Path(folder).mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        write_whole(Path(folder) / name, content)
    return history
