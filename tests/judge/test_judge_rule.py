"""The rule that judges: answers that it judges, and changes that make it run again."""

import csv
import json
import subprocess
import sys

import pandas as pd
import pytest
import warm_python
import yaml
from answer_tables import LEXICAL, questions_table
from configs import overlaid
from judge_answers import judge_answers
from judge_server import KEY, ROOT, candidates, completion

from persistcal.judge.backends import BACKENDS, Backend
from persistcal.judge.human_labels import COLUMNS, human_labels_digest
from persistcal.judge.messages import Candidate, candidate_id, candidate_of
from persistcal.store import artifacts
from persistcal.store.sheets import SheetError
from study.check import check_config
from study.inputs import Inputs
from study.resources import JobResources
from study.schema import ConfigError, load_schema
from study.study import Study


def tables_of(first_answers):
    """Return questions and clusters: three answers each, the first from a candidate."""
    n = len(first_answers)
    questions = questions_table(n_train=0, n_test=n).assign(
        question=[c.question for c in first_answers],
        references=[list(c.references) for c in first_answers],
    )
    rows = [
        (f"q{i}", number, text, 0.5, [text])
        for i, candidate in enumerate(first_answers)
        for number, text in enumerate([candidate.answer, "second", "third"])
    ]
    return questions, pd.DataFrame(rows, columns=artifacts.CLUSTERS.schema.names)


NO_LABELS = artifacts.empty(artifacts.GIVEN_LABELS)


def test_the_rule_judges_clusters_that_later_rules_read(fake, tmp_path, monkeypatch, caplog):
    caplog.set_level("INFO")
    monkeypatch.setenv("JUDGE_KEY", KEY)
    tables = *tables_of(candidates(3)), NO_LABELS
    settings = vars(fake.settings())
    decisive = {name: settings.pop(name) for name in ("model", "prompt", "request")}
    files = {"folder": str(tmp_path / "judge"), "noted": str(tmp_path / "noted.csv")}
    arguments = {**files, "judged_clusters": 2, "judge": decisive, "reached": settings}
    labels, answers = judge_answers(*tables, **arguments)
    assert labels["cluster"].tolist() == [0, 1] * 3

    first_is_correct, both_are_wrong = ["correct", "incorrect"], ["incorrect", "incorrect"]
    expected = [*first_is_correct, *both_are_wrong, *first_is_correct]
    assert labels["label"].tolist() == expected
    assert set(labels["source"]) == {"judge-1"}
    assert "third" not in fake.asked
    assert answers["correct"].tolist() == [True, False, True]
    assert "67 % of 3 answers are correct" in caplog.text  # two of three

    labels, _ = judge_answers(*tables, **LEXICAL)
    assert len(labels) == 9
    assert set(labels["source"]) == {"lexical"}


@pytest.mark.parametrize(("n_longer", "is_named"), [(4, False), (5, True)])
def test_answers_that_only_contain_a_reference_are_counted(caplog, n_longer, is_named):
    right = [Candidate(f"Question {i}?", (f"city {i}",), f"City {i}") for i in range(20)]
    longer = [c._replace(answer=f"It is {c.answer}.") for c in right[:n_longer]]
    judge_answers(*tables_of([*longer, *right[n_longer:]]), NO_LABELS, **LEXICAL)
    text = f"{n_longer} of 20 answers contain a reference without being equal to it"
    assert (text in caplog.text) == is_named


@pytest.mark.parametrize("name", ["openai", "lexical", "exact_match"])
def test_a_person_corrects_a_decided_label_of_every_back_end_in_the_queue(
    fake, tmp_path, monkeypatch, name
):
    """By the texts that the page shows, and later by the id; a rerun keeps the digest."""
    monkeypatch.setenv("JUDGE_KEY", KEY)
    folder, noted = tmp_path / "judge", str(tmp_path / "noted.csv")
    settings = vars(fake.settings()) if name == "openai" else {}
    rows = [(c.question, c.references, c.answer) for c in candidates(2)]

    def judged():
        return BACKENDS[name](settings, str(folder), noted).label(rows)

    def digest():
        return human_labels_digest(str(queue), noted)

    folder.mkdir()
    queue = folder / "queue.csv"
    first = judged()
    assert {source for _, source in first} == {"judge-1" if name == "openai" else name}
    assert not digest()
    wrong = {"correct": "incorrect", "incorrect": "correct"}
    for i, (label, _) in enumerate(first):
        question, references, answer = rows[i]
        known = {"id": candidate_id(candidate_of(*rows[i]))} if i else {"question": question}
        known |= {} if i else {"references": " | ".join(references), "answer": answer}
        row = dict.fromkeys(COLUMNS, "") | {"label": wrong[label]} | known
        with queue.open("a", encoding="utf-8") as file:
            writer = csv.DictWriter(file, COLUMNS)
            if not i:
                writer.writeheader()
            writer.writerow(row)
        before, corrected = digest(), judged()
        assert corrected[i] == (wrong[label], "human")
        assert corrected[i + 1 :] == first[i + 1 :]
        assert before
        assert digest() == before
    with queue.open("a", encoding="utf-8") as file:
        csv.DictWriter(file, COLUMNS).writerow({"label": "correct", "answer": "x"})
    with pytest.raises(SheetError, match="row 4 has a label and no id; copy question"):
        judged()


def test_the_lexical_judge_does_not_import_libraries_of_paid_judges():
    code = f"""
import sys
sys.path[:0] = ["{ROOT}", "{ROOT}/workflow/scripts/judgements"]
import judge_answers
assert not {{"openai", "tenacity", "torch"}} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_a_new_model_prompt_or_request_reruns_the_judge_and_a_new_limit_does_not():
    """The rule compares `label_settings`."""

    def compared(**changes):
        return Inputs(Study(overlaid({"judge": changes})), ROOT).label_settings()

    assert compared(max_cost=1, concurrency=1, backend="openai") == compared()
    for change in ({"model": "judge-2"}, {"together": False}, {"request": {"seed": 5}}):
        assert compared(**change) != compared()


class Initials(Backend):
    """Compare first letters by a "model" of this name."""

    needs = ("model",)

    def label(self, rows):
        is_correct = [any(answer[0] == t[0] for t in truths) for _, truths, answer in rows]
        return [("correct" if r else "incorrect", self.settings["model"]) for r in is_correct]


def test_a_new_back_end_is_one_class(monkeypatch, request):
    """Schema, study, resources and script find it by its name."""
    monkeypatch.setitem(BACKENDS, "initials", Initials)
    request.addfinalizer(load_schema.cache_clear)
    load_schema.cache_clear()
    config = overlaid({"judge": {"backend": "initials", "model": "abc", "clusters": "needed"}})
    check_config(config)
    del config["judge"]["model"]
    with pytest.raises(ConfigError, match="lacks the key model, which backend initials needs"):
        check_config(config)

    config["judge"]["model"] = "abc"
    study = Study(config)
    assert study.judged_clusters is None and not study.judge.asks_server
    job = {"model": "olmo3-7b", "checkpoint": "step566000", "dataset": "triviaqa"}
    job["split"] = "test"
    assert JobResources(study).judge_requests("judge_answers", job) == 0

    inputs = Inputs(study, ROOT)
    arguments = {
        **LEXICAL,
        "judge": inputs.label_settings(),
        "reached": inputs.judge_settings(),
    }
    assert arguments["judge"] == {"backend": "initials", "model": "abc"}

    labels, answers = judge_answers(*tables_of(candidates(2)), NO_LABELS, **arguments)
    # References fact 0 and fact 1; answers fact 0 and wrong 1, each with second and third
    assert labels["label"].tolist() == ["correct", *["incorrect"] * 5]
    assert set(labels["source"]) == {"abc"}
    assert answers["correct"].tolist() == [True, False]


# The rule
SNAKEFILE = """
import sys
from pathlib import Path
sys.path.insert(0, "{root}")
from study.inputs import Inputs
from study.study import Study
from study.paths import files_of_job, settings_of_job, without_rerun
study = Study(config)
inputs = Inputs(study, Path("{root}"))
paths = inputs.paths
RESULTS, LOGS = "results", "logs"
rule all:
    input:
        "after.txt"
rule cluster_answers:
    output:
        clusters="results/clusters/{{model}}/{{checkpoint}}/{{dataset}}/{{split}}.parquet",
include: "{root}/workflow/rules/judgements.smk"
# As `complete_rules` of common.smk does
[judging] = [each for each in workflow.rules if each.name == "judge_answers"]
judging.log_modifier = workflow.modifier.path_modifier
judging.set_log("logs/judge_answers/{{model}}/{{checkpoint}}/{{dataset}}/{{split}}.log")
rule after:
    input:
        expand(
            rules.judge_answers.output.labels,
            model="m", checkpoint=["a", "b"], dataset="d", split="test",
        )
    output:
        "after.txt"
    shell:
        "touch {{output}}"
"""


@pytest.mark.slow
def test_a_new_label_reruns_its_checkpoints_and_a_new_ceiling_reruns_nothing(fake, tmp_path):
    (tmp_path / "Snakefile").write_text(SNAKEFILE.format(root=ROOT))
    for checkpoint, first_answers in {"a": candidates(2), "b": candidates(4)}.items():
        subject = {"model": "m", "checkpoint": checkpoint, "dataset": "d", "split": "test"}
        questions, clusters = tables_of(first_answers)
        # The answers differ, so the batches of the checkpoints have different requests.
        second_answer = {"second": f"second of {checkpoint}"}
        clusters["answer"] = clusters["answer"].replace(second_answer)
        place = tmp_path / "results" / "clusters" / "m" / checkpoint / "d/test.parquet"
        artifacts.write(clusters, place, artifacts.CLUSTERS, values=subject)
        path = tmp_path / "results" / "questions" / "d.parquet"
        artifacts.write(questions, path, artifacts.QUESTIONS, values=subject)
    fake.replies["fact 2"] = completion(f"{KEY}?")
    rest = yaml.safe_load((ROOT / "config" / "config.yaml").read_text())

    def run(**changes):
        """Run the workflow and return the checkpoints that were judged."""
        judge = {"clusters": "needed", **vars(fake.settings(**changes))}
        (tmp_path / "config.json").write_text(json.dumps({**rest, "judge": judge}))
        for path in tmp_path.glob("logs/**/*.log"):
            path.unlink()
        options = "-c1 --quiet all --configfile config.json --rerun-triggers mtime params input"
        environment = {"JUDGE_KEY": KEY, "PYTHONPATH": str(ROOT)}
        warm_python.run(
            "snakemake", options.split(), 120, folder=tmp_path, **environment
        ).check_returncode()
        return sorted(path.parts[-3] for path in tmp_path.glob("logs/**/*.log"))

    def labels(checkpoint):
        path = tmp_path / f"results/labels/m/{checkpoint}/d/test.parquet"
        table = artifacts.read(path, artifacts.LABELS)
        return table.loc[table["cluster"] == 0, "source"].tolist()

    assert run() == ["a", "b"]
    assert labels("a") == ["judge-1"] * 2
    assert labels("b") == ["judge-1", "judge-1", "queue", "judge-1"]
    with pytest.raises(subprocess.CalledProcessError):  # an answer of b has no label
        run(undecided="stop")
    assert labels("a") == ["judge-1"] * 2
    assert not (tmp_path / "results/labels/m/b/d/test.parquet").exists()
    log = (tmp_path / "logs/judge_answers/m/b/d/test.log").read_text()
    assert "1 answer waits for a person" in log
    fake.folder = tmp_path / "results" / "judge"
    fake.fill_in(fact_2="correct")
    assert run(undecided="stop") == ["b"]
    assert labels("b") == ["judge-1", "judge-1", "human", "judge-1"]
    assert run(max_cost=99, concurrency=1, backend="openai_batch") == []
    # On one core, batches of both checkpoints wait at once: both are submitted before one ends.
    fake.needed_side_by_side = 2
    assert run(backend="openai_batch", together=True) == ["a", "b"]
    assert {asked.count("|") for asked in fake.asked} == {0, 1}
    assert labels("b") == ["judge-1", "judge-1", "human", "judge-1"]
    files = [path for path in tmp_path.rglob("*") if path.is_file()]  # .snakemake too
    assert not [path for path in files if b"SECRET" in path.read_bytes()]
