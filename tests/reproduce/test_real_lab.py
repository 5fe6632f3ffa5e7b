"""The study of real weights with a tiny random model in their place."""

import pytest
import yaml
from tiny_models import tiny_model, tiny_tokenizer
from workflow_runs import ROOT, planned, snakemake

from atlas.facts import Fact
from persistcal.store import artifacts
from reproduce import real_lab

pytestmark = pytest.mark.slow
CONFIG = ROOT / "config" / "lab_real.yaml"
SMALL = {
    "datasets": {"atlas": {"n_train": 2, "n_test": 4}},
    "prompts": {"few_shot": 1},
    "decoding": {"n_beams": 2, "max_new_tokens": 2},
}
CONTEXTS = ["right", "irrelevant", "wrong"]


def fact(name, relation, question, answer):
    return Fact(name, relation, question, answer, (), "", 1.0)


def test_passages_of_a_question_are_right_irrelevant_wrong_or_mixed():
    facts = {
        fact("a", "city-country", "Which country is Lyon in?", "France"): "test",
        fact("b", "city-country", "Which country is Turin in?", "Italy"): "few_shot",
        fact("c", "country-capital", "What is the capital of the Gambia?", "Banjul"): "train",
        fact("d", "country-capital", "What is the capital of Chad?", "N'Djamena"): "unused",
    }
    by_id = {
        context: rows.set_index("question_id")["passage"].to_dict()
        for context, rows in real_lab.passages(facts, seed=17).items()
    }
    right = {
        "a": "Lyon is one of the large cities of France.",
        "b": "Turin is one of the large cities of Italy.",
        "c": "The government of the Gambia has its seat in Banjul.",
        "d": "The government of Chad has its seat in N'Djamena.",
    }
    assert by_id["right"] == right
    swapped = {first: right[second] for first, second in zip("abcd", "badc", strict=True)}
    assert by_id["irrelevant"] == swapped
    wrong = {
        "a": "Lyon is one of the large cities of Italy.",
        "b": right["b"],  # as an example it is true
        "c": "The government of the Gambia has its seat in N'Djamena.",
        "d": "The government of Chad has its seat in Banjul.",
    }
    assert by_id["wrong"] == wrong
    mixed = by_id["mixed"]
    assert {mixed[first] in (right[first], wrong[first]) for first in "abcd"} == {True}
    assert mixed not in (right, wrong)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("real")
    (folder / "small.yaml").write_text(yaml.safe_dump(SMALL))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(real_lab, "load_smollm2", lambda: (tiny_model("llama"), tiny_tokenizer()))
        real_lab.main(CONFIG)
    return folder


def test_each_context_is_answered_from_its_passages(folder):
    answered = [
        f"results/lab_real/beams/smollm2-context/{c}/atlas/test.parquet" for c in CONTEXTS
    ]
    snakemake(folder, "--cores", "2", *answered, configs=[CONFIG, folder / "small.yaml"])
    beams = [artifacts.read(folder / path, artifacts.BEAMS) for path in answered]
    assert len({tuple(of_one["logprob"]) for of_one in beams}) == len(CONTEXTS)


def test_the_study_plans_all_of_its_states(folder):
    output = snakemake(folder, "-n", configs=[CONFIG])
    jobs = planned(output)
    assert jobs["read_context"] == len([*CONTEXTS, "mixed"])
    models = yaml.safe_load(CONFIG.read_text())["models"]
    for model, entry in models.items():
        for state in entry["checkpoints"]:
            assert f"beams/{model}/{state}/atlas/test.parquet" in output
    changes = [s for s in models["smollm2"]["checkpoints"].values() if "change" in s]
    assert jobs["change_checkpoint"] == len(changes) > 0
