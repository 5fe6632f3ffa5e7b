"""The entailment model's inputs and outputs, on a tiny DeBERTa with random weights."""

import copy
import itertools

import numpy as np
import pandas as pd
import pytest
import torch
from answer_tables import questions_table
from fetch_entailment_model import fetch_entailment_model
from jobs import ABOUT, clusters_job
from tiny_models import ID2LABEL, MAX_LENGTH, tiny_entailment_model
from transformers import DebertaV2ForSequenceClassification, PreTrainedTokenizerFast

from persistcal.answers.entailment import EntailmentModel, entailment_index
from persistcal.answers.equivalence import MutualEntailment, Pair, group_answers
from persistcal.store import artifacts

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("nli") / "tiny" / "v1"
    tiny_entailment_model(path)
    torch.set_num_threads(1)
    return path


@pytest.fixture(scope="module")
def model(folder):
    return EntailmentModel(str(folder), batch_size=4, device="cpu")


ANSWERS = ["Norway", "norway.", "Sweden", "the kingdom of Norway", "Oslo", "of", "in Norway"]
PAIRS = [Pair("Which country is Oslo in?", *p) for p in itertools.permutations(ANSWERS, 2)]


@torch.no_grad()
def test_logits_equal_those_of_transformers_pair_by_pair(folder, model):
    """Pairs on their own have no padding."""
    tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
    network = DebertaV2ForSequenceClassification.from_pretrained(folder).eval()
    texts = [(f"Question: {p.question}\nAnswer: {p.one}", f"Answer: {p.other}") for p in PAIRS]
    expected = [
        network(**tokenizer(*pair, return_tensors="pt")).logits[0].numpy() for pair in texts
    ]
    np.testing.assert_allclose(model.logits(PAIRS), expected, atol=1e-4)
    is_entailed = [list(ID2LABEL.values())[row.argmax()] == "entailment" for row in expected]
    assert model(PAIRS) == is_entailed
    assert 0 < sum(is_entailed) < len(is_entailed)
    assert model([]) == []


def test_the_class_of_entailment_is_found_by_its_name(tmp_path, folder, model):
    tiny_entailment_model(tmp_path, {0: "ENTAILMENT", 1: "neutral", 2: "contradiction"})
    renamed = EntailmentModel(str(tmp_path), batch_size=4, device="cpu")
    # the same weights with another name of the first class
    assert renamed(PAIRS) == (model.logits(PAIRS).argmax(axis=1) == 0).tolist()
    assert renamed(PAIRS) != model(PAIRS)
    assert entailment_index({0: "not_entailment", 1: "entailment"}, "m") == 1


@pytest.mark.parametrize("labels", [["LABEL_0", "LABEL_1"], ["entailment", "Entailment"]])
def test_a_model_without_a_class_named_entailment_is_refused(labels):
    with pytest.raises(ValueError, match=r"m has the classes .*choose a natural-language"):
        entailment_index(dict(enumerate(labels)), "m")


def n_tokens(folder, texts):
    return len(PreTrainedTokenizerFast.from_pretrained(folder)(*texts)["input_ids"])


def test_a_long_question_is_cut_before_the_answers(folder, model):
    question = "Which country is Oslo in? " * 30
    premise, hypothesis = model.texts(Pair(question, "Norway", "the kingdom of Norway"))
    remaining_question = premise.removeprefix("Question: ").removesuffix("\nAnswer: Norway")
    assert question.startswith(remaining_question)
    assert len(remaining_question) > 20
    assert hypothesis == "Answer: the kingdom of Norway"
    assert model.texts(Pair("?", "a", "b")) == ("Question: ?\nAnswer: a", "Answer: b")
    # The text has the maximum length; word boundaries can cost some tokens.
    assert MAX_LENGTH - 6 <= n_tokens(folder, (premise, hypothesis)) <= MAX_LENGTH


def test_long_answers_keep_their_beginnings(folder, model):
    premise, hypothesis = model.texts(Pair("Which?", "Norway " * 40, "Sweden " * 40))
    assert "\nAnswer: Norway Norway" in premise
    assert hypothesis.startswith("Answer: Sweden Sweden")
    assert n_tokens(folder, (premise, hypothesis)) <= MAX_LENGTH
    pairs = [Pair("Which?", "Norway " * 40, answer * 40) for answer in ("Sweden ", "Oslo ")]
    assert not np.allclose(*model.logits(pairs))


def test_logits_that_overflow_float16_are_computed_in_float32(folder, caplog):
    model = EntailmentModel(str(folder), batch_size=4, device="cpu")
    model._model.half()
    model._model[0].model.classifier.weight.data *= 1e4
    wide = copy.deepcopy(model)
    wide._model.float()
    expected = wide.logits(PAIRS)
    assert np.abs(expected).max() > torch.finfo(torch.float16).max
    assert "overflows" not in caplog.text
    np.testing.assert_array_equal(model.logits(PAIRS), expected)
    assert "overflows" in caplog.text


@pytest.fixture
def study(tmp_path, folder):
    """Write questions, beams, and the record of the model."""
    asked = [f"Which country is Oslo {n} in?" for n in range(6)]
    questions = questions_table(0, 6).assign(question=asked)
    path = tmp_path / "questions.parquet"
    artifacts.write(questions, path, artifacts.QUESTIONS, values=ABOUT)
    draw = np.random.default_rng(17)
    rows = [
        (f"q{n}", beam, f" {text} ", float(-beam - draw.random()), 2)
        for n in range(6)
        for beam, text in enumerate(draw.choice([*ANSWERS, ""], size=6))
    ]
    names = artifacts.BEAMS.schema.names
    beams = pd.DataFrame(rows, columns=names[:5]).reindex(columns=names)
    artifacts.write(beams, tmp_path / "beams.parquet", artifacts.BEAMS, values=ABOUT)
    record = tmp_path / "entailment" / "model.json"
    record.parent.mkdir()
    fetch_entailment_model(repo=str(folder.parent), revision="v1").write(record)
    return tmp_path


NLI = {"backend": "nli", "model": "unused", "revision": "unused", "batch_size": 4}


def cluster(study, out, **settings):
    path = study / out / "quiz.parquet"
    tables = study / "questions.parquet", study / "beams.parquet", path
    record = study / "entailment" / "model.json"
    clusters_job(*tables, record, equivalence=NLI | settings, dataset="quiz")
    return artifacts.read(path, artifacts.CLUSTERS)


def test_the_rule_groups_answers_by_the_model(study, model):
    clusters = cluster(study, "clusters")
    beams = artifacts.read(study / "beams.parquet", artifacts.BEAMS)
    n_merged = 0

    for number, (name, rows) in enumerate(beams.groupby("question_id")):
        texts = [text for text in dict.fromkeys(rows["text"].str.strip()) if text]
        asked = [(f"Which country is Oslo {number} in?", texts)]
        [groups] = group_answers(asked, MutualEntailment(model))
        clusters_found = clusters[clusters["question_id"] == name]["members"]
        assert {frozenset(members) for members in clusters_found} == {
            frozenset(
                text
                for text, number_of_text in zip(texts, groups, strict=True)
                if number_of_text == number_of_group
            )
            for number_of_group in groups
        }
        n_merged += sum(
            len({m.lower().rstrip(".") for m in members}) > 1 for members in clusters_found
        )
    assert n_merged > 0


def test_replies_are_cached_per_model_and_precision(study, tmp_path):
    first = cluster(study, "clusters")
    repeated = cluster(study, "again", dtype="float32")  # from the cache
    pd.testing.assert_frame_equal(repeated, first)
    cluster(study, "rounded", dtype="bfloat16")
    tiny_entailment_model(tmp_path / "repo" / "v2", seed=1)
    record = study / "entailment" / "model.json"
    fetch_entailment_model(repo=str(tmp_path / "repo"), revision="v2").write(record)
    cluster(study, "other")
    folders = [path for path in record.parent.iterdir() if path.is_dir()]
    assert len(folders) == 3
    assert all(len(list((path / "quiz").glob("*.parquet"))) == 1 for path in folders)


def test_a_model_without_named_classes_is_not_fetched(tmp_path):
    tiny_entailment_model(tmp_path / "repo" / "v1", {0: "LABEL_0", 1: "LABEL_1"})
    with pytest.raises(ValueError, match=r"repo \(v1\) has the classes LABEL_0, LABEL_1"):
        fetch_entailment_model(repo=str(tmp_path / "repo"), revision="v1")
