"""Steps on fixed slots, which are CUDA graphs on a GPU; here a stand-in repeats operations."""

import logging

import pytest
import recorded_graphs
import torch
from tiny_models import tiny_model, tiny_tokenizer
from transformers import LlamaConfig, LlamaForCausalLM, Olmo3Config, Olmo3ForCausalLM

from persistcal.answers import queue
from persistcal.answers.decode import Draw, Search, generate_beams

torch.set_num_threads(1)

PREFIX = "Prompt: Which country is Oslo in?\nAnswer: Norway\n\n"
SUFFIXES = [f"Prompt: Which {word}?\nAnswer:" for word in ("Oslo", "country is in", "a", "Nor")]
DRAW = Draw(temperature=0.7, top_p=0.8, seed=3)


@pytest.fixture
def graphs(monkeypatch):
    """Let models decode with graphs that repeat operations, and return the captured graphs."""
    made = queue.Graphs.__init__

    def in_use(graphs, model):
        made(graphs, model)
        graphs.in_use = True

    monkeypatch.setattr(queue.Graphs, "__init__", in_use)
    recorded_graphs.install(monkeypatch.setattr)
    monkeypatch.setattr(recorded_graphs.RecordedGraph, "captured", [])
    return recorded_graphs.RecordedGraph.captured


def decode(model, draw=None, n_beams=3, max_new_tokens=12, batch_size=2):
    search = Search(n_beams, max_new_tokens, draw, batch_size)
    return generate_beams(model, tiny_tokenizer(), PREFIX, SUFFIXES, search)


def assert_same_answers(answers, expected):
    for question, expected_question in zip(answers, expected, strict=True):
        for answer, expected_answer in zip(question, expected_question, strict=True):
            assert answer.text == expected_answer.text
            assert answer[1:] == pytest.approx(expected_answer[1:], abs=1e-4)


@pytest.mark.parametrize(("kind", "draw"), [("olmo3", None), ("olmo3", DRAW), ("llama", None)])
def test_replayed_steps_give_the_same_answers(kind, draw, graphs, monkeypatch):
    """Questions begin at two times, and trees outgrow the smallest buckets."""
    model = tiny_model(kind)
    with monkeypatch.context() as patch:
        patch.setattr(
            queue.Graphs, "in_use", property(lambda *_: False, lambda *_: None), raising=False
        )
        expected = decode(model, draw)
    assert not graphs
    monkeypatch.setattr(queue, "BUCKET", 16)
    assert_same_answers(decode(model, draw), expected)
    assert len(graphs) > 1
    assert max(graph.n_replays for graph in graphs) > 2


def wide_model(kind, n_layers):
    """Return a model with the layers of Olmo 3 7B, or of Llama, but narrow ones."""
    sizes = {
        **{"vocab_size": 300, "hidden_size": 32, "intermediate_size": 64},
        **{"num_hidden_layers": n_layers, "num_attention_heads": 4, "num_key_value_heads": 4},
        **{"initializer_range": 0.3, "eos_token_id": 0, "pad_token_id": 0},
    }
    torch.manual_seed(0)
    if kind == "olmo3":
        model = Olmo3ForCausalLM(Olmo3Config(**sizes, sliding_window=4096))
    else:
        model = LlamaForCausalLM(LlamaConfig(**sizes))
        for layer in model.modules():
            if hasattr(layer, "variance_epsilon"):  # its rounding is not that of torch's kernel
                torch.nn.init.normal_(layer.weight, 1, 0.3)
    return model.eval().requires_grad_(False).to(torch.bfloat16)


@pytest.mark.parametrize(
    ("kind", "draw", "most"),
    [("olmo3", None, 1500), ("olmo3", DRAW, 1500), ("llama", None, 2400)],
)
def test_a_step_of_32_layers_has_few_launches(kind, draw, most, graphs):
    decode(wide_model(kind, 32), draw, n_beams=10, max_new_tokens=5, batch_size=4)
    assert graphs
    assert 1200 < max(sum(graph.launches.values()) for graph in graphs) <= most


def addresses(batch):
    """Return where the numbers are that steps read and change."""
    state = [getattr(batch.search, name) for name in batch.search.STATE]
    places = [batch.slots.seen, batch.slots.position, batch.slots.positions, batch.slots.width]
    trees = [part for layer in batch.slots.trees for part in layer]
    return [tensor.data_ptr() for tensor in (*state, *places, *trees)]


def test_steps_have_fixed_addresses_one_graph_per_bucket_and_few_waits(graphs, monkeypatch):
    steps, looks, waits = [], [], []
    step, step_on = queue.RunningBatch.step, queue.RunningBatch.step_on

    class CountedWaits(recorded_graphs.WatchedWaits):
        def wait(self, name):
            waits.append(name)

    def noted_step(batch):
        steps.append((len(batch._left), batch.slots.n_read, addresses(batch)))
        step(batch)

    def noted_look(batch):
        with CountedWaits().watching():
            answered = step_on(batch)
        looks.append(batch.slots.n_read)
        return answered

    monkeypatch.setattr(queue.RunningBatch, "step", noted_step)
    monkeypatch.setattr(queue.RunningBatch, "step_on", noted_look)
    decode(tiny_model(), n_beams=10, max_new_tokens=20, batch_size=4)
    n_steps = sum(graph.n_replays for graph in graphs) + len(steps) - len(graphs)
    assert n_steps == 4 * len(looks) >= 16
    assert len(waits) == len(looks)
    buckets = {(n_slots, n_read) for n_slots, n_read, _ in steps}
    assert len(graphs) <= len(buckets) and len(steps) == len(buckets) + len(graphs)
    assert len({tuple(places) for n, _, places in steps if n == 4}) == 1


def test_a_step_is_traced_whole_and_never_again_for_the_same_bucket(graphs, monkeypatch):
    """A wait or a shape that depends on numbers would break the graph, which is refused."""
    traced, sizes = [], []

    def record(module, _):
        traced.append(module)
        return module.forward

    traced_step = torch.compile(
        queue.RunningBatch.step, backend=record, fullgraph=True, dynamic=False
    )

    def run(_, size, addresses, step):
        sizes.append((size, addresses))
        traced_step(step.__self__)
        return True

    monkeypatch.setattr(queue.Graphs, "run", run)
    torch.compiler.reset()
    answers = decode(tiny_model(), max_new_tokens=6)
    # Python's state of a batch is another one before its first step than afterwards.
    assert len(traced) <= 2 * len(set(sizes)) < len(sizes)
    monkeypatch.undo()
    assert_same_answers(answers, decode(tiny_model(), max_new_tokens=6))


@pytest.mark.parametrize("problem", ["waits for the GPU", "cannot be captured"])
def test_a_model_without_graphs_of_its_steps_is_decoded(problem, graphs, monkeypatch, caplog):
    caplog.set_level(logging.WARNING)
    model = tiny_model()
    expected = decode(model)
    graphs.clear()
    if problem == "waits for the GPU":
        norm = model.model.norm
        norm.register_forward_hook(
            lambda _, inputs, output: output * output.isfinite().all().item()
        )
    else:

        def fail(graph):
            raise RuntimeError("CUDA error: operation not permitted when stream is capturing")

        monkeypatch.setattr(torch.cuda, "graph", fail)
    assert_same_answers(decode(model), expected)
    assert not graphs
    assert f"{problem}" in caplog.text and "runs without CUDA graphs" in caplog.text
