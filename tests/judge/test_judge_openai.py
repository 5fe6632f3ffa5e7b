"""The judge behind HTTP, request by request, against a server that misbehaves."""

import json
import os
import signal
import subprocess
import sys
import threading
import time

import httpx2
import pandas as pd
import pytest
import warm_python
import yaml
from answer_tables import questions_table
from judge_answers import judge_answers
from judge_server import (
    KEY,
    PROMPT,
    ROOT,
    as_json,
    candidates,
    completion,
    cut,
    cut_in_the_middle,
    error,
)
from werkzeug import Response

from persistcal.judge import client
from persistcal.judge.labels import JudgeError
from persistcal.judge.ledger import estimate
from persistcal.judge.prompt import candidate_id, candidate_of, request_body, split_prompt
from persistcal.judge.queue import (
    Unresolved,
    append_unresolved,
    human_labels_digest,
    read_human_labels,
)
from persistcal.store import artifacts


def test_each_distinct_candidate_is_asked_once_and_kept(fake):
    some = candidates(10)
    assert fake.ask(some * 2) == "RW" * 10
    assert set(fake.asked.values()) == {1}
    # another job of the study, with one candidate more; the judged ones need no key
    assert fake.ask([*some, candidates(11)[-1]]) == "RW" * 5 + "R"
    assert fake.ask(some, api_key="") == "RW" * 5
    assert fake.asked.total() == 11
    # another model has replies of its own
    fake.ask(some, model="judge-2")
    assert fake.asked.total() == 21


def test_storm_cut_connections_and_garbage_pass(fake):
    fake.next_replies = [
        error(429, "rate_limit_exceeded", **{"Retry-After": "0"}),
        error(500),
        cut,
        cut_in_the_middle,
        error(408),
        error(409),
        error(503),
        Response("<html>a proxy's page</html>", content_type="text/html"),
        Response('{"choices": [', content_type="application/json"),
        as_json({"no": "choices"}),
    ] * 2
    assert fake.ask(candidates(12), retries=20) == "RW" * 6
    assert set(fake.asked.values()) == {1}
    assert len(fake.times) == 12 + 20
    assert fake.booked == 12


def test_retry_after_is_honoured(fake):
    fake.next_replies = [error(429, **{"Retry-After": "0.3"})]
    assert fake.ask(candidates(1)) == "R"
    assert fake.times[1] - fake.times[0] >= 0.29


@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({"retry-after": "7"}, 7),
        ({"retry-after": "-3"}, 0),
        ({"retry-after-ms": "250", "retry-after": "7"}, 0.25),
        ({"retry-after-ms": "soon", "retry-after": "7"}, 7),
        ({"retry-after": "Sun, 06 Nov 1994 08:54:37 GMT"}, 300),  # the clock shows 08:49:37
        ({"retry-after": "Sun, 06 Nov 1994 08:48:37 GMT"}, 0),
        ({"retry-after": "soon"}, None),
        ({}, None),
    ],
)
def test_what_a_server_asks_to_wait(headers, wait, monkeypatch):
    monkeypatch.setattr(client.time, "time", lambda: 784111777.0)
    asked = httpx2.Request("GET", "x:")
    answer = httpx2.Response(429, headers=headers, request=asked)
    assert (
        client.retry_after_s(client.openai.APIStatusError("", response=answer, body=None))
        == wait
    )


@pytest.mark.parametrize(
    ("status", "after", "passes"),
    [(status, "", True) for status in (408, 409, 429, 500, 503)]
    + [(status, "", False) for status in (400, 401, 404, 422, 499)]
    + [(429, "600", True), (429, "601", False), (401, "1", False)],
)
def test_what_may_pass(status, after, passes):
    answer = httpx2.Response(
        status, headers={"retry-after": after}, request=httpx2.Request("GET", "x:")
    )
    failure = client.openai.APIStatusError("", response=answer, body=None)
    assert client.is_transient(failure) == passes


def test_nothing_is_repeated_when_another_request_has_failed(fake):
    fake.replies["fact 0"] = error(429, **{"Retry-After": "60"})
    fake.replies["wrong 1"] = lambda request: time.sleep(0.3) or error(401)
    begin = time.monotonic()
    with pytest.raises(JudgeError, match="failed"):
        fake.ask(candidates(2))
    assert time.monotonic() - begin < 30
    assert fake.asked == {"fact 0": 1, "wrong 1": 1}


def test_a_judge_without_a_bill_needs_no_money(fake):
    fake.ask(candidates(2), price_input=0, price_output=0, max_cost=0)
    assert fake.spent == (2, 0)


def test_a_reply_that_takes_too_long_is_asked_for_again(fake):
    fake.next_replies = [lambda request: time.sleep(2) or error(401)]
    assert fake.ask(candidates(1), timeout_s=0.6) == "R"


def test_garbage_for_ever_is_left_to_a_person(fake):
    fake.replies["fact 0"] = Response("<html>no</html>", content_type="text/html")
    assert fake.ask(candidates(2)) == "?W"
    assert fake.asked == {"fact 0": 4, "wrong 1": 1}  # 1 + 3 retries
    assert [row["reason"] for row in fake.waiting] == ["malformed"]


@pytest.mark.parametrize(
    ("reply", "tries"),
    [
        (error(401, "invalid_api_key"), 1),
        (error(400, "unknown_model"), 1),
        (error(429, "insufficient_quota"), 1),
        (error(429, "rate_limit_exceeded", **{"Retry-After": "86400"}), 1),
        (error(500), 4),
    ],
)
def test_a_failure_that_stays_stops_and_keeps_what_was_judged(fake, reply, tries):
    some = candidates(3)
    fake.ask(some[:2])
    before = fake.spent
    assert before[0] == 2 and before[1] > 0
    fake.replies["fact 2"] = reply
    with pytest.raises(JudgeError, match=r"server at .* failed"):
        fake.ask(some)
    assert fake.asked == {"fact 0": 1, "wrong 1": 1, "fact 2": tries}
    assert fake.spent == pytest.approx(before)
    del fake.replies["fact 2"]
    assert fake.ask(some) == "RWR"


def test_replies_on_their_way_are_kept_when_another_fails(fake):
    fake.replies["fact 0"] = error(401)
    fake.replies["wrong 1"] = lambda request: (
        time.sleep(0.5) or as_json(completion("INCORRECT"))
    )
    with pytest.raises(JudgeError):
        fake.ask(candidates(2))
    assert fake.ask(candidates(2)[1:]) == "W"
    assert fake.asked["wrong 1"] == 1


def test_concurrency_is_limited(fake):
    fake.delay_s = 0.05
    fake.ask(candidates(12), concurrency=3)
    assert fake.most_busy == 3


def test_two_jobs_at_once_ask_once_and_share_one_limit(fake):
    fake.delay_s = 0.05
    found = {}

    def job(name):
        found[name] = fake.ask(candidates(8), concurrency=2)

    jobs = [threading.Thread(target=job, args=(name,)) for name in "ab"]
    [thread.start() for thread in jobs]
    [thread.join(30) for thread in jobs]
    assert found == {"a": "RW" * 4, "b": "RW" * 4}
    assert set(fake.asked.values()) == {1}
    assert fake.most_busy == 2


KILLED = """
import json, sys
sys.path[:0] = ["{root}", "{root}/tests/helpers"]
from judge_server import candidates
from persistcal.judge.run import judge_candidates
from persistcal.judge.settings import JudgeSettings
settings = JudgeSettings(**json.loads(sys.argv[1]))
judge_candidates(candidates(30), sys.argv[2], settings, noted=sys.argv[2] + "/n", api_key="k-1")
"""


def test_a_killed_job_loses_no_reply_and_leaves_no_lock(fake, tmp_path):
    fake.delay_s = 0.05
    settings = vars(fake.settings(concurrency=1))
    code = KILLED.format(root=ROOT)
    job = subprocess.Popen([sys.executable, "-c", code, json.dumps(settings), str(tmp_path)])
    deadline = time.monotonic() + 60
    while len(fake.times) < 8 and time.monotonic() < deadline:
        time.sleep(0.02)
    os.kill(job.pid, signal.SIGKILL)
    job.wait(10)
    assert 8 <= len(fake.times) < 30
    # every reply that the job could keep is kept: only the one on its way, or the one
    # that had just come, may be asked for again
    assert fake.ask(candidates(30)) == "RW" * 15
    assert 30 <= fake.asked.total() <= 32


def test_refusals_wait_for_a_person_whose_label_wins(fake):
    fake.replies["fact 0"] = completion(None, refusal="I cannot help with that.")
    fake.replies["wrong 1"] = error(400, "content_filter")
    fake.replies["fact 2"] = completion("It is =CORRECT, I think")
    fake.replies["wrong 3"] = completion("INCORR", finish_reason="length")
    fake.replies["fact 4"] = completion("", finish_reason="content_filter")
    some = candidates(6)
    assert fake.ask(some) == "?" * 5 + "W"
    reasons = {row["answer"]: row["reason"] for row in fake.waiting}
    assert reasons == {
        "fact 0": "refusal",
        "wrong 1": "refusal",
        "fact 2": "malformed",
        "wrong 3": "malformed",
        "fact 4": "refusal",
    }
    fake.ask(some)  # neither asked again nor queued again
    assert len(fake.waiting) == 5
    assert fake.asked.total() == 6

    fake.fill_in(fact_0="Correct", wrong_1="not attempted")
    expected = "rn???W"
    assert fake.ask(some) == expected
    # a person's label also holds for another judge, which is not asked
    assert fake.ask(some[:2], model="judge-2") == expected[:2]
    assert fake.asked.total() == 6
    # and what a job appends leaves it as it is
    fake.replies["wrong 7"] = completion("?")
    assert fake.ask(candidates(8)[6:]) == "R?"
    assert fake.ask(some) == expected


def test_a_label_reruns_the_jobs_that_it_concerns_and_no_other(fake, tmp_path):
    fake.replies = {f"fact {i}": completion("?") for i in (0, 2, 4)}
    some, queue = candidates(6), tmp_path / "queue.csv"

    def digests():
        return [human_labels_digest(queue, tmp_path / f"{job}.csv") for job in "abc"]

    assert digests() == ["", "", ""]
    fake.ask(some[:2], job="a")
    fake.ask(some[:4], job="b")
    assert digests() == ["", "", ""]
    fake.fill_in(fact_2="correct")
    assert [bool(digest) for digest in digests()] == [False, True, False]
    # running the job again leaves its digest: the parameter that Snakemake has recorded
    before = digests()
    assert fake.ask(some[:4], job="b")[2] == "r"
    # a job that finds the label there from its first run on has nothing to catch up with
    fake.ask(some[2:], job="c")
    assert digests() == before
    fake.fill_in(fact_2="incorrect")
    assert digests()[0] == ""
    assert digests()[1] not in ("", before[1])
    assert digests()[2] != ""
    fake.fill_in(fact_2="Correct.")  # the same, said otherwise
    assert digests()[2] == ""
    fake.fill_in(fact_2="")
    assert [bool(digest) for digest in digests()] == [False, False, True]
    fake.fill_in(fact_0="yes")  # no label, so the jobs that read it run and say so
    assert all(digests())
    with pytest.raises(JudgeError, match="has the label 'yes'"):
        fake.ask(some[:2], job="a")


def test_queue_survives_a_spreadsheet(fake, tmp_path):
    """Semicolons, a byte order mark, other columns first, no last newline, formulas."""
    queue = tmp_path / "queue.csv"
    odd = candidate_of("Sum; of 1, 1?", ["two", 'the "2"'], "=1+1")
    append_unresolved(queue, [Unresolved(odd, "refusal", "-no")])
    (row,) = fake.waiting
    assert row["answer"] == "'=1+1"
    assert row["references"] == 'two | the "2"'
    row["label"] = "incorrect"
    text = 'id;note;label;question\r\n{id};mine;{label};"Sum; of 1, 1?"'.format(**row)
    queue.write_text(text, encoding="utf-8-sig")
    assert read_human_labels(queue) == {candidate_id(odd): "incorrect"}
    other = candidates(1)[0]
    waiting = [Unresolved(odd, "", ""), Unresolved(other, "malformed", "x")]
    assert append_unresolved(queue, waiting) == 1
    assert queue.read_bytes().startswith(text.encode("utf-8-sig"))
    fill = queue.read_text(encoding="utf-8-sig").replace(
        f"{candidate_id(other)};;;", f"{candidate_id(other)};;correct;"
    )
    queue.write_text(fill, encoding="utf-8")
    assert read_human_labels(queue) == {
        candidate_id(odd): "incorrect",
        candidate_id(other): "correct",
    }


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("id,label\na,yes\n", "row 2 has the label 'yes'"),
        ("id,label\na,correct\na,incorrect\n", "row 3 gives a a second label"),
        ("a,correct\n", "first line must name the columns"),
    ],
)
def test_a_queue_filled_wrongly_says_where(tmp_path, text, says):
    (tmp_path / "queue.csv").write_text(text)
    with pytest.raises(JudgeError, match=says):
        read_human_labels(tmp_path / "queue.csv")


def test_ceilings_hold_for_the_study_and_refuse_before_anything_is_sent(fake):
    some = candidates(10)
    fake.ask(some[:6], max_requests=9)
    with pytest.raises(
        JudgeError, match=r"4 more requests .*judge.max_requests 9; raise it to 10"
    ):
        fake.ask(some, max_requests=9)
    with pytest.raises(JudgeError, match="max_cost"):
        fake.ask(some, max_cost=0.001)
    assert fake.asked.total() == 6
    assert fake.ask(some, max_requests=10) == "RW" * 5


def test_estimate_by_hand():
    candidate = candidate_of("Qé", ["r"], "a")
    body = request_body(
        [candidate],
        model="m",
        prompt="sys\n---\n{question}/{references}/{answer}",
        options={"max_completion_tokens": 16},
    )
    # system "sys": 3 bytes = 1 token; user "Qé/- r/a": 9 bytes = 3 tokens; 8 more for each
    # cost: (20 x 2.5 + 16 x 15) / 10^6 = 290 / 10^6
    assert estimate([body, body], price_input=2.5, price_output=15) == (
        2,
        40,
        32,
        pytest.approx(580e-6),
    )


def test_places_of_the_prompt_are_filled_in_one_pass():
    candidate = candidate_of("What is {answer}?", ["{question}", "b", "b"], " 4  2 ")
    body = request_body(
        [candidate], model="m", prompt="s\n---\n{question}|{references}|{answer}", options={}
    )
    assert body["messages"][1]["content"] == "What is {answer}?|- {question}\n- b|4 2"
    system, user = split_prompt(PROMPT)
    assert "any one of them is enough" in system
    assert user.endswith("Label:")
    with pytest.raises(JudgeError, match="line '---'"):
        split_prompt("{question}{references}{answer}")
    with pytest.raises(JudgeError, match=r"lacks \{references\}"):
        split_prompt("s\n---\n{question}{answer}")


def test_a_judge_that_never_gives_a_label_is_stopped_early(fake, tmp_path):
    some = candidates(60)
    fake.replies = dict.fromkeys((c.answer for c in some), completion("Sure! Let me think"))
    with pytest.raises(JudgeError, match="None of the judge's first 20 replies is a label"):
        fake.ask(some)
    assert fake.asked.total() < 40
    assert not list(tmp_path.glob("cache/*/*.json"))
    fake.replies = {}
    assert fake.ask(some) == "RW" * 30


def test_no_key_and_no_reference_say_so(fake):
    with pytest.raises(JudgeError, match="environment variable JUDGE_KEY is empty"):
        fake.ask(candidates(1), api_key=" ")
    with pytest.raises(JudgeError, match="has no reference answer"):
        fake.ask([candidate_of("Q?", [], "a")])


# The script ------------------------------------------------------------------


def write_tables(folder, some):
    n = len(some)
    questions = questions_table(n_train=0, n_test=n).assign(
        question=[c.question for c in some], references=[list(c.references) for c in some]
    )
    clusters = pd.DataFrame(
        [
            (f"q{i}", number, text, 0.5, [text])
            for i, candidate in enumerate(some)
            for number, text in enumerate([candidate.answer, "second", "third"])
        ],
        columns=artifacts.CLUSTERS.schema.names,
    )
    artifacts.write(questions, folder / "questions.parquet", artifacts.QUESTIONS)
    artifacts.write(clusters, folder / "clusters.parquet", artifacts.CLUSTERS)
    names = ("questions", "clusters", "labels", "answers")
    return [str(folder / f"{name}.parquet") for name in names]


def test_script_judges_only_what_is_read(fake, tmp_path, monkeypatch):
    monkeypatch.setenv("JUDGE_KEY", KEY)
    paths = write_tables(tmp_path, candidates(3))
    settings = vars(fake.settings())
    folder = str(tmp_path / "judge")
    noted = str(tmp_path / "noted.csv")
    judge_answers(*paths, judged_clusters=2, judge=settings, folder=folder, noted=noted)
    labels = artifacts.read(paths[2], artifacts.LABELS)
    assert labels["cluster"].tolist() == [0, 1] * 3
    assert labels["label"].tolist() == ["correct", "incorrect"] + ["incorrect"] * 2 + [
        "correct",
        "incorrect",
    ]
    assert set(labels["source"]) == {"judge-1"}
    assert "third" not in fake.asked
    answers = artifacts.read(paths[3], artifacts.ANSWERS)
    assert answers["correct"].tolist() == [True, False, True]
    judge_answers(*paths)
    labels = artifacts.read(paths[2], artifacts.LABELS)
    assert len(labels) == 9
    assert set(labels["source"]) == {"lexical"}


JOB = """
import json, sys
sys.path[:0] = ["{root}", "{root}/workflow/scripts/judgements"]
from persistcal.store.logs import log_to
from judge_answers import judge_answers
folder = sys.argv[1]
log_to(folder + "/job.log")
judge = json.loads(sys.argv[3])
judge_answers(*json.loads(sys.argv[2]), judge=judge, folder=folder, noted=folder + "/noted.csv")
"""


def run_job(folder, paths, settings, **environment):
    arguments = [str(folder), json.dumps(paths), json.dumps(settings)]
    return subprocess.run(
        [sys.executable, "-c", JOB.format(root=ROOT), *arguments],
        env={**os.environ, "JUDGE_KEY": KEY, **environment},
        capture_output=True,
        timeout=120,
    )


@pytest.mark.slow
def test_the_key_is_nowhere(fake, tmp_path):
    """A server that repeats the key in errors, headers and replies; the loudest log level."""
    echo = f"Incorrect API key provided: {KEY}."
    fake.replies["fact 0"] = completion(f"My key is Bearer {KEY}")
    fake.replies["wrong 1"] = completion(None, refusal=KEY)
    fake.replies["fact 2"] = Response(f"<p>{KEY}</p>", content_type="text/html")
    fake.replies["wrong 3"] = error(400, "content_filter", echo)
    paths = write_tables(tmp_path, candidates(5))
    settings = vars(fake.settings(retries=1))
    fine = run_job(tmp_path, paths, settings, OPENAI_LOG="debug")
    assert fine.returncode == 0, fine.stderr
    fake.replies["fact 0"] = error(401, "invalid_api_key", echo, **{"X-Echo": KEY})
    failed = run_job(tmp_path, paths, {**settings, "model": "judge-2"}, OPENAI_LOG="debug")
    assert failed.returncode != 0
    assert b"Incorrect API key provided: [key]" in failed.stderr
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {"queue.csv", "job.log", "spending.csv"} <= {path.name for path in files}
    outputs = [path.read_bytes() for path in files]
    outputs += [fine.stdout, fine.stderr, failed.stdout, failed.stderr]
    assert not [output for output in outputs if b"SECRET" in output]


def test_the_lexical_judge_needs_neither_library_nor_server(tmp_path):
    paths = write_tables(tmp_path, candidates(2))
    code = JOB.format(root=ROOT) + (
        "assert not {'openai', 'tenacity', 'filelock'} & set(sys.modules)"
    )
    arguments = [str(tmp_path), json.dumps(paths), "null"]
    subprocess.run([sys.executable, "-c", code, *arguments], check=True, timeout=60)


def test_a_missing_library_is_named(fake, monkeypatch):
    for name in [name for name in sys.modules if name.startswith("persistcal.judge.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "openai", None)
    with pytest.raises(Exception, match="needs the package openai: pip install") as raised:
        fake.ask(candidates(1))
    assert type(raised.value).__name__ == "JudgeError"


# The rule --------------------------------------------------------------------

SNAKEFILE = """
import sys
from pathlib import Path
sys.path.insert(0, "{root}")
from study.selection import Study
study = Study(config)
RESULTS, LOGS, QUESTIONS = "results", "logs", "questions.parquet"
PLACE = "{{model}}/{{checkpoint}}/{{dataset}}.parquet"
CLUSTERS = "clusters/" + PLACE
LABELS, ANSWERS = "results/labels/" + PLACE, "results/answers/" + PLACE
def read_prompt(path, key):
    return Path("{root}", path).read_text()
def digest_of(script):
    return "1"
rule all:
    input:
        "after.txt"
rule cluster_answers:
    output:
        clusters="clusters/{{model}}/{{checkpoint}}/{{dataset}}.parquet",
include: "{root}/workflow/rules/judgements.smk"
rule after:
    input:
        expand(rules.judge_answers.output.labels, model="m", checkpoint=["a", "b"], dataset="d")
    output:
        "after.txt"
    shell:
        "touch {{output}}"
"""


@pytest.mark.slow
def test_the_rule_reruns_what_a_label_concerns_and_nothing_for_a_ceiling(fake, tmp_path):
    (tmp_path / "Snakefile").write_text(SNAKEFILE.format(root=ROOT))
    for checkpoint, some in {"a": candidates(2), "b": candidates(4)}.items():
        folder = tmp_path / "clusters" / "m" / checkpoint
        folder.mkdir(parents=True)
        write_tables(tmp_path, some)
        (tmp_path / "clusters.parquet").replace(folder / "d.parquet")
    fake.replies["fact 2"] = completion(f"{KEY}?")
    rest = yaml.safe_load((ROOT / "config" / "config.yaml").read_text())

    def run(**changes):
        """Run the workflow and return the checkpoints whose judge jobs ran."""
        judge = {"clusters": "needed", **vars(fake.settings(**changes))}
        (tmp_path / "config.json").write_text(json.dumps({**rest, "judge": judge}))
        for path in tmp_path.glob("logs/**/*.log"):
            path.unlink()
        options = "-c1 --quiet all --configfile config.json --rerun-triggers mtime params input"
        environment = {"JUDGE_KEY": KEY, "PYTHONPATH": str(ROOT)}
        warm_python.run(
            "snakemake", options.split(), 120, folder=tmp_path, **environment
        ).check_returncode()
        return sorted(path.parent.name for path in tmp_path.glob("logs/**/*.log"))

    def labels(checkpoint):
        path = tmp_path / f"results/labels/m/{checkpoint}/d.parquet"
        table = artifacts.read(path, artifacts.LABELS)
        return table.loc[table["cluster"] == 0, "source"].tolist()

    assert run() == ["a", "b"]
    assert (labels("a"), labels("b")) == (
        ["judge-1"] * 2,
        ["judge-1"] * 2 + ["queue", "judge-1"],
    )
    assert run(max_cost=99, concurrency=1, backend="openai_batch") == []
    with pytest.raises(subprocess.CalledProcessError):  # b went on without a label
        run(undecided="stop")
    assert (labels("a"), (tmp_path / "results/labels/m/b/d.parquet").exists()) == (
        ["judge-1"] * 2,
        False,
    )
    assert (
        "1 answer waits for a person" in (tmp_path / "logs/judge_answers/m/b/d.log").read_text()
    )
    fake.folder = tmp_path / "results" / "judge"
    fake.fill_in(fact_2="correct")
    assert run(undecided="stop") == ["b"]
    assert labels("b") == ["judge-1", "judge-1", "human", "judge-1"]
    assert run() == []
    assert run(together=True) == ["a", "b"]
    assert {asked.count("|") for asked in fake.asked} == {0, 1}
    assert run(form="released", request={}) == ["a", "b"]
    assert labels("b") == ["judge-1", "judge-1", "human", "judge-1"]
    files = [path for path in tmp_path.rglob("*") if path.is_file()]  # .snakemake too
    assert not [path for path in files if b"SECRET" in path.read_bytes()]
