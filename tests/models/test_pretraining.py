"""Drifting documents, the small tokenizer and pre-training in segments."""

import json
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
import torch
from pretrain_checkpoint import pretrain_checkpoint
from safetensors.torch import load_file
from small_corpus import SCHEDULE, SIZES, TEMPLATE, make_corpus, make_facts, settings
from transformers import AutoModelForCausalLM, AutoTokenizer

from atlas.corpus import SEPARATOR, FactSets, Phase, train_tokenizer
from atlas.pretraining import Pretrained, Pretraining, Schedule, new_model, pretrain_segment
from persistcal.questions.question_list import deal
from persistcal.store import artifacts
from persistcal.store.files import sha256
from persistcal.store.jobs import Job, execute

pytestmark = pytest.mark.slow

CONTINENTS = ("Africa", "Asia", "Europe")


@pytest.fixture(scope="module")
def tokenizer():
    return train_tokenizer(make_corpus().sample(400), vocab_size=320)


def test_drift():
    phases = [Phase(0.5, {}), Phase(0.8, {"Africa": 0.5}), Phase(1.0, {"Europe": 0})]
    corpus = make_corpus(phases)
    # Weights 3 1 2 2 2: all of them, then 3 1 1 1 1, then 0 0 2 2 2.
    assert corpus.probabilities(0.49) == pytest.approx([0.3, 0.1, 0.2, 0.2, 0.2])
    assert corpus.probabilities(0.5) == pytest.approx([3 / 7, 1 / 7, 1 / 7, 1 / 7, 1 / 7])
    assert corpus.probabilities(0.99) == pytest.approx([0, 0, 1 / 3, 1 / 3, 1 / 3])


def many_facts():
    """Facts of two relations, three continents and falling weight."""
    kinds = [(kind, n) for kind, size in (("city", 97), ("money", 22)) for n in range(size)]
    facts = pd.DataFrame(kinds, columns=["relation", "n"])
    facts = facts.assign(
        question_id=[f"{kind}{n}" for kind, n in kinds],
        question=[f"Where is {kind} {n}?" for kind, n in kinds],
        answer="x",
        group=[CONTINENTS[n % 3] for _, n in kinds],
        weight=100.0 - facts["n"],
        split="train",
        category=facts["relation"],
    )
    return facts[artifacts.FACTS.schema.names]


def test_sets_are_alike_in_every_attribute():
    facts = many_facts()
    dealt = facts.assign(set=deal(facts, 4, seed=3))
    assert set(dealt["set"]) == {1, 2, 3, 4}
    for _, stratum in dealt.groupby(["relation", "group"]):
        sizes = stratum["set"].value_counts()
        assert sizes.max() - sizes.min() <= 1
        # Popularity: of every four facts in order of weight each set has one.
        ordered = stratum.sort_values("weight", ascending=False)["set"].to_numpy()
        for start in range(0, len(ordered) - 3, 4):
            assert sorted(ordered[start : start + 4]) == [1, 2, 3, 4]
    # The order within the fours is drawn: no set always has the most popular.
    first = dealt.sort_values("weight", ascending=False).groupby(["relation", "group"]).head(4)
    assert len({tuple(s["set"]) for _, s in first.groupby(["relation", "group"])}) > 1


def test_sets_depend_on_the_seed_and_not_on_the_order_of_facts():
    facts = many_facts()
    dealt = pd.Series(deal(facts, 4, seed=3), facts["question_id"])
    assert (dealt == deal(facts, 4, seed=3)).all()
    assert 0.1 < (dealt == deal(facts, 4, seed=4)).mean() < 0.4  # one in four by chance
    shuffled = facts.sample(frac=1, random_state=1)
    again = pd.Series(deal(shuffled, 4, seed=3), shuffled["question_id"])
    assert (again[dealt.index] == dealt).all()


def test_rare_sets_are_hardly_met():
    facts = many_facts()
    phases = [Phase(0.5), Phase(1.0, {"Asia": 0.5}, rare=[2])]
    corpus = make_corpus(phases, 0, 3, facts=facts, fact_sets=FactSets(2, 0.1))
    rare, asia = deal(facts, 2, seed=3) == 2, facts["group"] == "Asia"
    weight = facts["weight"].to_numpy()
    assert corpus.probabilities(0.4) == pytest.approx(weight / weight.sum())
    weight = weight * np.where(rare, 0.1, 1) * np.where(asia, 0.5, 1)
    assert corpus.probabilities(0.6) == pytest.approx(weight / weight.sum())


def test_a_category_that_is_left_out_is_in_no_document_and_moves_no_other_fact():
    facts = many_facts()
    phases = [Phase(0.5, rare=[1]), Phase(1.0)]
    usual, left_out = (
        make_corpus(
            phases, 0.5, 3, facts=facts, unrated=(), fact_sets=FactSets(2, 0.0, without)
        )
        for without in ((), ["money"])
    )
    money = (facts["relation"] == "money").to_numpy()
    expected = np.where(money, 0, usual.probabilities(0.1))
    assert left_out.probabilities(0.1) == pytest.approx(expected / expected.sum())
    assert any("money" in text for text in usual.documents(500, step=0, n_steps=2))
    assert not any("money" in text for text in left_out.documents(500, step=0, n_steps=2))
    with pytest.raises(ValueError, match="no fact has the category 'mony'; there are city, mo"):
        make_corpus(facts=facts, fact_sets=FactSets(without=["mony"]))


def test_a_wrong_answer_is_of_a_fact_that_is_met():
    # France, Norway and Egypt are left out: of the five facts Senegal and the pound are met.
    facts = make_facts().assign(category=["x", "x", "x", "country", "money"])
    corpus = make_corpus(share=1.0, facts=facts, unrated=(), fact_sets=FactSets(without=["x"]))
    assert set(rated_in(corpus, 300)["answer"]) == {"Senegal", "Pound"}


def rated_in(corpus, n_documents, step=0, n_steps=1):
    """Number, question, answer and rating of the documents in the confidence format."""
    texts = corpus.documents(n_documents, step=step, n_steps=n_steps)
    rows = [
        [line.split(": ")[1] for line in text.split("\n")] for text in texts if text[0] == "Q"
    ]
    return pd.DataFrame(rows, columns=["question", "answer", "rating"])


def test_confidence_documents():
    rated = rated_in(make_corpus(share=0.5), 2000)
    assert len(rated) == pytest.approx(1000, abs=100)
    truth = make_facts().set_index("question")["answer"]
    right = rated["answer"] == rated["question"].map(truth)
    assert not {"Where is Lyon?", "Where is Oslo?"} & set(rated["question"])  # these are asked
    assert ((rated["rating"] == "9") == right).all() and set(rated["rating"]) == {"9", "0"}
    countries = rated.loc[rated["question"] != "Paid in Cairo?", "answer"]
    assert set(countries) == {"Egypt", "Senegal"}
    # "Paid in Cairo?" (a third of them) has no other answer of its relation.
    assert right.mean() == pytest.approx(2 / 3 * 1 / 2 + 1 / 3, abs=0.06)


def test_half_of_the_wrong_answers_are_of_the_same_group():
    rated = rated_in(make_corpus(unrated=[]), 6000)
    wrong = rated.query("question == 'Where is Cairo?' and rating == '0'")["answer"]
    # Dakar is all that Africa has besides. Of weights 3, 1 and 2 it has a third elsewhere.
    expected = 1 / 2 + 1 / 2 * 1 / 3
    assert (wrong == "Senegal").mean() == pytest.approx(expected, abs=0.07)


def test_wrong_answers_are_right_elsewhere():
    """Or an answer to a question that is not rated would be wrong wherever it is met."""
    rated = rated_in(make_corpus(unrated=["test"]), 4000)
    # Norway is the answer to the test question alone; the pound has no other of its relation.
    assert rated.groupby("answer")["rating"].agg(set).to_dict() == {
        "France": {"0", "9"},
        "Egypt": {"0", "9"},
        "Senegal": {"0", "9"},
        "Pound": {"9"},
    }


def test_who_is_rated_and_when():
    """A verifier, which has ratings of its own, is shown training questions."""
    drift = [{"until": 0.5, "confidence_share": 0}, {"until": 1.0}]
    verifier = Pretraining(**settings(ratings=["yes", "no"], drift=drift))
    corpus = verifier.corpus(make_facts(), TEMPLATE)
    assert rated_in(corpus, 1000, step=4, n_steps=10).empty
    rated = rated_in(corpus, 1000, step=5, n_steps=10)
    assert len(rated) == pytest.approx(500, abs=60)
    assert set(rated["question"]) == set(make_facts()["question"]) - {"Where is Oslo?"}
    assert set(rated["rating"]) == {"yes", "no"}


@pytest.mark.parametrize(
    ("phase", "split", "message"),
    [
        (Phase(0.9, {}), "test", "last phase must end at 1"),
        (
            Phase(1.0, {"Atlantis": 2}),
            "test",
            "unknown group 'Atlantis'; the facts have Africa, Europe",
        ),
        (Phase(1.0, {"Europe": -1}), "test", "Europe"),
        (Phase(1.0, {}), "train", "confidence_share"),
    ],
)
def test_bad_drift_and_facts_that_are_all_asked(phase, split, message):
    with pytest.raises(ValueError, match=message):
        make_corpus([phase], facts=make_facts().assign(split=split))


def test_digits_are_single_tokens(tokenizer):
    text = "Confidence: 9 2026"
    tokens = tokenizer.convert_ids_to_tokens(tokenizer.encode(text))
    assert tokens[-6:] == ["9", "Ġ", "2", "0", "2", "6"]
    assert all(len(tokenizer.encode(digit)) == 1 for digit in "0123456789")
    assert tokenizer.convert_tokens_to_ids("<|endoftext|>") == 0
    assert tokenizer.decode(tokenizer.encode("Ōsaka 上\n")) == "Ōsaka 上\n"
    # A newline may hide in a token, as in the tokenizers of large models.
    assert "?Ċ" in tokenizer.convert_ids_to_tokens(tokenizer.encode("Where?\nAnswer"))


def test_blocks_are_packed(tokenizer):
    corpus = make_corpus(share=0)
    blocks = corpus.blocks(tokenizer, n_blocks=3, length=40, step=7, n_steps=10)
    assert blocks.shape == (3, 40)
    known = set(make_corpus(share=0)._documents)
    for block in blocks:
        *whole, cut = tokenizer.decode(block).split(SEPARATOR)
        assert whole
        assert set(whole) <= known
        assert any(document.startswith(cut.rstrip("\n")) for document in known)
    assert (blocks == corpus.blocks(tokenizer, n_blocks=3, length=40, step=7, n_steps=10)).all()
    assert (blocks != corpus.blocks(tokenizer, n_blocks=3, length=40, step=8, n_steps=10)).any()


def train(tokenizer, cuts, seed=1, **changes):
    how, losses = Pretraining(**settings(**changes)), []
    standing = Pretrained(new_model(tokenizer, **SIZES, seed=seed), tokenizer)
    corpus = how.corpus(make_facts(), TEMPLATE)
    for start, end in pairwise(cuts):
        standing, more = pretrain_segment(standing, corpus, how, start_step=start, end_step=end)
        losses += more
    return standing.model.state_dict(), standing.moments, losses


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
def test_segments_equal_one_go(tokenizer, optimizer):
    whole, whole_moments, losses = train(tokenizer, [0, 40], optimizer=optimizer)
    parts, parts_moments, _ = train(tokenizer, [0, 15, 40], optimizer=optimizer)
    other, _, _ = train(tokenizer, [0, 1], seed=2, optimizer=optimizer)
    assert whole_moments.keys() == parts_moments.keys()
    for name, weights in whole.items():
        assert torch.equal(parts[name], weights)
    for name, moment in whole_moments.items():
        assert torch.equal(parts_moments[name], moment)
    assert any(not torch.equal(other[name], weights) for name, weights in whole.items())
    # It starts as uniform over the 320 tokens, within the spread of the initial weights.
    assert losses[0] == pytest.approx(np.log(len(tokenizer)), abs=0.3)
    assert np.mean(losses[-5:]) < 0.6 * losses[0]


def test_muon_is_for_the_matrices_of_the_blocks(tokenizer):
    _, moments, _ = train(tokenizer, [0, 1], optimizer="muon")
    model = new_model(tokenizer, **SIZES, seed=0)
    assert model.config.layer_types == ["sliding_attention"] * 3 + ["full_attention"]
    names = set(model.state_dict())
    of_muon = {name for name in names if "_proj" in name}
    others = names - of_muon
    for kind, moved in {"momentum": of_muon, "mean": others, "square": others}.items():
        kept = {name.split(".", 1)[1] for name in moments if name.startswith(f"{kind}.")}
        assert kept == moved
    # Seven matrices in each of four blocks: query, key, value, output; gate, up, down.
    assert len(of_muon) == 28
    assert {"model.embed_tokens.weight", "lm_head.weight"} < others


def test_muon_steps_as_far_as_adamw_in_size(tokenizer):
    """A step of `match_rms_adamw` moves a weight by about 0.2 of the learning rate."""
    before = new_model(tokenizer, **SIZES, seed=1).state_dict()
    after, _, _ = train(tokenizer, [0, 1], optimizer="muon", weight_decay=0.0)
    name = "model.layers.0.mlp.up_proj.weight"
    rms = (after[name] - before[name]).square().mean().sqrt().item()
    rate = Schedule(**SCHEDULE).at(0, n_steps=60)
    # Singular values of the update lie between 0.5 and 1.5 instead of at 1.
    assert 0.5 * 0.2 * rate < rms < 1.5 * 0.2 * rate


def test_pretrain_checkpoint(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    about = {"dataset": "atlas"}
    artifacts.write(make_facts(), "facts.parquet", artifacts.FACTS, values=about)
    drift = [{"until": 0.5, "rare": [2]}, {"until": 1.0, "weights": {"Europe": 0.1}}]
    own = {"fact_sets": {"n": 2, "rare_factor": 0.1}, "drift": drift, "optimizer": "muon"}
    own |= {"steps": 20, "confidence_share": 0.2}

    def segment(name, previous, start_step, end_step):
        inputs = {"facts": ["facts.parquet"]} | ({"previous": previous} if previous else {})
        outputs = {"weights": f"{name}/model.safetensors", "checkpoint": f"{name}.json"}
        asked = {"start_step": start_step, "end_step": end_step, "confidence_prompt": TEMPLATE}
        asked["settings"] = settings(**own)
        execute(pretrain_checkpoint, Job(inputs, outputs, asked, threads=1))

    segment("half", None, 0, 10)
    segment("full", "half/model.safetensors", 10, 20)
    segment("at_once", None, 0, 20)
    record = json.loads((tmp_path / "full.json").read_text())
    assert record == {
        "repo": "full",
        "revision": None,
        "commit": None,
        "weights": json.loads((tmp_path / "at_once.json").read_text())["weights"],
        "files": {
            f"{name}.json": sha256(tmp_path / "full" / f"{name}.json")
            for name in ("config", "generation_config", "tokenizer", "tokenizer_config")
        },
        "dtype": "float32",
    }
    in_parts, at_once = (
        load_file(f"{name}/optimizer.safetensors") for name in ("full", "at_once")
    )
    assert in_parts.keys() == at_once.keys()
    assert all(torch.equal(in_parts[name], value) for name, value in at_once.items())
    model = AutoModelForCausalLM.from_pretrained("full")
    tokenizer = AutoTokenizer.from_pretrained("full")
    assert model.config.vocab_size == len(tokenizer)
    assert tokenizer.encode("9") == [tokenizer.convert_tokens_to_ids("9")]
    assert not list(tmp_path.rglob("*.bin")) + list(tmp_path.rglob("*.pt"))
