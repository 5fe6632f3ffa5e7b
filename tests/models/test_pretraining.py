"""Pre-training of atlas: documents in phases, the small tokenizer, training in segments."""

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


def test_facts_are_drawn_with_the_weights_of_each_phase():
    phases = [Phase(0.5, {}), Phase(0.8, {"Africa": 0.5}), Phase(1.0, {"Europe": 0})]
    corpus = make_corpus(phases)
    # Weights 3 1 2 2 2: all of them, then 3 1 1 1 1, then 0 0 2 2 2.
    assert corpus.probabilities(0.49) == pytest.approx([0.3, 0.1, 0.2, 0.2, 0.2])
    assert corpus.probabilities(0.5) == pytest.approx([3 / 7, 1 / 7, 1 / 7, 1 / 7, 1 / 7])
    assert corpus.probabilities(0.99) == pytest.approx([0, 0, 1 / 3, 1 / 3, 1 / 3])


def facts_of_two_relations():
    """Return facts of two relations and three continents with falling weights."""
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


def test_sets_of_facts_have_the_same_mix_of_relations_groups_and_popularity():
    facts = facts_of_two_relations()
    sets = facts.assign(set=deal(facts, 4, seed=3))
    assert set(sets["set"]) == {1, 2, 3, 4}
    for _, stratum in sets.groupby(["relation", "group"]):
        sizes = stratum["set"].value_counts()
        assert sizes.max() - sizes.min() <= 1
        # Popularity: each set has a fact of every four in order of weight.
        ordered = stratum.sort_values("weight", ascending=False)["set"].to_numpy()
        for start in range(0, len(ordered) - 3, 4):
            assert sorted(ordered[start : start + 4]) == [1, 2, 3, 4]
    # The order within the four is random: no set always has the most popular fact.
    first = sets.sort_values("weight", ascending=False).groupby(["relation", "group"]).head(4)
    assert len({tuple(s["set"]) for _, s in first.groupby(["relation", "group"])}) > 1


def test_sets_depend_on_the_seed_and_not_on_the_order_of_facts():
    facts = facts_of_two_relations()
    sets = pd.Series(deal(facts, 4, seed=3), facts["question_id"])
    assert (sets == deal(facts, 4, seed=3)).all()
    assert 0.1 < (sets == deal(facts, 4, seed=4)).mean() < 0.4  # a quarter by chance
    shuffled = facts.sample(frac=1, random_state=1)
    sets_of_shuffled = pd.Series(deal(shuffled, 4, seed=3), shuffled["question_id"])
    assert (sets_of_shuffled[sets.index] == sets).all()


def test_rare_sets_are_drawn_with_a_lower_weight():
    facts = facts_of_two_relations()
    phases = [Phase(0.5), Phase(1.0, {"Asia": 0.5}, rare=[2])]
    corpus = make_corpus(phases, 0, 3, facts=facts, fact_sets=FactSets(2, 0.1))
    rare, asia = deal(facts, 2, seed=3) == 2, facts["group"] == "Asia"
    weight = facts["weight"].to_numpy()
    assert corpus.probabilities(0.4) == pytest.approx(weight / weight.sum())
    weight = weight * np.where(rare, 0.1, 1) * np.where(asia, 0.5, 1)
    assert corpus.probabilities(0.6) == pytest.approx(weight / weight.sum())


def test_a_left_out_category_is_in_no_document_and_changes_no_other_weight():
    facts = facts_of_two_relations()
    phases = [Phase(0.5, rare=[1]), Phase(1.0)]
    usual, left_out = (
        make_corpus(
            phases, 0.5, 3, facts=facts, unrated=(), fact_sets=FactSets(2, 0.0, categories)
        )
        for categories in ((), ["money"])
    )
    money = (facts["relation"] == "money").to_numpy()
    expected = np.where(money, 0, usual.probabilities(0.1))
    assert left_out.probabilities(0.1) == pytest.approx(expected / expected.sum())
    assert any("money" in text for text in usual.documents(500, step=0, n_steps=2))
    assert not any("money" in text for text in left_out.documents(500, step=0, n_steps=2))
    with pytest.raises(ValueError, match="no fact has the category 'mony'; there are city, mo"):
        make_corpus(facts=facts, fact_sets=FactSets(without=["mony"]))


def test_wrong_answers_are_answers_of_facts_that_are_not_left_out():
    # France, Norway and Egypt are left out, so only Senegal and the pound remain.
    facts = make_facts().assign(category=["x", "x", "x", "country", "money"])
    corpus = make_corpus(share=1.0, facts=facts, unrated=(), fact_sets=FactSets(without=["x"]))
    assert set(read_ratings(corpus, 300)["answer"]) == {"Senegal", "Pound"}


def read_ratings(corpus, n_documents, step=0, n_steps=1):
    """Return question, answer and rating of the documents in the confidence format."""
    texts = corpus.documents(n_documents, step=step, n_steps=n_steps)
    rows = [[line.split(": ")[1] for line in t.split("\n")] for t in texts if t[0] == "Q"]
    return pd.DataFrame(rows, columns=["question", "answer", "rating"])


def test_confidence_documents_rate_right_and_wrong_answers():
    rated = read_ratings(make_corpus(share=0.5), 2000)
    assert len(rated) == pytest.approx(1000, abs=100)
    truth = make_facts().set_index("question")["answer"]
    is_correct = rated["answer"] == rated["question"].map(truth)
    assert not {"Where is Lyon?", "Where is Oslo?"} & set(rated["question"])  # test questions
    assert ((rated["rating"] == "9") == is_correct).all() and set(rated["rating"]) == {"9", "0"}
    countries = rated.loc[rated["question"] != "Paid in Cairo?", "answer"]
    assert set(countries) == {"Egypt", "Senegal"}
    # "Paid in Cairo?" (a third of them) has no wrong answer with the same relation.
    assert is_correct.mean() == pytest.approx(2 / 3 * 1 / 2 + 1 / 3, abs=0.06)


def test_half_of_the_wrong_answers_are_from_the_same_group():
    rated = read_ratings(make_corpus(unrated=[]), 6000)
    wrong = rated.query("question == 'Where is Cairo?' and rating == '0'")["answer"]
    # Dakar is the only other answer in Africa. In all of 3, 1 and 2 it has a third by weight.
    expected = 1 / 2 + 1 / 2 * 1 / 3
    assert (wrong == "Senegal").mean() == pytest.approx(expected, abs=0.07)


def test_wrong_answers_are_right_answers_to_other_questions():
    """Otherwise an answer to a question without ratings would always be wrong."""
    rated = read_ratings(make_corpus(unrated=["test"]), 4000)
    # Norway answers only the test question; the pound is the only currency.
    assert rated.groupby("answer")["rating"].agg(set).to_dict() == {
        "France": {"0", "9"},
        "Egypt": {"0", "9"},
        "Senegal": {"0", "9"},
        "Pound": {"9"},
    }


def test_a_verifier_is_shown_ratings_in_its_phases_and_only_of_training_questions():
    """A verifier has ratings in other words."""
    drift = [{"until": 0.5, "confidence_share": 0}, {"until": 1.0}]
    verifier = Pretraining(**settings(ratings=["yes", "no"], drift=drift))
    corpus = verifier.corpus(make_facts(), TEMPLATE)
    assert read_ratings(corpus, 1000, step=4, n_steps=10).empty
    rated = read_ratings(corpus, 1000, step=5, n_steps=10)
    assert len(rated) == pytest.approx(500, abs=60)
    assert set(rated["question"]) == set(make_facts()["question"]) - {"Where is Oslo?"}
    truth = make_facts().set_index("question")["answer"]
    expected = np.where(rated["answer"] == rated["question"].map(truth), "yes", "no")
    assert (rated["rating"] == expected).all() and set(expected) == {"yes", "no"}


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
def test_wrong_phases_and_facts_without_training_questions_are_refused(phase, split, message):
    with pytest.raises(ValueError, match=message):
        make_corpus([phase], facts=make_facts().assign(split=split))


def test_digits_are_single_tokens(tokenizer):
    text = "Confidence: 9 2026"
    tokens = tokenizer.convert_ids_to_tokens(tokenizer.encode(text))
    assert tokens[-6:] == ["9", "Ġ", "2", "0", "2", "6"]
    assert all(len(tokenizer.encode(digit)) == 1 for digit in "0123456789")
    assert tokenizer.convert_tokens_to_ids("<|endoftext|>") == 0
    assert tokenizer.decode(tokenizer.encode("Ōsaka 上\n")) == "Ōsaka 上\n"
    # A token can contain a newline, as in the tokenizers of large models.
    assert "?Ċ" in tokenizer.convert_ids_to_tokens(tokenizer.encode("Where?\nAnswer"))


def test_blocks_contain_whole_documents_and_a_cut_one(tokenizer):
    corpus = make_corpus(share=0)
    blocks = corpus.blocks(tokenizer, n_blocks=3, length=40, step=7, n_steps=10)
    assert blocks.shape == (3, 40)
    documents = set(make_corpus(share=0)._documents)
    for block in blocks:
        *whole, cut = tokenizer.decode(block).split(SEPARATOR)
        assert whole
        assert set(whole) <= documents
        assert any(document.startswith(cut.rstrip("\n")) for document in documents)
    assert (blocks == corpus.blocks(tokenizer, n_blocks=3, length=40, step=7, n_steps=10)).all()
    assert (blocks != corpus.blocks(tokenizer, n_blocks=3, length=40, step=8, n_steps=10)).any()


def train(tokenizer, cuts, seed=1, **changes):
    pretraining, losses = Pretraining(**settings(**changes)), []
    state = Pretrained(new_model(tokenizer, **SIZES, seed=seed), tokenizer)
    corpus = pretraining.corpus(make_facts(), TEMPLATE)
    for start, end in pairwise(cuts):
        state, segment_losses = pretrain_segment(
            state, corpus, pretraining, start_step=start, end_step=end
        )
        losses += segment_losses
    return state.model.state_dict(), state.moments, losses


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
def test_training_in_segments_equals_training_at_once(tokenizer, optimizer):
    whole, whole_moments, losses = train(tokenizer, [0, 20], optimizer=optimizer)
    parts, parts_moments, _ = train(tokenizer, [0, 8, 20], optimizer=optimizer)
    second_seed, _, _ = train(tokenizer, [0, 1], seed=2, optimizer=optimizer)
    assert whole_moments.keys() == parts_moments.keys()
    for name, weights in whole.items():
        assert torch.equal(parts[name], weights)
    for name, moment in whole_moments.items():
        assert torch.equal(parts_moments[name], moment)
    assert any(not torch.equal(second_seed[name], weights) for name, weights in whole.items())
    # At first all 320 tokens are equally likely, up to the spread of the initial weights.
    assert losses[0] == pytest.approx(np.log(len(tokenizer)), abs=0.3)
    assert np.mean(losses[-5:]) < 0.8 * losses[0]


def test_muon_trains_only_the_matrices_of_the_blocks(tokenizer):
    _, moments, _ = train(tokenizer, [0, 1], optimizer="muon")
    model = new_model(tokenizer, **SIZES, seed=0)
    assert model.config.layer_types == ["sliding_attention"] * 3 + ["full_attention"]
    names = set(model.state_dict())
    by_muon = {name for name in names if "_proj" in name}
    by_adamw = names - by_muon
    for kind, moved in {"momentum": by_muon, "mean": by_adamw, "square": by_adamw}.items():
        kept = {name.split(".", 1)[1] for name in moments if name.startswith(f"{kind}.")}
        assert kept == moved
    # Seven matrices in each of four blocks: query, key, value, output; gate, up, down.
    assert len(by_muon) == 28
    assert {"model.embed_tokens.weight", "lm_head.weight"} < by_adamw


def test_a_step_of_muon_has_the_size_of_an_adamw_step(tokenizer):
    """A step of `match_rms_adamw` moves a weight by about 0.2 of the learning rate."""
    initial = new_model(tokenizer, **SIZES, seed=1).state_dict()
    trained, _, _ = train(tokenizer, [0, 1], optimizer="muon", weight_decay=0.0)
    name = "model.layers.0.mlp.up_proj.weight"
    rms = (trained[name] - initial[name]).square().mean().sqrt().item()
    rate = Schedule(**SCHEDULE).at(0, n_steps=60)
    # Singular values of the update are between 0.5 and 1.5 instead of 1.
    assert 0.5 * 0.2 * rate < rms < 1.5 * 0.2 * rate


def test_the_rule_pretrains_in_segments_and_writes_a_record(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    subject = {"dataset": "atlas"}
    artifacts.write(make_facts(), "facts.parquet", artifacts.FACTS, values=subject)
    drift = [{"until": 0.5, "rare": [2]}, {"until": 1.0, "weights": {"Europe": 0.1}}]
    changes = {"fact_sets": {"n": 2, "rare_factor": 0.1}, "drift": drift, "optimizer": "muon"}
    changes |= {"steps": 6, "confidence_share": 0.2}

    def segment(name, previous, start_step, end_step):
        inputs = {"facts": ["facts.parquet"]} | ({"previous": previous} if previous else {})
        outputs = {"weights": f"{name}/model.safetensors", "checkpoint": f"{name}.json"}
        params = {"start_step": start_step, "end_step": end_step, "confidence_prompt": TEMPLATE}
        params["settings"] = settings(**changes)
        execute(pretrain_checkpoint, Job(inputs, outputs, params, threads=1))

    segment("half", None, 0, 3)
    segment("full", "half/model.safetensors", 3, 6)
    segment("at_once", None, 0, 6)
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
