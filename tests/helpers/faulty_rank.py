"""Train adapters with a fault in rank 1."""

import torch
from train_adapters import train_adapters

from persistcal.store.jobs import Job, execute
from persistcal.training import ranks, train


def faulty_rank(job: Job, *, fault: str) -> None:
    losses = train.question_losses
    calls = []

    def broken(model, questions, *arguments):
        calls.append(len(questions))
        if ranks.index() == 1:
            if fault == "not finite" and len(calls) == 3:
                return losses(model, questions, *arguments) * torch.nan
            if fault == "too large" and len(questions) > 2:
                raise torch.OutOfMemoryError("CUDA out of memory")
            if fault == "much too large":
                raise torch.OutOfMemoryError("CUDA out of memory")
        return losses(model, questions, *arguments)

    train.question_losses = broken
    execute(train_adapters, job)
