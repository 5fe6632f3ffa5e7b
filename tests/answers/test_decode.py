"""Beam search against transformers' `generate`, prompt by prompt."""

import inspect
import re

import numpy as np
import pytest
import torch
from answer_tables import questions_table
from jobs import ABOUT, beams_job
from like_generate import assert_decodes_like_generate, assert_same_beams, one_by_one
from records import write_record
from tiny_models import byte_level
from tokenizers import Tokenizer, pre_tokenizers
from tokenizers.processors import TemplateProcessing
from transformers import (
    AutoModelForCausalLM,
    BartConfig,
    FalconConfig,
    Gemma2Config,
    GenerationMixin,
    GptOssConfig,
    LlamaConfig,
    LlamaForCausalLM,
    MambaConfig,
    Olmo3Config,
    Olmo3ForCausalLM,
    PreTrainedTokenizerFast,
    Qwen3Config,
    Qwen3ForCausalLM,
    StopStringCriteria,
)

from persistcal.answers import decode, queue
from persistcal.answers.continuations import BeamSearch
from persistcal.answers.decode import Beam, Draw, Search, ending_tokens, generate_beams
from persistcal.answers.slots import Slots, check_model
from persistcal.models import load
from persistcal.models.load import pick_device
from persistcal.models.prompts import few_shot_prefix, question_suffix
from persistcal.store import artifacts

pytestmark = pytest.mark.slow

torch.set_num_threads(1)

PREFIX = few_shot_prefix(
    [
        ("Capital of Peru?", "Lima"),
        ("Wie heißt {er}?", "Ödön"),
        ("Sea near Oslo?", "North Sea."),
    ]
)
SUFFIXES = [
    question_suffix(question)
    for question in [
        "Capital of Chad?",
        "Who?",
        "Which of the rivers that flow through the capital of Peru is the longest one, "
        "counted from where it is first called by its present name. And in which sea?",
        "Sea near Lima?",
        "Who is Ödön, and what is he called in Oslo",
        "Capital of Mali. Not of Peru?",
        "Which river flows through Oslo?",
        "日本?",
    ]
]


@pytest.fixture(scope="module")
def tokenizer():
    """Byte-level BPE with many tokens that join a newline and other characters."""
    parts = pre_tokenizers.Split(pattern="\x00", behavior="isolated")
    whole = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    lines = ["a.\n", "b.\n\n", " \n", "?\n", "\n\n\n", ".\n\nx", "\nPro", "o\n"]
    text = [PREFIX.replace("\n", ending) for ending in lines] + [line * 20 for line in lines]
    special = {"eos_token": "<|end|>", "bos_token": "<|begin|>", "pad_token": "<|pad|>"}
    words = pre_tokenizers.Sequence([parts, whole])
    bpe = byte_level(text, 360, [*special.values()], words)
    return PreTrainedTokenizerFast(tokenizer_object=bpe, **special)


SIZES = {
    **{"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 4},
    **{"num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 512},
    "initializer_range": 0.3,  # logits far apart, so that no two beams have equal scores
    "eos_token_id": 0,
    "bos_token_id": 1,
    "pad_token_id": 2,
    "tie_word_embeddings": False,
}
WINDOW = ["sliding_attention"] * 2 + ["full_attention"] + ["sliding_attention"]


def random_model(kind, vocab_size):
    """Return a random model of an architecture; a number is the window of an Olmo-3."""
    torch.manual_seed(7)
    sizes = SIZES | {"vocab_size": vocab_size + 3}  # ids that the tokenizer lacks
    if kind == "llama":
        model = LlamaForCausalLM(LlamaConfig(**sizes))
    elif kind == "qwen3":
        model = Qwen3ForCausalLM(Qwen3Config(**sizes, head_dim=16))
    else:
        config = Olmo3Config(**sizes, sliding_window=kind, layer_types=WINDOW)
        model = Olmo3ForCausalLM(config)
    return model.to(pick_device()).eval()


@pytest.mark.parametrize("kind", [7, 40, "llama", "qwen3"])
def test_beams_equal_those_of_generate(kind, tokenizer):
    model = random_model(kind, len(tokenizer))
    sizes = {"batch_sizes": (1, 3, 8), "max_new_tokens": 12}
    assert_decodes_like_generate(model, tokenizer, PREFIX, SUFFIXES, **sizes)


def test_first_token_scores_in_bfloat16_equal_a_plain_forward_pass(tokenizer):
    model = random_model(7, len(tokenizer)).to(torch.bfloat16)
    answers = generate_beams(model, tokenizer, PREFIX, SUFFIXES, Search(max_new_tokens=1))
    for suffix, beams in zip(SUFFIXES, answers, strict=True):
        ids = tokenizer(PREFIX + suffix, return_tensors="pt").to(model.device)["input_ids"]
        expected = model(ids).logits[0, -1].float().log_softmax(0).topk(10)[0]
        # Logits up to 6 have steps of 2**-6 in bfloat16; errors are a few steps.
        logprobs = [beam.logprob for beam in beams]
        np.testing.assert_allclose(logprobs, expected.tolist(), atol=0.15)


def boost(model, tokens, log_factor):
    """Make `tokens` about exp(`log_factor`) times as likely in any context."""
    if not model.model.norm._forward_hooks:
        # With a constant last hidden unit, its output weights act as a bias.
        model.model.norm.register_forward_hook(
            lambda module, _, out: torch.cat([out[..., :-1], torch.ones_like(out[..., :1])], 2)
        )
        torch.nn.init.zeros_(model.lm_head.weight[:, -1])
    with torch.no_grad():
        model.lm_head.weight[tokens, -1] = log_factor
    return model


def test_the_number_of_end_tokens_changes_the_beams_as_in_generate(tokenizer):
    """The number of candidates depends on the number of end tokens."""
    model = random_model("llama", len(tokenizer))
    ending = ending_tokens(model, tokenizer, [0])
    assert ending.sum() > 20
    boost(model, ending, 2.5)
    arguments = model, tokenizer, PREFIX, SUFFIXES[:4]
    with_one_end = assert_decodes_like_generate(*arguments, max_new_tokens=15)
    model.generation_config.eos_token_id = [0, 1]
    with_two_ends = assert_decodes_like_generate(*arguments, max_new_tokens=15)
    assert [beam.text for beam in with_one_end[2]] != [beam.text for beam in with_two_ends[2]]


def log_probability(*probabilities):
    return torch.tensor([probabilities]).log()


def growing_tokens(search):
    """Return the tokens of the only question's live beams."""
    tokens = search.tokens[0][search.is_growing[0]].tolist()
    return [[token for token in beam if token >= 0] for beam in tokens]


def test_three_steps_of_beam_search_by_hand():
    """Two beams, four candidates a step, tokens 0 to 2 end, 3 to 5 do not."""
    ends = torch.tensor([True, True, True, False, False, False])
    search = BeamSearch(1, n_beams=2, n_candidates=4, max_new_tokens=9, ends=ends)

    # Candidates: 1 (.35), 3 (.3), 0 (.1), 2 (.09). Token 1 finishes; 0 and 2 end but are
    # not among the first two. Tokens 4 and 5 are not candidates: one beam continues.
    search.advance(log_probability(0.1, 0.35, 0.09, 0.3, 0.085, 0.075))
    assert growing_tokens(search) == [[3]]
    assert search.finished_score.exp()[0].tolist() == pytest.approx([0.35, 0.0])

    # After token 3: 4 (.3 * .5 = .15), 2 (.3 * .4 = .12), then 5 and 3 (.03 * .3 = .009 and
    # less). Token 2 is the second finished beam; only a beam above .12 can continue.
    only_row = torch.tensor([0])
    parent = search.advance(log_probability(0.02, 0.02, 0.4, 0.027, 0.5, 0.033), only_row)
    assert parent[0, 0] == 0
    assert growing_tokens(search) == [[3, 4]]
    assert search.finished_score.exp()[0].tolist() == pytest.approx([0.35, 0.12])
    assert search.finished_tokens[..., :3].tolist() == [[[1, -1, -1], [3, 2, -1]]]

    # .15 * .9 = .135 replaces .12. No running beam is above it.
    search.advance(log_probability(0.9, 0.02, 0.02, 0.02, 0.02, 0.02), only_row)
    assert search.count_growing() == [0]
    assert search.finished_score.exp()[0].tolist() == pytest.approx([0.35, 0.135])
    assert search.finished_tokens[..., :3].tolist() == [[[1, -1, -1], [3, 4, 0]]]


def test_a_token_ends_an_answer_if_the_stop_string_criterion_stops(tokenizer):
    """The criterion looks for a newline anywhere in the last token, and only there."""
    model = random_model("llama", len(tokenizer))
    criterion = StopStringCriteria(tokenizer, "\n")
    newline = tokenizer.convert_tokens_to_ids("Ċ")
    after_newline = torch.tensor([[newline, token] for token in range(model.config.vocab_size)])
    stops = criterion(after_newline, None)
    assert torch.equal(ending_tokens(model, tokenizer, []).cpu(), stops)
    inside = [t for t in tokenizer.get_vocab() if "Ċ" in t.strip("Ċ")]
    assert inside and stops[tokenizer.convert_tokens_to_ids(inside)].all()


@pytest.mark.parametrize(
    ("prefix", "suffixes"),
    [
        ("Answer: Lima.", ["\n\nPrompt: a?\nAnswer:", "\nb", " Lima", "\n\n"]),
        (PREFIX, ["", "Prompt: Oslo?\nAnswer:"]),
        ("", ["Lima", "Oslo?", "Who?\n"]),
        ("", ["L"]),
        (PREFIX, [SUFFIXES[2]]),
        ("", ["Lima", "Lima", "Lima"]),
    ],
    ids=["merging", "empty suffix", "nothing shared", "one token", "one prompt", "same"],
)
def test_any_split_of_the_prompt_gives_the_same_beams(prefix, suffixes, tokenizer):
    model = random_model(7, len(tokenizer))
    assert_decodes_like_generate(model, tokenizer, prefix, suffixes, max_new_tokens=8)


def test_a_first_token_is_added_once(tokenizer):
    backend = Tokenizer.from_str(tokenizer.backend_tokenizer.to_str())
    begin = {"single": "<|begin|> $A", "special_tokens": [("<|begin|>", 1)]}
    backend.post_processor = TemplateProcessing(**begin)
    special = {"eos_token": "<|end|>", "pad_token": "<|pad|>"}
    with_start = PreTrainedTokenizerFast(tokenizer_object=backend, **special)
    assert with_start("a")["input_ids"][0] == 1
    model = random_model("llama", len(tokenizer))
    assert_decodes_like_generate(model, with_start, PREFIX, SUFFIXES[:3], max_new_tokens=8)
    arguments = model, with_start, "", ["", "Lima"]
    expected = assert_decodes_like_generate(*arguments, max_new_tokens=8)
    chat = ["<|begin|>", "<|begin|>Lima"], Search(max_new_tokens=8)
    beams = generate_beams(model, with_start, "", *chat, add_special_tokens=False)
    assert_same_beams(beams, expected)


def test_spaces_are_cleaned_up_if_the_tokenizer_does_so(tokenizer):
    cleaning = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer.backend_tokenizer,
        eos_token="<|end|>",
        pad_token="<|pad|>",
        clean_up_tokenization_spaces=True,
        clean_up_tokenization_spaces_for_bpe_even_though_it_will_corrupt_output=True,
    )
    stop = tokenizer.encode(" .", add_special_tokens=False)

    assert cleaning.decode(stop) == "."
    model = random_model("llama", len(tokenizer))
    # The model prefers spaces and full stops.
    model.lm_head.weight.data[stop] *= 4
    arguments = PREFIX, SUFFIXES[:3]
    cleaned = assert_decodes_like_generate(model, cleaning, *arguments, max_new_tokens=10)
    plain = generate_beams(model, tokenizer, *arguments, Search(max_new_tokens=10))
    cleaned, plain = (
        [[beam.text for beam in beams] for beams in answers] for answers in (cleaned, plain)
    )
    assert cleaned != plain


def forward_passes(model, tokenizer, suffixes, search, **settings):
    """Return the number of tokens of each forward pass."""
    sizes, embedding = [], model.get_input_embeddings()
    hook = embedding.register_forward_hook(lambda _, args, output: sizes.append(args[0].shape))
    generate_beams(model, tokenizer, PREFIX, suffixes, search, **settings)
    hook.remove()
    assert {n_rows for n_rows, _ in sizes} == {1}
    return [n for _, n in sizes]


def count_prompt_tokens(tokenizer):
    """Return the number of tokens that all prompts share, and the others of each prompt."""
    prompts = tokenizer([PREFIX + suffix for suffix in SUFFIXES])["input_ids"]
    is_shared = [len(set(tokens)) == 1 for tokens in zip(*prompts, strict=False)]
    n_shared = is_shared.index(False)
    return n_shared, [len(prompt) - n_shared for prompt in prompts]


def count_passes(waiting, at_once):
    """Simulate the passes of questions that need `waiting` passes on their own."""
    waiting, n_passes, running = [*waiting], 1, []  # the first pass encodes the prefix
    while waiting or running:
        if waiting and len(running) <= at_once / 2:
            n_begun = at_once - len(running)
            running += [n_left - 1 for n_left in waiting[:n_begun]]
            del waiting[:n_begun]
        else:
            running = [n_left - 1 for n_left in running]
        n_passes += 1
        running = [n_left for n_left in running if n_left]
    return n_passes


@pytest.fixture
def without_graphs(monkeypatch):
    """Let each step run in Python, on a GPU too."""
    monkeypatch.setattr(
        queue.Graphs, "in_use", property(lambda *_: False, lambda *_: None), raising=False
    )


@pytest.mark.parametrize(("draw", "sizes"), [(None, (1, 5)), (Draw(1.0, 1.0, 3), (2,))])
def test_the_prefix_is_encoded_once_for_all_questions(draw, sizes, tokenizer, without_graphs):
    model = random_model("llama", len(tokenizer))
    settings = {"n_beams": 3, "max_new_tokens": 25, "draw": draw}
    n_shared, lengths = count_prompt_tokens(tokenizer)
    assert n_shared > 15
    passes_alone = [
        len(forward_passes(model, tokenizer, [suffix], Search(**settings))) - 1
        for _, suffix in sorted(zip(lengths, SUFFIXES, strict=True), key=lambda pair: pair[0])
    ]
    assert len(set(passes_alone)) > 3

    for at_once in sizes:
        n_done, search = [], Search(**settings, batch_size=at_once)
        in_parts = forward_passes(model, tokenizer, SUFFIXES, search, progress=n_done.append)
        assert len(in_parts) == count_passes(passes_alone, at_once)
        assert in_parts[:2] == [n_shared, sum(sorted(lengths)[:at_once])]
        assert sum(n_done) == len(SUFFIXES)


def test_no_questions_give_no_beams_and_an_empty_prompt_is_refused(tokenizer):
    model = random_model("llama", len(tokenizer))
    assert generate_beams(model, tokenizer, PREFIX, []) == []
    with pytest.raises(ValueError, match="prompt 1 has no tokens"):
        generate_beams(model, tokenizer, "", ["Lima", ""])


def test_decoding_restores_the_attention_of_the_model(tokenizer):
    model = random_model("llama", len(tokenizer))
    ids = tokenizer(PREFIX, return_tensors="pt").to(model.device)["input_ids"]
    logits_before = model(ids).logits
    generate_beams(model, tokenizer, PREFIX, SUFFIXES[:1], Search(max_new_tokens=2))
    assert model.config._attn_implementation == "sdpa"
    assert torch.equal(model(ids).logits, logits_before)
    with pytest.raises(TypeError, match="not callable"):  # an error in between
        generate_beams(model, tokenizer, PREFIX, SUFFIXES[:1], progress=7)
    assert model.config._attn_implementation == "sdpa"


CAPPED = Gemma2Config(**SIZES, vocab_size=400, head_dim=8, attn_logit_softcapping=5.0)
SINKS = {"num_local_experts": 2, "layer_types": WINDOW, "head_dim": 8}


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        (CAPPED, "Gemma2ForCausalLM caps the logits"),
        (
            GptOssConfig(**SIZES, vocab_size=400, **SINKS),
            "GptOssForCausalLM has attention sinks",
        ),
        (MambaConfig(vocab_size=400, hidden_size=32), "MambaForCausalLM keeps a state"),
        (BartConfig(vocab_size=400, d_model=32), "BartForCausalLM is the decoder of an"),
        (
            FalconConfig(vocab_size=400, num_attention_heads=71),
            "FalconForCausalLM does not support",
        ),
    ],
)
def test_models_with_other_attention_are_refused_without_weights(config, problem):
    with torch.device("meta"):
        empty = AutoModelForCausalLM.from_config(config)
    with pytest.raises(ValueError, match=f"{problem}.*decoding.backend to vllm"):
        check_model(empty)


def test_a_refused_model_is_not_loaded(study, monkeypatch):
    monkeypatch.setattr(Olmo3ForCausalLM, "_can_set_attn_implementation", lambda *_: False)
    monkeypatch.setattr(load, "open_model", lambda *_: pytest.fail("the weights are loaded"))
    with pytest.raises(ValueError, match="Olmo3ForCausalLM does not support"):
        run_script(study[0])


@pytest.fixture
def study(tmp_path, tokenizer):
    """Save a checkpoint and a table of questions of two categories."""
    model = random_model(7, len(tokenizer))
    model.save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    write_record(tmp_path / "model", tmp_path / "a.json")
    questions = questions_table(9, 0).assign(
        split=["few_shot"] * 4 + ["train"] * 3 + ["unused", "train"],
        question=[f"Capital {i}?" for i in range(9)],
        references=[[f"Lima {i}", "x"] for i in range(9)],
        category=["list", "fact"] * 4 + ["list"],
        excluded=[False] * 6 + [True] + [False] * 2,
    )
    path = tmp_path / "questions.parquet"
    artifacts.write(questions.iloc[::-1], path, artifacts.QUESTIONS, values=ABOUT)
    return tmp_path, model


def run_script(folder, **changes):
    settings = {"n_examples": 2, "by_category": True, "n_beams": 4, "max_new_tokens": 5}
    beams_job(folder, folder / "beams.parquet", **settings | changes)
    return artifacts.read(folder / "beams.parquet", artifacts.BEAMS)


def test_the_rule_writes_beams_of_the_questions_in_its_split(study, tokenizer):
    folder, model = study
    beams = run_script(folder)
    # Questions: q4 (list), q5 (fact), q8 (list); q6 is excluded and q7 unused.
    examples = {"q4": [0, 2], "q5": [1, 3], "q8": [0, 2]}
    assert beams["question_id"].value_counts().to_dict() == {"q4": 4, "q5": 4, "q8": 4}
    for question_id, rows in beams.groupby("question_id"):
        examples_text = "".join(
            f"Prompt: Capital {i}?\nAnswer: Lima {i}\n\n" for i in examples[question_id]
        )
        prompt = f"{examples_text}Prompt: Capital {question_id[1]}?\nAnswer:"
        expected = one_by_one(model, tokenizer, [prompt], n_beams=4, max_new_tokens=5)
        beams_found = [Beam(*row) for row in rows[[*Beam._fields]].itertuples(index=False)]
        assert rows["beam"].tolist() == [0, 1, 2, 3]
        assert_same_beams([beams_found], expected)


def test_the_rule_writes_an_empty_table_for_a_split_without_questions(study):
    assert run_script(study[0], split="test").empty


def test_beams_need_at_most_the_computed_memory(tokenizer, monkeypatch, without_graphs):
    """Measure the tensors of a search on five questions, which begin at two times."""
    model = random_model("qwen3", len(tokenizer))  # its heads are wider than usual
    largest, forward = 0, Slots.forward

    def measured(slots, *arguments, **settings):
        nonlocal largest
        logits = forward(slots, *arguments, **settings)
        n_bytes = sum(part.nbytes for layer in slots.trees for part in layer)
        largest = max(largest, n_bytes + logits.nbytes)
        return logits

    monkeypatch.setattr(Slots, "forward", measured)
    sizes = {"n_beams": 4, "max_new_tokens": 30}
    generate_beams(model, tokenizer, PREFIX, SUFFIXES[3:4] * 9, Search(**sizes, batch_size=5))
    prompts = tokenizer([PREFIX + SUFFIXES[3], PREFIX + SUFFIXES[0]])["input_ids"]
    n_own = len(prompts[0]) - decode.n_common(*(prompt[:-1] for prompt in prompts))
    assert largest <= 5 * decode.bytes_of_a_question(model, n_own + 4 * 30, 4)
    # half the memory of beams that each have all keys and values
    assert largest < 0.5 * 5 * 4 * decode.bytes_of_a_question(model, n_own + 30, 1)


# Settings of `generate` that `Search` and `Draw` replace, or that change no likelihood.
REPLACED = {"do_sample", "num_beams", "temperature", "top_p", "max_length", "use_cache"}
REPLACED |= {"remove_invalid_values", "renormalize_logits"}


def test_the_log_names_each_ignored_setting_of_a_generation_config(tokenizer, caplog):
    """The list is as long as transformers' own; a neutral value is not named."""
    source = inspect.getsource(GenerationMixin._get_logits_processor)
    read = set(re.findall(r"generation_config\.([a-z]\w+)", source))
    assert read <= {*decode.PROCESSORS, *decode.WARPERS} | REPLACED
    model = random_model("llama", len(tokenizer))
    model.generation_config.repetition_penalty = 1.0
    model.generation_config.no_repeat_ngram_size = 0
    model.generation_config.top_k = 7
    generate_beams(model, tokenizer, PREFIX, SUFFIXES[:1], Search(2, 3))
    assert not caplog.messages
    model.generation_config.repetition_penalty = 1.31
    model.generation_config.suppress_tokens = [0, 5]
    for _ in range(2):
        generate_beams(model, tokenizer, PREFIX, SUFFIXES[:1], Search(2, 3))
    [message] = caplog.messages
    assert "sets repetition_penalty: 1.31, suppress_tokens: [0, 5], which is ignored" in message
    generate_beams(model, tokenizer, PREFIX, SUFFIXES[:1], Search(2, 3, Draw(1.0, 1.0, 0)))
    assert "top_k: 7" in caplog.messages[-1]
