"""Confidences of a verifier model, its prompts and its adapter."""

import numpy as np
import pytest
import torch
from answer_tables import clusters_table, questions_table
from estimation import of_each
from fetch_adapter import fetch_adapter
from peft import LoraConfig, PeftModel, get_peft_model
from records import resolve, write_record
from score_with_verifier import score_with_verifier
from tiny_models import CHAT, logits_alone, tiny_model, tiny_tokenizer
from tokenizers.processors import TemplateProcessing
from transformers import LlamaForCausalLM

from persistcal.confidence.verbalised import (
    VerifierPrompt,
    word_probability,
    word_token,
)
from persistcal.models.checkpoint import Checkpoint
from persistcal.store.jobs import Job, execute

torch.set_num_threads(1)

TEMPLATE = "Q: {question} A: {answer} Correct:"
PLAIN, ASKED = (VerifierPrompt(TEMPLATE, is_chat, "yes") for is_chat in (False, True))


def tokenizer_with_words():
    return tiny_tokenizer("yes yes no no" * 50, vocab_size=300)


def test_a_verifier_gets_plain_text_or_a_chat_without_thinking():
    tokenizer = tiny_tokenizer()
    ids = PLAIN.token_ids(tokenizer, "Where is {answer}?", "Rome")
    assert tokenizer.decode(ids) == "Q: Where is {answer}? A: Rome Correct:"
    with pytest.raises(ValueError, match="no chat template; set the verifier's chat_template"):
        ASKED.token_ids(tokenizer, "Where?", "Rome")
    tokenizer.chat_template = CHAT
    ids = ASKED.token_ids(tokenizer, "Where?", "Rome")
    expected = "<user>Q: Where? A: Rome Correct:</><assistant><think></think>"
    assert tokenizer.decode(ids) == expected


def test_the_verifiers_word_must_be_one_token():
    tokenizer = tokenizer_with_words()
    assert tokenizer.decode([word_token(tokenizer, "yes")]) == "yes"
    assert word_token(tokenizer, " yes") != word_token(tokenizer, "yes")
    with pytest.raises(ValueError, match="splits the word 'maybe' into"):
        word_token(tokenizer, "maybe")
    yes = word_token(tokenizer, "yes")
    begins = TemplateProcessing(single="yes $A", special_tokens=[("yes", yes)])
    tokenizer.backend_tokenizer.post_processor = begins
    assert tokenizer("yes")["input_ids"] == [yes, yes] and word_token(tokenizer, "yes") == yes


@pytest.mark.parametrize(
    ("kind", "batch_size"),
    [("olmo3", 3), ("llama", 100), ("granite", 3)],  # Granite divides its logits
)
def test_word_probabilities_equal_single_prompts(kind, batch_size):
    model, tokenizer = tiny_model(kind), tiny_tokenizer()
    prompts = [
        PLAIN.token_ids(tokenizer, question, answer)
        for question in questions_table()["question"]
        for answer in ("Norway", "Peru, South America")
    ]
    assert len({len(prompt) for prompt in prompts}) > 2
    token = tokenizer.encode("y")[0]
    logits = logits_alone(model, prompts).double().cpu().numpy()
    assert logits.shape == (len(prompts), 300)
    expected = np.exp(logits[:, token]) / np.exp(logits).sum(1)
    probability = word_probability(model, prompts, token, batch_size=batch_size)
    np.testing.assert_allclose(probability, expected, rtol=1e-4)
    assert np.std(np.log(probability)) > 0.1


def test_a_model_that_ignores_the_attention_mask_is_refused(monkeypatch):
    model, forward = tiny_model("llama"), LlamaForCausalLM.forward

    def without_mask(self, input_ids, attention_mask=None, **settings):
        return forward(self, input_ids, **settings)

    monkeypatch.setattr(LlamaForCausalLM, "forward", without_mask)
    with pytest.raises(ValueError, match=r"LlamaForCausalLM computes .* not supported"):
        word_probability(model, [[1, 2, 3, 4], [1, 2, 5]], 7, batch_size=3)


@pytest.fixture
def study(tmp_path, monkeypatch):
    """A verifier with an adapter."""
    monkeypatch.chdir(tmp_path)
    tokenizer = tokenizer_with_words()
    tokenizer.chat_template = CHAT
    tokenizer.save_pretrained("verifier")
    model = tiny_model("llama", seed=3)
    model.save_pretrained("verifier")
    torch.manual_seed(4)
    config = LoraConfig(r=4, target_modules="all-linear", init_lora_weights=False)
    get_peft_model(model, config).save_pretrained("adapters/main")
    write_record("verifier", "verifier.json")
    resolve("revision.json", "adapter.json", "adapters")
    files = {"revision": "revision.json"}, {"adapter": "adapter.json"}
    execute(fetch_adapter, Job(*files, {}, threads=1))
    return tmp_path


def verify(*names, adapter="adapter.json"):
    """Return confidences in the test answers. Checkpoint "late" answers q23 differently."""
    clusters = of_each({name: clusters_table(("Norway", "Peru")) for name in names})
    last = (clusters["question_id"] == "q23") & (clusters["cluster"] == 0)
    clusters.loc[last & (clusters["checkpoint"] == "late"), "answer"] = "Chad"
    return score_with_verifier(
        Checkpoint.read("verifier.json"),
        questions_table(),
        clusters,
        adapter and Checkpoint.read(adapter),
        splits=dict.fromkeys(names, "test"),
        asked=ASKED,
        batch_size=4,
    )


def test_a_verifier_rates_each_distinct_answer_once_through_its_adapter(study, monkeypatch):
    """The expected value is the softmax over the whole vocabulary for a single prompt."""
    batches = []

    def counted(model, prompts, *arguments, **settings):
        batches.append(len(prompts))
        return word_probability(model, prompts, *arguments, **settings)

    monkeypatch.setattr("score_with_verifier.verbalised.word_probability", counted)
    verified = verify("early", "late")
    assert batches == [6]  # five questions have an answer, and one has two
    tokenizer = tokenizer_with_words()
    model = PeftModel.from_pretrained(tiny_model("llama", seed=3), "adapters/main").eval()
    question = dict(questions_table()[["question_id", "question"]].values)
    prompts = []
    for row in verified.itertuples():
        chad = (row.checkpoint, row.question_id) == ("late", "q23")
        fields = {"question": question[row.question_id], "answer": "Chad" if chad else "Norway"}
        text = f"<user>{TEMPLATE.format(**fields)}</><assistant><think></think>"
        prompts.append(tokenizer(text)["input_ids"])
    expected = logits_alone(model, prompts).softmax(-1)[:, tokenizer.encode("yes")[0]]
    assert verified["confidence"].tolist() == pytest.approx(expected.tolist(), rel=1e-3)
    assert len(verified) == 10
    plain = verify("early", adapter=None)
    assert abs(np.log(plain["confidence"] / verified["confidence"][:5])).max() > 0.01
