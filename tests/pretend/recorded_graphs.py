"""CUDA graphs without a GPU: operations are recorded, and repeated at the same addresses."""

import warnings
from collections import Counter
from contextlib import contextmanager

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

ALLOCATIONS = {"empty", "new_empty", "empty_like", "empty_strided", "new_empty_strided"}
KERNELS = {"topk": 3, "sort": 3, "argsort": 3, "cumsum": 2, "index_put_": 2, "logsumexp": 3}
WAITS = {"item", "_local_scalar_dense", "nonzero", "masked_select", "equal", "lift_fresh"}


def tensors(values):
    return [value for value in tree_leaves(values) if isinstance(value, torch.Tensor)]


def memory(tensor):
    return tensor.untyped_storage()._cdata


class WatchedWaits(TorchDispatchMode):
    """Calls `wait` before an operation that waits for a GPU, or copies from the host."""

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        name = function._schema.name.split("::")[1]
        indices = tensors(args[1]) if name in ("index", "index_put_") else []
        if name in WAITS or any(index.dtype == torch.bool for index in indices):
            self.wait(name)
        return self.compute(name, function, args, kwargs or {})

    def wait(self, name):
        warnings.warn(f"called a synchronizing CUDA operation: {name}", stacklevel=2)

    def compute(self, name, function, args, kwargs):
        return function(*args, **kwargs)

    @contextmanager
    def watching(self):
        """Watch the operations, and the methods that read a tensor without one."""
        original = torch.Tensor.tolist

        def tolist(tensor):
            self.wait("tolist")
            return original(tensor)

        torch.Tensor.tolist = tolist
        try:
            with self:
                yield self
        finally:
            torch.Tensor.tolist = original


class RecordedGraph(WatchedWaits):
    """A stand-in for `torch.cuda.CUDAGraph`.

    A repeated operation reads and writes the tensors of the capture, whatever Python has made
    of them since. `launches` counts the kernels by operation.
    """

    captured = None  # a list that gets all graphs

    def __init__(self):
        super().__init__()
        self.operations, self.launches, self.n_replays = [], Counter(), 0
        self.former = {}  # tensors before their first change

    def wait(self, name):
        raise RuntimeError(f"{name}: operation not permitted when stream is capturing")

    def compute(self, name, function, args, kwargs):
        inputs = {memory(tensor) for tensor in tensors((args, kwargs))}
        in_place = name.endswith("_")
        if in_place and memory(args[0]) not in self.former:
            self.former[memory(args[0])] = args[0], args[0].clone()
        results = function(*args, **kwargs)
        new = [t for t in tensors(results) if memory(t) not in inputs]
        if name not in ALLOCATIONS and (in_place or new):
            self.launches[name] += KERNELS.get(name, 1)
            self.operations.append((function, args, kwargs, results, inputs))
        return results

    def replay(self):
        """Repeat all operations; the capture has computed them the first time."""
        self.n_replays += 1
        for function, args, kwargs, results, inputs in self.operations * (self.n_replays > 1):
            again = function(*args, **kwargs)
            for tensor, new in zip(tensors(results), tensors(again), strict=True):
                if memory(tensor) not in inputs:
                    tensor.copy_(new)

    @contextmanager
    def capturing(self):
        """Record the operations; if one fails, nothing has changed, as in a capture."""
        try:
            with self.watching():
                yield
        except RuntimeError:
            for tensor, former in self.former.values():
                tensor.copy_(former)
            raise
        self.former.clear()
        if RecordedGraph.captured is not None:
            RecordedGraph.captured.append(self)


watch = None


def set_sync_debug_mode(mode):
    """Warn of waits, or do not any more."""
    global watch
    if mode == "warn":
        watch = WatchedWaits().watching()
        watch.__enter__()
    else:
        watch.__exit__(None, None, None)


def install(replace=setattr):
    """Let `torch.cuda` make these graphs."""
    replace(torch.cuda, "CUDAGraph", RecordedGraph)
    replace(torch.cuda, "graph", RecordedGraph.capturing)
    replace(torch.cuda, "set_sync_debug_mode", set_sync_debug_mode)
