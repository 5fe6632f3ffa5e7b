"""Logs of Inspect, written by Inspect itself with its mock model."""

import sys
from types import SimpleNamespace

import pytest

from persistcal.readers.answer_files import read_answers
from persistcal.readers.inspect_logs import inspect_rows, settings_of
from persistcal.readers.reading import Reading
from persistcal.readers.study import read_study
from persistcal.store.user_files import UserTableError

SUBJECT = {"model": "m1", "checkpoint": "a", "dataset": "quiz"}


TEXTS = ("Paris", "Rome", "Lyon", "Rome")


def write_log(folder, *, error=False, choices=None, logprobs=True, n=1, texts=TEXTS, **task):
    """Ask Inspect's mock model two questions in two epochs, and return the log's path.

    The model gives `n` completions at once.
    """
    pytest.importorskip("inspect_ai", reason="inspect-ai is not installed")
    from inspect_ai import dataset, model, solver

    texts_left = iter(texts)
    limited = "message_limit" in task

    @solver.solver
    def answer_next():
        async def solve(state, generate):
            if error:
                raise RuntimeError("no answer")
            if limited:  # more messages than the limit
                state.messages += [model.ChatMessageUser(content="Well?")] * 2
            state.output = output(next(texts_left), n, logprobs=logprobs)
            return state

        return solve

    message = model.ChatMessageUser(content="Capital of Italy?")
    samples = [
        dataset.Sample(id="q1", input="Capital of France?", target="Paris", choices=choices),
        dataset.Sample(id=2, input=[message], target=["Rome", "Roma"], choices=choices),
    ]
    return log_of(folder, samples, answer_next(), **{"epochs": 2, **task})


def output(text, n, *, logprobs):
    """Return `n` completions: a text of two tokens, followed by more and more full stops."""
    from inspect_ai import model

    tokens = [model.Logprob(token=text, logprob=-0.5), model.Logprob(token=".", logprob=-1)]
    completions = [
        model.ChatCompletionChoice(
            message=model.ChatMessageAssistant(content=text + "." * number),
            logprobs=model.Logprobs(content=tokens) if logprobs else None,
        )
        for number in range(n)
    ]
    return model.ModelOutput(model="mock", choices=completions)


def log_of(folder, samples, solver, **task):
    """Evaluate samples and return the log's path."""
    import inspect_ai

    task = inspect_ai.Task(
        dataset=inspect_ai.dataset.MemoryDataset(samples), solver=solver, **task
    )
    options = {"log_dir": str(folder), "display": "none", "max_samples": 1}
    (log,) = inspect_ai.eval(task, model="mockllm/model", **options)
    return log.location.removeprefix("file://")


@pytest.mark.parametrize(
    ("of_plan", "of_model", "greedy"),
    [(0.0, None, True), (None, 0.0, True), (0.7, 0.0, False), (None, None, False)],
)
def test_a_log_is_greedy_if_its_run_had_temperature_0(of_plan, of_model, greedy):
    """The settings of the run come before those of the model."""
    plan, model = (SimpleNamespace(temperature=given) for given in (of_plan, of_model))
    log = SimpleNamespace(
        plan=SimpleNamespace(config=plan), eval=SimpleNamespace(model_generate_config=model)
    )
    assert (settings_of(log).get("temperature") == 0) == greedy


def test_a_version_that_was_asked_in_another_way_is_named(tmp_path):
    files = [write_log(tmp_path / "v1", texts=TEXTS[:2], epochs=1)]
    from inspect_ai.model import GenerateConfig

    warm, texts = GenerateConfig(temperature=0.7), ["Lyon", "Rome"]
    files.append(write_log(tmp_path / "v2", texts=texts, epochs=1, config=warm))
    notes = " ".join(read_study(files, Reading(names=("v1", "v2"))).notes)
    assert "v2 was asked with other settings (temperature 0.7, not none) than v1" in notes
    assert "other prompts" not in notes
    asking = inspect_rows(files[0]).attrs["asking"]
    assert asking.prompts["q1"] == hash(("Capital of France?",))


def test_each_epoch_of_each_sample_is_read(tmp_path):
    rows = read_answers({"file": write_log(tmp_path), **SUBJECT})
    rows = rows.sort_values(["question_id", "sample"])
    assert rows["question_id"].tolist() == ["2", "2", "q1", "q1"]
    assert rows["sample"].tolist() == [1, 2, 1, 2]
    assert rows["question"].tolist() == ["Capital of Italy?"] * 2 + ["Capital of France?"] * 2
    assert rows["references"].tolist() == [("Rome", "Roma")] * 2 + [("Paris",)] * 2
    assert sorted(rows["answer"]) == ["Lyon", "Paris", "Rome", "Rome"]
    assert rows["logprob"].tolist() == [-1.5] * 4  # -0.5 and -1
    assert rows["n_tokens"].tolist() == [2.0] * 4


def test_a_confidence_that_a_reply_states_is_read(tmp_path):
    texts = [f"Answer: {text}\nConfidence: {n}5%" for n, text in enumerate(TEXTS)]
    log = write_log(tmp_path, texts=texts, logprobs=False)
    rows = read_answers({"file": log, **SUBJECT, "stated": "yes"})
    stated = {row["answer"]: row["stated"]["stated"] for row in rows.to_dict("records")}
    assert stated == {"Paris": 0.05, "Lyon": 0.25, "Rome": 0.35}


def test_answers_without_log_probabilities_are_read(tmp_path):
    rows = read_answers({"file": write_log(tmp_path, logprobs=False), **SUBJECT})
    assert rows["logprob"].isna().all()


@pytest.mark.parametrize(
    ("run", "message"),
    [
        ({"error": True}, r"\.eval: is the log of a run with status"),
        ({"choices": ["Paris", "Rome"]}, r"sample .* has choices, but no score of the scorer"),
        ({"message_limit": 2}, r"was stopped by its message limit \(2\), so"),
    ],
)
def test_a_run_without_usable_answers_is_refused(tmp_path, run, message):
    with pytest.raises(UserTableError, match=message):
        read_answers({"file": write_log(tmp_path, **run), **SUBJECT})


def test_without_inspect_a_log_is_refused_with_the_package_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "inspect_ai", None)
    monkeypatch.setitem(sys.modules, "inspect_ai.log", None)
    (tmp_path / "a.eval").write_bytes(b"PK")
    with pytest.raises(UserTableError, match=r"a\.eval: is a log of Inspect.*inspect-ai"):
        read_answers({"file": str(tmp_path / "a.eval"), **SUBJECT})


def test_each_completion_of_a_sample_is_read(tmp_path):
    rows = read_answers({"file": write_log(tmp_path, n=5), **SUBJECT})
    answers = rows[rows["question_id"] == "2"].sort_values("sample")
    assert answers["sample"].tolist() == list(range(1, 11))  # two epochs of five
    assert answers["answer"].tolist() == [f"Rome{'.' * n}" for n in range(5)] * 2


def test_scores_of_a_log_can_be_the_labels(tmp_path):
    """Inspect's `match` looks for the target at the end; Lyon, in one epoch, is wrong."""
    scorer = pytest.importorskip("inspect_ai.scorer", reason="inspect-ai is not installed")
    path = write_log(tmp_path, scorer=scorer.match())
    rows = read_answers({"file": path, **SUBJECT, "labels": "log"})
    labels = dict(zip(rows["answer"], rows["label"], strict=True))
    assert labels == {"Paris": "correct", "Rome": "correct", "Lyon": "incorrect"}


@pytest.mark.parametrize(
    ("n", "message"), [(1, r"has the scores \[\], but"), (2, "has 2 completions and one score")]
)
def test_labels_need_a_score_for_each_answer(tmp_path, n, message):
    with pytest.raises(UserTableError, match=message):
        read_answers({"file": write_log(tmp_path, n=n), **SUBJECT, "labels": "log"})


def write_choices(folder, texts, *, multiple=False, n=1):
    """Let Inspect score `texts` as answers to two questions with options; return the log."""
    pytest.importorskip("inspect_ai", reason="inspect-ai is not installed")
    from inspect_ai import dataset, scorer, solver

    remaining_texts = iter(texts)

    @solver.solver
    def answer_next():
        choose = solver.multiple_choice(multiple_correct=multiple)

        async def solve(state, generate):
            async def answer(state, **_):
                state.output = output(next(remaining_texts), n, logprobs=False)
                return state

            return await choose(state, answer)

        return solve

    target = ["A", "C"] if multiple else "B"
    questions = {"France": ["Rome", "Paris", "Oslo"], "Italy": ["Oslo", "Rome", "Paris"]}
    samples = [
        dataset.Sample(id=name, input=f"Capital of {name}?", choices=choices, target=target)
        for name, choices in questions.items()
    ]
    return log_of(folder, samples, answer_next(), scorer=scorer.choice())


@pytest.mark.parametrize(
    ("texts", "multiple", "answers", "references"),
    [
        (["So ANSWER: B", "Well"], False, ["Paris", "Well"], ["Paris", "Rome"]),
        (["ANSWER: A,C", "ANSWER: B"], True, ["Oslo; Rome", "Rome"],
         ["Oslo; Rome", "Oslo; Paris"]),
    ],
)  # fmt: skip
def test_the_answer_is_the_chosen_option(tmp_path, texts, multiple, answers, references):
    path = write_choices(tmp_path, texts, multiple=multiple)
    rows = read_answers({"file": path, **SUBJECT, "labels": "log"})
    assert rows["question"].tolist() == ["Capital of France?", "Capital of Italy?"]
    assert rows["answer"].tolist() == answers
    assert rows["references"].tolist() == [(text,) for text in references]
    assert rows["label"].tolist() == ["correct", "incorrect"]


def test_a_choice_with_several_completions_is_refused(tmp_path):
    path = write_choices(tmp_path, ["ANSWER: B"] * 2, n=2)
    with pytest.raises(UserTableError, match="has 2 completions and one choice;"):
        read_answers({"file": path, **SUBJECT})


def stated_confidence():
    """Return a scorer of that name, as a user writes it."""
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


def test_a_stated_confidence_with_several_completions_is_refused(tmp_path):
    path = write_log(tmp_path, n=2, scorer=stated_confidence())
    with pytest.raises(UserTableError, match=r"epoch 1 has 2 completions, but the model"):
        inspect_rows(path)


def write_failing(folder, failing, *, log_format="eval"):
    """Ask Inspect's mock model three questions; samples in `failing` end with an error.

    The answers are Rome; if any sample fails, the first answer is Oslo.
    """
    pytest.importorskip("inspect_ai", reason="inspect-ai is not installed")
    import inspect_ai
    from inspect_ai import dataset, scorer, solver

    @solver.solver
    def answer_next():
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
        solver=answer_next(),
        scorer=[scorer.match(), scorer.includes()],
    )
    options = {"log_dir": str(folder), "display": "none", "fail_on_error": False}
    (log,) = inspect_ai.eval(task, model="mockllm/model", log_format=log_format, **options)
    return log.location.removeprefix("file://")


@pytest.mark.parametrize("log_format", ["eval", "json"])
def test_samples_with_errors_are_dropped_at_all_versions_or_are_wrong(tmp_path, log_format):
    """The first version answers q0 wrongly; the second is right, but has no answer to q1."""
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


def test_a_scorer_is_selected_by_its_name(tmp_path):
    path = write_failing(tmp_path, {})
    with pytest.raises(UserTableError, match="--scorer NAME, of match, includes"):
        read_answers({"file": path, **SUBJECT, "labels": "log"})
    rows = read_answers({"file": path, **SUBJECT, "scorer": "match"})
    assert rows["label"].tolist() == ["incorrect", "correct", "correct"]
    with pytest.raises(UserTableError, match="no score of f1; its scorers are match, includes"):
        read_answers({"file": path, **SUBJECT, "scorer": "f1"})
