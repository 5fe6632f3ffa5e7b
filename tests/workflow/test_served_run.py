"""A study of checkpoints behind an API, end to end, and the same answers read as a file."""

import pandas as pd
from answer_server import KEY, FakeModel, question_of
from served_study import CHOSEN, ESTIMATORS, METRICS, compare_with_file, served_study, write
from workflow_runs import snakemake

from persistcal.store import artifacts

TARGETS = ["out/tables/unsaid.csv", *METRICS]
N = 24
CHECKPOINTS = {"v1": "m-1", "v2": "m-2"}
STATED = {" thing 0": " 0.2", " thing 1": " 0.9", " thing 2": " perhaps"}


class Rater(FakeModel):
    """A model that states a probability, or no number, if it is asked about an answer."""

    def completion(self, body):
        made = super().completion(body)
        if not question_of(body).startswith("Fact"):
            for choice in made["choices"]:
                choice["text"] = STATED[choice["text"]]
        return made


def test_answers_of_a_server_are_estimated_as_those_of_a_file(tmp_path, monkeypatch):
    monkeypatch.setenv("SERVER_KEY", KEY)
    with Rater() as fake:
        apis = {
            name: {
                **{"base_url": fake.url, "model": model, "api_key_env": "SERVER_KEY"},
                **{"logprobs": True, "price_input": 1, "price_output": 2},
            }
            for name, model in CHECKPOINTS.items()
        }
        asked = {f"Fact {i}?": "thing 0" for i in range(N)}
        mine = served_study(tmp_path, apis, asked, max_cost=1, timeout_s=20)
        mine["study"] = {**CHOSEN, "estimators": [*ESTIMATORS, "said_probability"]}
        configs = write(tmp_path, "served.yaml", mine)
        snakemake(tmp_path, *TARGETS, configs=configs)
        # with the same seeds both checkpoints asked each question four times
        answered = [n for (question, _), n in fake.asked.items() if question.startswith("Fact")]
        assert len(answered) == 4 * N and set(answered) == {2}
        # and each was asked once about each answer: of all samples, or of one of their halves
        rated = [b for b in fake.bodies if not question_of(b).startswith("Fact")]
        assert len(fake.bodies) == 2 * N * 4 + len(rated)
        assert 2 * N < len(rated) < 3 * 2 * N
        assert len({(body["model"], body["prompt"]) for body in rated}) == len(rated)
        assert {body["model"] for body in fake.bodies} == {"m-1", "m-2"}
        # a change of concurrency or prices reruns nothing
        mine["api"] = {**mine["api"], "concurrency": 2, "max_cost": 5}
        configs = write(tmp_path, "served.yaml", mine)
        assert "Nothing to be done" in snakemake(tmp_path, *TARGETS, configs=configs)
    files = [p for p in tmp_path.rglob("*") if p.is_file() and ".snakemake" in p.parts]
    files += [p for p in (tmp_path / "out").rglob("*") if p.is_file()]
    assert not any(KEY.encode() in path.read_bytes() for path in files)
    check_said(tmp_path / "out")
    beams = compare_with_file(tmp_path, CHECKPOINTS)
    assert set(beams["text"]) <= {f" thing {i}" for i in range(3)}
    assert set(beams["logprob"]) == {-1.5} and set(beams["n_tokens"]) == {2}


def check_said(out):
    """A reply without a probability, "perhaps", is counted and has a confidence of .5."""
    table = pd.read_csv(out / "tables/unsaid.csv").set_index("checkpoint")
    rated = artifacts.read(
        out / "predictions/served/quiz/said_probability.parquet", artifacts.PREDICTIONS
    )
    assert set(rated["ask"]) == {
        0,
        101,
        102,
    }  # halves of four samples, asked about in words, too
    rated = rated[rated["ask"] == 0]
    for checkpoint in CHECKPOINTS:
        path = out / f"replies/served/{checkpoint}/quiz/test/said_probability.parquet"
        replies = artifacts.read(path, artifacts.REPLIES).set_index("question_id")["text"]
        value = replies.map({" 0.2": 0.2, " 0.9": 0.9, " perhaps": 0.5})
        stated = rated[rated["checkpoint"] == checkpoint].set_index("question_id")["confidence"]
        pd.testing.assert_series_equal(stated, value[stated.index], check_names=False)
        unsaid = (value == 0.5).sum()
        assert table.loc[checkpoint, ["answers", "unsaid"]].tolist() == [N, unsaid]
        assert 0 < unsaid < N
