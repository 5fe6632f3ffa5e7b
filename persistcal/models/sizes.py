"""GPU memory that a model takes to decode, score and train, computed from the shape.

Only tensors count. The CUDA context takes about half a gigabyte more, and fragmentation in the
caching allocator takes memory, too.
"""

from typing import Any, NamedTuple

BYTES_PER_WEIGHT = 2  # bfloat16, on disk too
MOST = 128  # questions that are decoded together
TYPICAL = 30  # expected tokens of an answer; longer ones can require smaller batches
# Per layer and token, bytes that a forward pass stores for the gradient of an adapter, per
# unit of the hidden size and of the intermediate size. peft converts the input of each linear
# layer to float32, which takes most of them.
STORED_GATED = (48, 10)  # gate, up and down projections, as in Llama, SmolLM3 and Olmo 3
STORED_PLAIN = (28, 6)  # two projections, as in GPT-NeoX
MOST_OF_A_GPU = 0.75  # if copies of a model take more, they are on the GPU one at a time
FILLED = 0.9  # of a GPU's memory by training; the context and fragments need the rest
# Batches of `auto`: candidates that are trained on, and answers that are scored
TRAINED_ON_CPU, SCORED_ON_CPU, MOST_SCORED = 32, 64, 512
SCORING_BYTES = 8e9  # half of what decoding has by default, whatever the GPU
ADAPTER_STATE = 16  # bytes of an adapter's weight: itself, gradient and AdamW's moments
# A layer that is computed or differentiated takes these, which the next one uses again.
TRANSIENT = (16, 12)


class DecoderShape(NamedTuple):
    """Sizes of a decoder, by the names of a study's config."""

    hidden: int
    intermediate: int
    layers: int
    heads: int
    vocabulary: int
    kv_heads: int = 0  # heads of keys and values; 0 means `heads`
    head_dim: int = 0  # 0 means hidden / heads
    gated: bool = True  # three projections in the feed-forward layers instead of two
    tied: bool = False  # input and output embeddings are one matrix

    @property
    def kv_width(self) -> int:
        """Return the units of a layer's keys."""
        return (self.kv_heads or self.heads) * self._head_dim

    @property
    def _head_dim(self) -> int:
        return self.head_dim or self.hidden // self.heads

    @property
    def _linear_layers(self) -> list[tuple[int, int]]:
        """Inputs and outputs of a decoder layer's linear layers."""
        width = self.heads * self._head_dim
        attention = [(self.hidden, width + 2 * self.kv_width), (width, self.hidden)]
        n_up = 2 if self.gated else 1
        up = [(self.hidden, self.intermediate)] * n_up
        return [*attention, *up, (self.intermediate, self.hidden)]

    @property
    def weights(self) -> int:
        """Return the number of weights, without biases and norms.

        SmolLM3-3B and Pythia-1.4b have 3.075 and 1.415 billion:

        >>> DecoderShape(2048, 11008, 36, 16, 128256, kv_heads=4, tied=True).weights
        3074949120
        >>> DecoderShape(2048, 8192, 24, 16, 50304, gated=False).weights
        1414004736
        """
        per_layer = sum(inputs * outputs for inputs, outputs in self._linear_layers)
        embeddings = self.vocabulary * self.hidden * (1 if self.tied else 2)
        return self.layers * per_layer + embeddings

    @property
    def weight_bytes(self) -> int:
        """Return the bytes of a copy of the model."""
        return self.weights * BYTES_PER_WEIGHT

    def adapter_weights(self, rank: int) -> int:
        """Return at least the number of weights of an adapter on all linear layers."""
        # Queries, keys and values of a layer have separate matrices.
        shared = 2 * self.hidden if self.gated else 0
        per_layer = sum(inputs + outputs for inputs, outputs in self._linear_layers) + shared
        return self.layers * rank * per_layer


def shape_of(config: Any) -> DecoderShape:  # noqa: ANN401
    """Return the shape in a model's own config; the feed-forward layers are taken as gated."""
    return DecoderShape(
        hidden=config.hidden_size,
        intermediate=getattr(config, "intermediate_size", None) or 4 * config.hidden_size,
        layers=config.num_hidden_layers,
        heads=config.num_attention_heads,
        vocabulary=config.vocab_size,
        kv_heads=getattr(config, "num_key_value_heads", None) or 0,
        head_dim=getattr(config, "head_dim", None) or 0,
        tied=bool(getattr(config, "tie_word_embeddings", False)),
    )


def question_bytes(shape: DecoderShape, n_tokens: int, n_beams: int, itemsize: int = 2) -> int:
    """Return the bytes of keys and values of `n_tokens` tokens, and of logits per beam.

    Logits are there as the model returns them, in float32 before and after normalisation, and
    for the entropy.
    """
    per_token = 2 * shape.layers * shape.kv_width * itemsize
    return n_tokens * per_token + n_beams * 5 * 4 * shape.vocabulary


def questions_at_once(per_question: float, memory_gb: float, n_questions: int = MOST) -> int:
    """Return how many questions are decoded together, each of `per_question` bytes."""
    return max(1, min(MOST, n_questions, int(memory_gb * 1e9 / per_question)))


def decoding_bytes(
    shape: DecoderShape, *, n_question: int, n_beams: int, max_new_tokens: int, memory_gb: float
) -> int:
    """Return the memory to decode the largest batch of questions of `n_question` tokens."""
    n_tokens = n_question + n_beams * min(max_new_tokens, TYPICAL)
    per_question = question_bytes(shape, n_tokens, n_beams)
    return shape.weight_bytes + questions_at_once(per_question, memory_gb) * per_question


def scoring_bytes(shape: DecoderShape, n_tokens: int) -> int:
    """Return the memory to score a batch of `n_tokens` tokens, padding included."""
    return shape.weight_bytes + _transient(shape, n_tokens)


def fit_together(copies: int, copy_bytes: float, gpu_bytes: float) -> bool:
    """Return whether all copies of a joint training are on a GPU together.

    Four copies of SmolLM3-3B fit into 48 GB and not into 24 GB, four of Pythia-1.4b do:

    >>> fit_together(4, 6.15e9, 48e9), fit_together(4, 6.15e9, 24e9)
    (True, False)
    >>> fit_together(4, 2.83e9, 24e9)
    True
    """
    return copies * copy_bytes <= MOST_OF_A_GPU * gpu_bytes


def training_bytes(
    shape: DecoderShape, n_tokens: int, *, copies: int = 1, lora_rank: int = 8
) -> int:
    """Return the memory of a training step on micro-batches of `n_tokens` tokens.

    `copies` of the model are on the GPU at once. They compute one after the other.
    """
    of_hidden, of_intermediate = STORED_GATED if shape.gated else STORED_PLAIN
    per_token = of_hidden * shape.hidden + of_intermediate * shape.intermediate
    stored = shape.layers * n_tokens * per_token
    adapter = ADAPTER_STATE * shape.adapter_weights(lora_rank)
    return copies * shape.weight_bytes + stored + adapter + _transient(shape, n_tokens)


def candidates_at_once(
    shape: DecoderShape, n_tokens: float, gpu_bytes: float, *, copies: int, lora_rank: int
) -> int:
    """Return how many prompts of `n_tokens` tokens fit into a training step, at least 32.

    Olmo 3 7B takes 14.6 GB, and 10 MB for a token. An adapter's state takes 0.3 GB. So 80 GB
    have room for (72 - 14.9) GB / (30 x 10 MB) = 190 prompts:

    >>> shape = DecoderShape(4096, 11008, 32, 32, 100278)
    >>> candidates_at_once(shape, 30, 80e9, copies=1, lora_rank=8)
    190
    >>> candidates_at_once(shape, 30, 24e9, copies=1, lora_rank=8)
    32
    """
    sizes = {"copies": copies, "lora_rank": lora_rank}
    fixed, more = (training_bytes(shape, n, **sizes) for n in (0, 1000))
    fitting = (FILLED * gpu_bytes - fixed) / ((more - fixed) / 1000 * n_tokens)
    return max(TRAINED_ON_CPU, int(fitting))


def answers_at_once(shape: DecoderShape, n_tokens: float) -> int:
    """Return how many prompts of `n_tokens` tokens are scored together on any GPU.

    >>> answers_at_once(DecoderShape(5120, 27648, 64, 40, 100278, kv_heads=8), 60)
    322
    """
    fitting = int(SCORING_BYTES / (_transient(shape, 1) * n_tokens))
    return max(SCORED_ON_CPU, min(MOST_SCORED, fitting))


def _transient(shape: DecoderShape, n_tokens: int) -> int:
    of_hidden, of_intermediate = TRANSIENT
    return n_tokens * (of_hidden * shape.hidden + of_intermediate * shape.intermediate)
