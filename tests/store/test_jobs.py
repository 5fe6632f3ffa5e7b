"""The runner of jobs: inputs by annotation, complete outputs or none, subjects of tables."""

import logging
import shutil
import sys
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pyarrow.parquet as pq
import pytest
from programs import python
from workflow_runs import ROOT

from persistcal.store import artifacts
from persistcal.store.artifacts import Answers, Labels, Questions, TableError
from persistcal.store.jobs import Job, execute, run
from persistcal.store.progress import Progress

LABELS = pd.DataFrame(
    {"question_id": ["q1"], "cluster": [0], "label": ["correct"], "source": ["lexical"]}
)
QUIZ = {"dataset": "quiz", "split": "test"}


def labels_at(path, **subject):
    artifacts.write(LABELS, path, artifacts.LABELS, values=QUIZ | subject)
    return str(path)


def job(tmp_path, inputs, outputs, **settings):
    outputs = {name: str(tmp_path / file) for name, file in outputs.items()}
    return Job(inputs, outputs, settings, threads=1)


def test_files_of_one_table_become_one_frame_with_the_subject_of_each_row(tmp_path):
    def collect(labels: Labels, notes: list[Path], *, split: str, threads: int) -> Labels:
        assert labels["checkpoint"].tolist() == ["a", "b"]
        assert labels["model"].tolist() == ["m", "m"]
        assert [path.name for path in notes] == ["note.txt"]
        assert (split, threads) == ("test", 1)
        return labels[labels["checkpoint"] == "b"]

    files = [labels_at(tmp_path / f"{c}.parquet", model="m", checkpoint=c) for c in "ab"]
    inputs = {"labels": files, "notes": ["note.txt"], "unread": "x.parquet"}
    subject = {"model": "m", "checkpoint": "b", **QUIZ}
    execute(collect, job(tmp_path, inputs, {"labels": "out.parquet"}, **subject))
    written = artifacts.read_files(tmp_path / "out.parquet", artifacts.LABELS)
    pd.testing.assert_frame_equal(written, LABELS.assign(**subject)[written.columns])
    assert list(written.columns) == [*artifacts.LABELS.file_columns, *LABELS.columns]


def test_the_metadata_of_a_table_name_the_parameters_of_its_job(tmp_path):
    def label(*, threshold: float) -> Labels:
        return LABELS

    def digest_of(**settings):
        subject = {"model": "m", "checkpoint": "a", **QUIZ}
        execute(label, job(tmp_path, {}, {"labels": "out.parquet"}, **subject, **settings))
        return pq.read_schema(tmp_path / "out.parquet").metadata[b"parameters_sha256"]

    first = digest_of(threshold=0.5, code="a")
    assert digest_of(threshold=0.5, code="b") == first
    assert digest_of(threshold=0.6, code="a") != first


def test_rows_of_another_checkpoint_are_refused_and_nothing_is_written(tmp_path):
    def return_unchanged(labels: Labels) -> Labels:
        return labels

    files = labels_at(tmp_path / "a.parquet", model="m", checkpoint="a")
    subject = {"model": "m", "checkpoint": "b", **QUIZ}
    output = {"labels": "out.parquet"}
    with pytest.raises(TableError, match=r"out\.parquet: .*checkpoint 'b'.*\['a'\]"):
        execute(return_unchanged, job(tmp_path, {"labels": files}, output, **subject))
    assert not (tmp_path / "out.parquet").exists()


def test_each_file_of_an_output_gets_its_own_rows(tmp_path, caplog):
    def split() -> tuple[Labels, str]:
        rows = [LABELS.assign(checkpoint=c, cluster=n) for n, c in enumerate("ab")]
        return pd.concat(rows).assign(model="m", **QUIZ), "two"

    paths = [str(tmp_path / f"{name}.parquet") for name in "abc"]
    subjects = [{"model": "m", "checkpoint": c, **QUIZ} for c in "abc"]
    outputs = {"labels": paths, "note": str(tmp_path / "note.txt")}
    execute(split, Job({}, outputs, {"labels_of": subjects}, threads=1))
    rows = [artifacts.read_files(path, artifacts.LABELS) for path in paths]
    assert [frame["cluster"].tolist() for frame in rows] == [[0], [1], []]
    assert caplog.messages == [f"{paths[2]} has no rows"]
    assert (tmp_path / "note.txt").read_text() == "two"


def test_a_table_without_a_subject_is_refused(tmp_path):
    artifacts.write(LABELS, tmp_path / "old.parquet", artifacts.LABELS)
    with pytest.raises(
        TableError, match=r"old\.parquet: .*does not name its model.*judge_answers"
    ):
        artifacts.read_files(tmp_path / "old.parquet", artifacts.LABELS)


def test_a_file_with_another_subject_than_its_path_is_refused(tmp_path):
    folder = tmp_path / "labels/m"

    def read(labels: Labels) -> str:
        return ",".join(labels["checkpoint"])

    def job(*names):
        files = [str(folder / f"{name}.parquet") for name in names]
        return Job({"labels": files}, {"text": str(tmp_path / "t")}, {}, 1, placed=True)

    for c in "ab":
        labels_at(folder / f"{c}/quiz/test.shard1of2.parquet", model="m", checkpoint=c)
    execute(read, job("a/quiz/test.shard1of2", "b/quiz/test.shard1of2"))
    assert (tmp_path / "t").read_text() == "a,b"
    for name, difference in (
        ("b/quiz/test", "checkpoint 'a', not of 'b'"),
        ("a/quiz/train", "split 'test', not of 'train'"),
    ):
        shutil.copy(folder / "a/quiz/test.shard1of2.parquet", folder / f"{name}.parquet")
        message = rf"{name}.parquet: .*labels of .*{difference}; delete"
        with pytest.raises(TableError, match=message):
            execute(read, job("a/quiz/test.shard1of2", name))


@pytest.mark.parametrize(
    ("estimator", "message"), [("mine", ""), ("imported", ""), ("other", "estimator 'mine'")]
)
def test_rows_must_fit_the_path_of_a_file_without_a_subject(tmp_path, estimator, message):
    row = {"model": "m", "dataset": "quiz", "train_dataset": "quiz", "estimator": "mine"}
    row |= {"conditioning": "odds", "scope": "full", "metric": "auc", "seed": "0"}
    path = tmp_path / f"m/quiz/{estimator}.parquet"
    frame = pd.DataFrame([row | {"value": 0.5, "pairs": ""}])
    artifacts.write(frame, path, artifacts.METRICS)
    with pytest.raises(TableError, match=message) if message else nullcontext():
        artifacts.read_files(path, artifacts.METRICS, placed=True)


def test_a_rule_without_an_input_that_its_function_needs_is_refused(tmp_path):
    def show(answers: Answers, questions: Questions | None = None, *, seed: int) -> str:
        return f"{seed} {questions}"

    with pytest.raises(TypeError, match="show needs 'answers', which its rule's inputs lack"):
        execute(show, job(tmp_path, {}, {"text": "t.txt"}))


@dataclass(frozen=True)
class Sizes:
    n: int
    names: list[str]


def test_settings_are_passed_as_the_dataclass_of_the_annotation(tmp_path):
    def count(
        questions: Questions | None = None, *, sizes: Sizes, by_name: dict[str, Sizes]
    ) -> list[str]:
        assert questions is None and by_name == {"both": sizes}
        return [name * sizes.n for name in sizes.names]

    files = [str(tmp_path / name) for name in ("a", "b")]
    sizes = {"n": 2, "names": ["x", "y"]}
    settings = {"sizes": sizes, "by_name": {"both": sizes}}
    execute(count, Job({}, {"texts": files}, settings, threads=1))
    assert [Path(file).read_text() for file in files] == ["xx", "yy"]


@dataclass(frozen=True)
class Sources:
    labels: Labels
    notes: list[Path]
    answers: Answers | None = None


def test_inputs_are_passed_as_the_dataclass_of_the_annotation(tmp_path):
    def show(texts: Sources) -> str:
        return f"{len(texts.labels)} {texts.notes} {texts.answers}"

    output = {"text": str(tmp_path / "t.txt")}
    inputs = {"labels": labels_at(tmp_path / "a.parquet", model="m", checkpoint="a")}
    with pytest.raises(TypeError, match="Sources needs 'notes', which its rule's inputs lack"):
        execute(show, Job(inputs, output, {}, threads=1))
    inputs |= {"notes": [], "answers": []}
    execute(show, Job(inputs, output, {}, threads=1))
    assert (tmp_path / "t.txt").read_text() == "1 [] None"


def test_an_interrupted_job_continues_until_its_outputs_exist(tmp_path):
    note, output, calls = tmp_path / "note", tmp_path / "out" / "text", []
    note.write_text("a")

    def compute(note: Path, *, n: int, work: Progress | None = None) -> str:
        if work is None:
            return "another rank"
        work.remember("part", 0, lambda: calls.append(n))
        if (tmp_path / "interrupt").exists():
            raise KeyboardInterrupt
        return "end"

    def job(n, outputs):
        inputs = {"note": str(note), "unread": "not/there"}
        return Job(inputs, outputs, {"n": n}, threads=1)

    (tmp_path / "interrupt").touch()
    for n, n_calls in ((1, 1), (1, 1), (2, 2)):  # new settings: saved work is not used
        with pytest.raises(KeyboardInterrupt):
            execute(compute, job(n, {"text": str(output)}))
        assert len(calls) == n_calls
    (tmp_path / "interrupt").unlink()
    execute(compute, job(2, {}))  # ranks after the first have no outputs
    assert not output.exists()

    execute(compute, job(2, {"text": str(output)}))

    assert output.read_text() == "end" and len(calls) == 2
    assert list(output.parent.iterdir()) == [output]


@pytest.fixture
def restored_logging(monkeypatch):
    """Restore the logging of this process after a job."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    root.handlers.clear()  # the job would close them
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    yield
    for handler in root.handlers:
        handler.close()
    root.handlers[:] = handlers
    root.setLevel(level)


def test_run_reads_params_and_wildcards_and_writes_its_log(tmp_path, restored_logging):
    def show(job: Job, *, model: str, code: str = "none") -> str:
        return f"{model} {code} {job.outputs['text']}"

    snakemake = SimpleNamespace(
        input={},
        output={"text": str(tmp_path / "t.txt")},
        params={"code": "abc", "unused": 1},
        wildcards={"model": "m"},
        log=[str(tmp_path / "logs" / "say.log")],
        threads=1,
    )
    run(show, snakemake)
    assert (tmp_path / "t.txt").read_text() == f"m abc {tmp_path / 't.txt'}"
    assert (tmp_path / "logs" / "say.log").exists()


def test_a_job_can_run_in_the_python_of_another_environment(tmp_path):
    script, text, log = (tmp_path / name for name in ("greet.py", "t.txt", "logs/greet.log"))
    script.write_text(
        "import sys\ndef greet(*, model: str) -> str:\n    return f'{model} in {sys.argv[0]}'\n"
    )
    rule_job = (
        "from types import SimpleNamespace as N\n"
        f"job = N(input={{}}, output={{'text': {str(text)!r}}}, params={{}},\n"
        f"    wildcards={{'model': 'm'}}, log=[{str(log)!r}], threads=1)\n"
        "from persistcal.store.jobs import run_with\n"
        f"run_with({sys.executable!r}, None, {str(script)!r}, job)\n"
        "raise SystemExit('this process continues')\n"
    )
    assert "continues" not in python("-c", rule_job, folder=ROOT)
    assert text.read_text() == "m in -c"
    assert log.exists()
