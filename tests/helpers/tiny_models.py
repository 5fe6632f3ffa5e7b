"""Tiny random models and a tokenizer, for tests of adapters."""

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import (
    DebertaV2Config,
    DebertaV2ForSequenceClassification,
    GraniteConfig,
    GraniteForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    Olmo3Config,
    Olmo3ForCausalLM,
    PreTrainedTokenizerFast,
)

from persistcal.models.load import pick_device
from persistcal.models.prompts import confidence_prompt

TEMPLATE = "Prompt: {question}\nCandidate: {answer}\nConfidence: "
TEXT = TEMPLATE.format(question="Which country is Oslo in?", answer="Norway") + "0123456789"
ID2LABEL = {0: "contradiction", 1: "neutral", 2: "entailment"}
MAX_LENGTH = 64
WORDS = "Question Answer Which country is Oslo in Norway Sweden the kingdom of".split()


BYTES = pre_tokenizers.ByteLevel(add_prefix_space=False)


def byte_level(texts, vocab_size, special_tokens, pre_tokenizer=BYTES):
    """Return a tokenizer of bytes and of frequent strings in `texts`."""
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer, bpe.decoder = pre_tokenizer, decoders.ByteLevel()
    sizes = {"vocab_size": vocab_size, "special_tokens": special_tokens}
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(**sizes, initial_alphabet=alphabet, show_progress=False)
    bpe.train_from_iterator(texts, trainer)
    return bpe


def tiny_tokenizer(text=TEXT, vocab_size=300):
    """Digits are glued together only where `text` glues them often."""
    bpe = byte_level([text], vocab_size, ["<eos>"])
    return PreTrainedTokenizerFast(tokenizer_object=bpe, eos_token="<eos>", pad_token="<eos>")


def tiny_model(kind="olmo3", seed=0, hidden=32, layers=2, dtype=torch.float32):
    """Random weights large enough that the digits' logits differ between prompts; on a GPU if
    there is one.
    """
    shape = {
        **{"vocab_size": 300, "hidden_size": hidden, "intermediate_size": 2 * hidden},
        **{"num_hidden_layers": layers, "num_attention_heads": 4, "num_key_value_heads": 2},
        **{"max_position_embeddings": 256, "pad_token_id": 0, "bos_token_id": None},
        **{"eos_token_id": 0, "initializer_range": 0.2},
    }
    torch.manual_seed(seed)
    if kind == "olmo3":
        # The window is shorter than the prompts, so that both kinds of attention matter.
        types = ["sliding_attention", "full_attention"] * (layers // 2)
        model = Olmo3ForCausalLM(Olmo3Config(**shape, sliding_window=12, layer_types=types))
    elif kind == "granite":
        model = GraniteForCausalLM(GraniteConfig(**shape, logits_scaling=4.0))
    else:
        model = LlamaForCausalLM(LlamaConfig(**shape, tie_word_embeddings=True))
    return model.to(pick_device(), dtype).eval()


def save_tiny(folder, seed=0, hidden=32, layers=2):
    """Save a tiny model and its tokenizer, as `from_pretrained` reads a checkpoint."""
    tiny_model(seed=seed, hidden=hidden, layers=layers).save_pretrained(folder)
    tiny_tokenizer().save_pretrained(folder)


def prompts_to_rate():
    """Tokens of seven prompts about an answer, each longer than the one before."""
    texts = [(f"Where is {'x' * i}?", "Norway" if i % 2 else "Peru") for i in range(7)]
    return tiny_tokenizer()([confidence_prompt(TEMPLATE, *text) for text in texts])["input_ids"]


@torch.inference_mode()
def logits_alone(model, prompts):
    """Return the logits after each prompt (token ids), one full forward pass for each."""
    rows = [torch.tensor([prompt], device=model.device) for prompt in prompts]
    return torch.stack([model(row).logits[0, -1] for row in rows])


# Like Qwen3's template: an empty thought if thinking is off
CHAT = (
    "{% for message in messages %}<{{ message.role }}>{{ message.content }}</>{% endfor %}"
    "{% if add_generation_prompt %}<assistant>"
    "{% if enable_thinking is false %}<think></think>{% endif %}{% endif %}"
)


def tiny_entailment_model(folder, id2label=ID2LABEL, seed=3):
    """Save a model that predicts all classes, and a tokenizer of bytes and words."""
    bpe = byte_level([" ".join(WORDS)] * 2, 320, ["[PAD]", "[CLS]", "[SEP]"])
    bpe.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 1), ("[SEP]", 2)],
    )
    PreTrainedTokenizerFast(
        tokenizer_object=bpe,
        pad_token="[PAD]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        model_max_length=MAX_LENGTH,
    ).save_pretrained(folder)
    torch.manual_seed(seed)
    config = DebertaV2Config(
        vocab_size=320,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=MAX_LENGTH,
        relative_attention=True,
        position_buckets=16,
        norm_rel_ebd="layer_norm",
        share_att_key=True,
        pos_att_type=["p2c", "c2p"],
        type_vocab_size=0,
        pad_token_id=0,
        num_labels=len(id2label),
        id2label=id2label,
        label2id={label: i for i, label in id2label.items()},
        initializer_range=1.0,
    )
    DebertaV2ForSequenceClassification(config).save_pretrained(folder)
