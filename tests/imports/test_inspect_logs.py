"""Logs that Inspect wrote."""

import sys

import pytest

from persistcal.api.files import Reading, read_study
from persistcal.imports.answer_files import read_answers
from persistcal.imports.inspect_logs import inspect_rows
from persistcal.store.user_files import UserTableError

SAID = {"model": "m1", "checkpoint": "a", "dataset": "quiz"}


def write_log(folder, *, error=False, choices=None, logprobs=True, n=1, **task):
    """Have Inspect ask its mock model two questions in two epochs; return the log's path.

    The model gives `n` completions at once.
    """
    pytest.importorskip("inspect_ai", reason="inspect-ai is not installed")
    from inspect_ai import dataset, model, solver

    given = iter(["Paris", "Rome", "Lyon", "Rome"])
    limited = "message_limit" in task

    @solver.solver
    def asked():
        async def solve(state, generate):
            if error:
                raise RuntimeError("no answer")
            if limited:  # one more than there may be
                state.messages += [model.ChatMessageUser(content="Well?")] * 2
            state.output = output(next(given), n, logprobs=logprobs)
            return state

        return solve

    message = model.ChatMessageUser(content="Capital of Italy?")
    samples = [
        dataset.Sample(id="q1", input="Capital of France?", target="Paris", choices=choices),
        dataset.Sample(id=2, input=[message], target=["Rome", "Roma"], choices=choices),
    ]
    return log_of(folder, samples, asked(), **{"epochs": 2, **task})


def output(text, n, *, logprobs):
    """`n` completions of a model: a text with full stops after it, of two tokens."""
    from inspect_ai import model

    tokens = [model.Logprob(token=text, logprob=-0.5), model.Logprob(token=".", logprob=-1)]
    said = [
        model.ChatCompletionChoice(
            message=model.ChatMessageAssistant(content=text + "." * number),
            logprobs=model.Logprobs(content=tokens) if logprobs else None,
        )
        for number in range(n)
    ]
    return model.ModelOutput(model="mock", choices=said)


def log_of(folder, samples, solver, **task):
    """Evaluate samples; return the log's path."""
    import inspect_ai

    task = inspect_ai.Task(
        dataset=inspect_ai.dataset.MemoryDataset(samples), solver=solver, **task
    )
    how = {"log_dir": str(folder), "display": "none", "max_samples": 1}
    (log,) = inspect_ai.eval(task, model="mockllm/model", **how)
    return log.location.removeprefix("file://")


def test_every_epoch_of_every_sample_arrives(tmp_path):
    rows = read_answers({"file": write_log(tmp_path), **SAID})
    rows = rows.sort_values(["question_id", "sample"])
    assert rows["question_id"].tolist() == ["2", "2", "q1", "q1"]
    assert rows["sample"].tolist() == [1, 2, 1, 2]
    assert rows["question"].tolist() == ["Capital of Italy?"] * 2 + ["Capital of France?"] * 2
    assert rows["references"].tolist() == [("Rome", "Roma")] * 2 + [("Paris",)] * 2
    assert sorted(rows["answer"]) == ["Lyon", "Paris", "Rome", "Rome"]
    assert rows["logprob"].tolist() == [-1.5] * 4  # -0.5 and -1
    assert rows["n_tokens"].tolist() == [2.0] * 4


def test_without_log_probabilities_there_are_none(tmp_path):
    rows = read_answers({"file": write_log(tmp_path, logprobs=False), **SAID})
    assert rows["logprob"].isna().all()


@pytest.mark.parametrize(
    ("run", "said"),
    [
        ({"error": True}, r"\.eval: is the log of a run with status"),
        ({"choices": ["Paris", "Rome"]}, r"sample .* has choices, but no score of the scorer"),
        ({"message_limit": 2}, r"was stopped by its message limit \(2\), so"),
    ],
)
def test_a_run_that_gives_no_answers_is_refused(tmp_path, run, said):
    with pytest.raises(UserTableError, match=said):
        read_answers({"file": write_log(tmp_path, **run), **SAID})


def test_without_inspect_it_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "inspect_ai", None)
    monkeypatch.setitem(sys.modules, "inspect_ai.log", None)
    (tmp_path / "a.eval").write_bytes(b"PK")
    with pytest.raises(UserTableError, match=r"a\.eval: is a log of Inspect.*inspect-ai"):
        read_answers({"file": str(tmp_path / "a.eval"), **SAID})


def test_every_completion_of_a_sample_arrives(tmp_path):
    rows = read_answers({"file": write_log(tmp_path, n=5), **SAID})
    of_one = rows[rows["question_id"] == "2"].sort_values("sample")
    assert of_one["sample"].tolist() == list(range(1, 11))  # two epochs of five
    assert of_one["answer"].tolist() == [f"Rome{'.' * n}" for n in range(5)] * 2


def test_the_scores_of_the_log_as_labels(tmp_path):
    """Inspect's `match` looks for the target at the end: Lyon is wrong, said in one epoch."""
    scorer = pytest.importorskip("inspect_ai.scorer", reason="inspect-ai is not installed")
    path = write_log(tmp_path, scorer=scorer.match())
    rows = read_answers({"file": path, **SAID, "labels": "log"})
    labels = dict(zip(rows["answer"], rows["label"], strict=True))
    assert labels == {"Paris": "correct", "Rome": "correct", "Lyon": "incorrect"}


@pytest.mark.parametrize("n", [1, 2])
def test_without_one_score_for_each_answer_there_are_no_labels(tmp_path, n):
    said = {1: r"has the scores \[\], but", 2: "has 2 completions and one score"}[n]
    with pytest.raises(UserTableError, match=said):
        read_answers({"file": write_log(tmp_path, n=n), **SAID, "labels": "log"})


def write_choices(folder, texts, *, multiple=False, n=1):
    """Have Inspect score `texts` as answers to two questions with options; return the log."""
    pytest.importorskip("inspect_ai", reason="inspect-ai is not installed")
    from inspect_ai import dataset, scorer, solver

    given = iter(texts)

    @solver.solver
    def asked():
        choose = solver.multiple_choice(multiple_correct=multiple)

        async def solve(state, generate):
            async def answer(state, **_):
                state.output = output(next(given), n, logprobs=False)
                return state

            return await choose(state, answer)

        return solve

    target = ["A", "C"] if multiple else "B"
    asked_of = {"France": ["Rome", "Paris", "Oslo"], "Italy": ["Oslo", "Rome", "Paris"]}
    samples = [
        dataset.Sample(id=name, input=f"Capital of {name}?", choices=choices, target=target)
        for name, choices in asked_of.items()
    ]
    return log_of(folder, samples, asked(), scorer=scorer.choice())


@pytest.mark.parametrize(
    ("texts", "multiple", "answers", "references"),
    [
        (["So ANSWER: B", "Well"], False, ["Paris", "Well"], ["Paris", "Rome"]),
        (["ANSWER: A,C", "ANSWER: B"], True, ["Oslo; Rome", "Rome"],
         ["Oslo; Rome", "Oslo; Paris"]),
    ],
)  # fmt: skip
def test_the_answer_to_multiple_choice_is_the_chosen_option(
    tmp_path, texts, multiple, answers, references
):
    path = write_choices(tmp_path, texts, multiple=multiple)
    rows = read_answers({"file": path, **SAID, "labels": "log"})
    assert rows["question"].tolist() == ["Capital of France?", "Capital of Italy?"]
    assert rows["answer"].tolist() == answers
    assert rows["references"].tolist() == [(text,) for text in references]
    assert rows["label"].tolist() == ["correct", "incorrect"]


def test_one_choice_of_several_completions_is_refused(tmp_path):
    path = write_choices(tmp_path, ["ANSWER: B"] * 2, n=2)
    with pytest.raises(UserTableError, match="has 2 completions and one choice;"):
        read_answers({"file": path, **SAID})


def stated_confidence():
    """Return a scorer as a user may write it, of that name."""
    scorer = pytest.importorskip("inspect_ai.scorer", reason="inspect-ai is not installed")

    @scorer.scorer(metrics=[scorer.mean()], name="stated_confidence")
    def stated():
        async def score(state, target):
            return scorer.Score(value=0.75)

        return score

    return stated()


def test_a_score_named_stated_confidence_is_the_confidence(tmp_path):
    path = write_log(tmp_path, scorer=stated_confidence())
    assert inspect_rows(path)["confidence"].tolist() == [0.75] * 4


def test_a_confidence_in_one_of_several_completions_is_refused(tmp_path):
    path = write_log(tmp_path, n=2, scorer=stated_confidence())
    with pytest.raises(UserTableError, match=r"epoch 1 has 2 completions, but the model"):
        inspect_rows(path)


def write_failing(folder, failing, *, log_format="eval"):
    """Have Inspect ask three questions; samples in `failing` end with an error.

    The answers are Rome; with `failing` samples the first one is Oslo.
    """
    pytest.importorskip("inspect_ai", reason="inspect-ai is not installed")
    import inspect_ai
    from inspect_ai import dataset, scorer, solver

    @solver.solver
    def asked():
        async def solve(state, generate):
            if state.sample_id in failing:
                raise RuntimeError("no answer")
            is_later = failing and state.sample_id == "q0"
            state.output = output("Oslo" if is_later else "Rome", 1, logprobs=False)
            return state

        return solve

    samples = [
        dataset.Sample(id=f"q{n}", input=f"Capital {n}?", target="Rome" if n else "Oslo")
        for n in range(3)
    ]
    task = inspect_ai.Task(
        dataset=dataset.MemoryDataset(samples),
        solver=asked(),
        scorer=[scorer.match(), scorer.includes()],
    )
    how = {"log_dir": str(folder), "display": "none", "fail_on_error": False}
    (log,) = inspect_ai.eval(task, model="mockllm/model", log_format=log_format, **how)
    return log.location.removeprefix("file://")


@pytest.mark.parametrize("log_format", ["eval", "json"])
def test_samples_with_errors_are_left_out_at_both_versions_or_wrong(tmp_path, log_format):
    """The first version errs about q0; the second one is right, but q1 has no answer."""
    files = [
        write_failing(tmp_path / "v1", {}, log_format=log_format),
        write_failing(tmp_path / "v2", {"q1"}, log_format=log_format),
    ]
    names = {"names": ["v1", "v2"], "estimators": ["end_correct"]}
    with pytest.raises(UserTableError, match=r"'q1'.* ended with an error.*--errored drop"):
        read_study(files, Reading(**names))
    dropped = read_study(files, Reading(errored="drop", **names))
    assert dropped.answers.groupby("checkpoint")["correct"].agg(list).to_dict() == {
        "v1": [False, True],
        "v2": [True, True],
    }
    assert "Left out at all versions: 1 of these questions." in dropped.notes
    counted = read_study(files, Reading(errored="incorrect", **names))
    assert counted.answers.groupby("checkpoint")["correct"].sum().to_dict() == {
        "v1": 2,
        "v2": 2,
    }
    assert "They count as wrong." in counted.notes


def test_one_of_several_scorers_labels_by_its_name(tmp_path):
    path = write_failing(tmp_path, {})
    with pytest.raises(UserTableError, match="--scorer NAME, of match, includes"):
        read_answers({"file": path, **SAID, "labels": "log"})
    rows = read_answers({"file": path, **SAID, "scorer": "match"})
    assert rows["label"].tolist() == ["incorrect", "correct", "correct"]
    with pytest.raises(UserTableError, match="no score of f1; its scorers are match, includes"):
        read_answers({"file": path, **SAID, "scorer": "f1"})
