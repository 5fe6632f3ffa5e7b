"""Logs that Inspect wrote."""

import sys

import pytest
from import_answers import read_answers

from persistcal.imports.own_answers import OwnAnswersError

SAID = {"model": "m1", "checkpoint": "a", "dataset": "quiz"}


def write_log(folder, *, error=False, choices=None, logprobs=True):
    """Have Inspect ask its mock model two questions in two epochs; return the log's path."""
    inspect = pytest.importorskip("inspect_ai", reason="inspect-ai is not installed")
    from inspect_ai import dataset, model, solver

    given = iter(["Paris", "Rome", "Lyon", "Rome"])

    def output(text):
        tokens = [model.Logprob(token=text, logprob=-0.5), model.Logprob(token=".", logprob=-1)]
        choice = model.ChatCompletionChoice(
            message=model.ChatMessageAssistant(content=text),
            logprobs=model.Logprobs(content=tokens) if logprobs else None,
        )
        return model.ModelOutput(model="mock", choices=[choice])

    @solver.solver
    def asked():
        async def solve(state, generate):
            if error:
                raise RuntimeError("no answer")
            state.output = output(next(given))
            return state

        return solve

    message = model.ChatMessageUser(content="Capital of Italy?")
    samples = [
        dataset.Sample(id="q1", input="Capital of France?", target="Paris", choices=choices),
        dataset.Sample(id=2, input=[message], target=["Rome", "Roma"], choices=choices),
    ]
    task = inspect.Task(dataset=dataset.MemoryDataset(samples), solver=asked(), epochs=2)
    (log,) = inspect.eval(
        task, model="mockllm/model", log_dir=str(folder), display="none", max_samples=1
    )
    return log.location.removeprefix("file://")


def test_every_epoch_of_every_sample_arrives(tmp_path):
    rows = read_answers({"file": write_log(tmp_path), **SAID}, several=False)
    rows = rows.sort_values(["question_id", "sample"])
    assert rows["question_id"].tolist() == ["2", "2", "q1", "q1"]
    assert rows["sample"].tolist() == [1, 2, 1, 2]
    assert rows["question"].tolist() == ["Capital of Italy?"] * 2 + ["Capital of France?"] * 2
    assert rows["references"].tolist() == [("Rome", "Roma")] * 2 + [("Paris",)] * 2
    assert sorted(rows["answer"]) == ["Lyon", "Paris", "Rome", "Rome"]
    assert rows["logprob"].tolist() == [-1.5] * 4  # -0.5 and -1
    assert rows["n_tokens"].tolist() == [2.0] * 4


def test_without_log_probabilities_there_are_none(tmp_path):
    rows = read_answers({"file": write_log(tmp_path, logprobs=False), **SAID}, several=False)
    assert rows["logprob"].isna().all()


def test_a_run_that_failed_is_refused(tmp_path):
    with pytest.raises(OwnAnswersError, match=r"\.eval: is the log of a run with status"):
        read_answers({"file": write_log(tmp_path, error=True), **SAID}, several=False)


def test_choices_are_refused(tmp_path):
    path = write_log(tmp_path, choices=["Paris", "Rome"])
    with pytest.raises(OwnAnswersError, match=r"sample .* has choices; only tasks"):
        read_answers({"file": path, **SAID}, several=False)


def test_without_inspect_it_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "inspect_ai", None)
    monkeypatch.setitem(sys.modules, "inspect_ai.log", None)
    (tmp_path / "a.eval").write_bytes(b"PK")
    with pytest.raises(OwnAnswersError, match=r"a\.eval: is a log of Inspect.*inspect-ai"):
        read_answers({"file": str(tmp_path / "a.eval"), **SAID}, several=False)
