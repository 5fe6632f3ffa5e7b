"""Small stand-ins for all models and questions that the paper's study fetches.

Random weights, in the files that the real repositories have: bfloat16 shards with an
index, a configuration, and a tokenizer of the class that the real one names.
"""

import hashlib
import json
from pathlib import Path

import torch
from hub_layout import write_jeopardy, write_triviaqa
from peft import LoraConfig, get_peft_model
from tiny_models import tiny_entailment_model
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    GPTNeoXConfig,
    GPTNeoXForCausalLM,
    Olmo3Config,
    Olmo3ForCausalLM,
    PreTrainedTokenizerFast,
    Qwen3Config,
    Qwen3ForCausalLM,
    SmolLM3Config,
    SmolLM3ForCausalLM,
)

from persistcal.questions.sources import BLACKLIST

OLMO = "allenai/Olmo-3-1025-7B"
QWEN = "Qwen/Qwen3-8B"
SMOLLM = "HuggingFaceTB/SmolLM3-3B-checkpoints"
PYTHIA = "EleutherAI/pythia-1.4b"
GCM = "Hanqix/GCM-Qwen3-8B-TriviaQA"
ENTAILMENT = "MoritzLaurer/DeBERTa-v3-base-mnli-fever-anli"
REVISIONS = {
    OLMO: ["stage1-step283000", "stage1-step424000", "stage1-step566000", "stage1-step1413814"],
    QWEN: ["main"],
}
OF_ONE_GPU = {
    SMOLLM: [f"stage1-step-{step}" for step in (1440000, 2880000, 3440000)],
    PYTHIA: ["step48000", "step128000", "step143000"],
}
ENTAILMENT_REVISION = "6f5cf0a2b59cabb106aca4c287eed12e357e90eb"

# The same text as Qwen3's template for one message of a user
CHAT = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}"
    "{% if enable_thinking is defined and enable_thinking is false %}"
    "{{ '<think>\n\n</think>\n\n' }}{% endif %}{% endif %}"
)
VOCABULARY = 512  # the models' size; tokenizers have fewer tokens, as the real ones do
RIVERS = ["Alde", "Brathay", "Cober", "Derwent", "Esk", "Frome", "Gade", "Hayle"]


def triviaqa_pairs():
    """Questions: two are the same but for a space, and one is blacklisted."""
    pairs = [
        (f"Which river flows through town {n}?", RIVERS[n % len(RIVERS)]) for n in range(40)
    ]
    return [*pairs, (pairs[3][0] + " ", "again"), (min(BLACKLIST), "none of them")]


def jeopardy_clues():
    """Return 159 clues of a category; the last two have a link and a missing text."""
    clues = [("SCIENCE", f"'This element has the number {n}'", f"E{n}") for n in range(157)]
    excluded = ["'See <a href=\"x\">this</a>'", "'The clue is MISSING'"]
    return [*clues, *(("SCIENCE", clue, "bad") for clue in excluded)]


def bioasq_entries():
    """17 questions of each type that is asked, and others."""
    genes = [
        {
            "type": "factoid",
            "body": f"Which gene causes disease {n}?",
            "exact_answer": [f"G{n}"],
        }
        for n in range(17)
    ]
    genes[4]["exact_answer"] = ["G4", "gene four"]
    lists = [
        {"type": "list", "body": f"List the drugs for {n}", "exact_answer": [[f"D{n}"], ["D0"]]}
        for n in range(17)
    ]
    excluded = [
        {"type": "yesno", "body": "Is aspirin a drug?", "exact_answer": "yes"},
        {"type": "list", "body": "List all.", "exact_answer": [[str(n)] for n in range(11)]},
    ]
    entries = [*genes, *lists, *excluded]
    return [{"id": f"id{n}", **entry} for n, entry in enumerate(entries)]


def write_hub(folder: Path) -> None:
    """Write the models below `folder`/hub, and the questions below hub and data."""
    hub = folder / "hub"
    write_triviaqa(
        hub / "mandarjoshi/trivia_qa",
        train=[(f"Which river is near hill {n % 12}?", RIVERS[n % 5]) for n in range(14)],
        validation=triviaqa_pairs(),
        test=[("Secret?", "<unk>")],
    )
    write_jeopardy(hub / "soldni/jeopardy", jeopardy_clues())
    (folder / "categories.txt").write_text("Science\n")
    bioasq = folder / "data/bioasq/training14b.json"
    bioasq.parent.mkdir(parents=True)
    bioasq.write_text(json.dumps({"questions": bioasq_entries()}))
    for repo, revisions in REVISIONS.items():
        for seed, revision in enumerate(revisions):
            write_checkpoint(hub / repo / revision, repo, seed)
    write_gcm(hub / GCM / "main")
    tiny_entailment_model(hub / ENTAILMENT / ENTAILMENT_REVISION)


def write_hub_of_one_gpu(folder: Path) -> None:
    """Write the models of a study on one GPU, and TriviaQA, below `folder`/hub.

    Half of all tokens are aliases of a question's answer, so that half of the answers of one
    token are right, and other ones for each question.
    """
    hub = folder / "hub"
    for repo, revisions in OF_ONE_GPU.items():
        for seed, revision in enumerate(revisions):
            write_checkpoint(hub / repo / revision, repo, seed)
    tokenizers = [
        Tokenizer.from_file(str(hub / repo / revisions[0] / "tokenizer.json"))
        for repo, revisions in OF_ONE_GPU.items()
    ]
    texts = sorted({t.decode([i]).strip() for t in tokenizers for i in range(VOCABULARY)})

    def aliases(question: str) -> list[str]:
        digests = ((text, hashlib.sha256(f"{question}{text}".encode())) for text in texts)
        return [text for text, digest in digests if text and digest.digest()[0] % 2]

    write_triviaqa(
        hub / "mandarjoshi/trivia_qa",
        train=[(f"Which river is near hill {n % 12}?", RIVERS[n % 5]) for n in range(14)],
        validation=[(*pair, *aliases(pair[0].strip())) for pair in triviaqa_pairs()],
        test=[("Secret?", "<unk>")],
    )
    tiny_entailment_model(hub / ENTAILMENT / ENTAILMENT_REVISION)


def write_checkpoint(folder: Path, repo: str, seed: int) -> None:
    """Write a checkpoint of `repo` with the weights of `seed`."""
    torch.manual_seed(seed)
    model(repo).to(torch.bfloat16).save_pretrained(folder, max_shard_size="40KB")
    assert (folder / "model.safetensors.index.json").exists()
    write_tokenizer(folder, repo)


def model(repo: str) -> torch.nn.Module:
    """Return the architecture of `repo` with random weights."""
    shape = {
        **{"vocab_size": VOCABULARY, "hidden_size": 32, "intermediate_size": 64},
        **{"num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 1024},
        **{"initializer_range": 0.2, "tie_word_embeddings": False, "bos_token_id": None},
        **{"eos_token_id": 0, "pad_token_id": 1},
    }
    if repo == OLMO:
        # As in the real ones, every fourth layer sees everything.
        types = ["sliding_attention"] * 3 + ["full_attention"]
        config = Olmo3Config(**shape, num_hidden_layers=4, layer_types=types, sliding_window=64)
        return Olmo3ForCausalLM(config)
    if repo == SMOLLM:  # every fourth layer has no positions
        shape |= {"num_hidden_layers": 4, "tie_word_embeddings": True}
        return SmolLM3ForCausalLM(SmolLM3Config(**shape))
    if repo == PYTHIA:
        del shape["num_key_value_heads"]
        return GPTNeoXForCausalLM(GPTNeoXConfig(**shape, num_hidden_layers=2))
    return Qwen3ForCausalLM(Qwen3Config(**shape, num_hidden_layers=2, head_dim=16))


def write_tokenizer(folder: Path, repo: str) -> None:
    """Write a byte-level BPE."""
    special = {
        OLMO: ["<|endoftext|>", "<|pad|>"],
        QWEN: ["<|im_end|>", "<|endoftext|>", "<|im_start|>"],
        SMOLLM: ["<|end_of_text|>", "<|pad|>", "<|begin_of_text|>"],
        PYTHIA: ["<|endoftext|>", "<|padding|>"],
    }[repo]
    texts = [text for pair in triviaqa_pairs() for text in pair]
    texts += [clue for _, clue, _ in jeopardy_clues()] + ["yes no"] * 100
    bpe = Tokenizer(models.BPE())
    # Pythia's tokens can have several digits, SmolLM3's up to three.
    digits = {PYTHIA: [], SMOLLM: [pre_tokenizers.Split(Regex(r"\p{N}{1,3}"), "isolated")]}.get(
        repo, [pre_tokenizers.Digits(individual_digits=True)]
    )
    bpe.pre_tokenizer = pre_tokenizers.Sequence([*digits, pre_tokenizers.ByteLevel(False)])
    bpe.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY - 12,
        special_tokens=special,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    bpe.train_from_iterator(texts, trainer)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=bpe, eos_token=special[0], pad_token=special[1]
    )
    if repo == QWEN:
        tokenizer.chat_template = CHAT
    tokenizer.save_pretrained(folder, save_jinja_files=False)
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    settings["tokenizer_class"] = {
        OLMO: "GPT2Tokenizer",
        QWEN: "Qwen2Tokenizer",
        SMOLLM: "PreTrainedTokenizerFast",
        PYTHIA: "GPTNeoXTokenizer",
    }[repo]
    (folder / "tokenizer_config.json").write_text(json.dumps(settings, indent=2))
    bpe.model.save(str(folder))  # vocab.json and merges.txt


def write_gcm(folder: Path) -> None:
    """Write a LoRA adapter for Qwen as peft saves it, with random weights."""
    torch.manual_seed(7)
    config = LoraConfig(
        r=8,
        lora_alpha=16,
        task_type="CAUSAL_LM",
        target_modules="all-linear",
        base_model_name_or_path=QWEN,
        init_lora_weights=False,
    )
    get_peft_model(model(QWEN), config).save_pretrained(folder)
