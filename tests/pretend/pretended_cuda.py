"""Pretended GPUs: PyTorch's CPU build computes on "cuda" as if the machine had GPUs.

`start` loads `cuda.cpp` in place of the driver below `torch.cuda`. The library is built once
for each version of the file and of torch. Tensors are then on "cuda:0" and so on, in limited
memory. Operators refuse tensors of several devices, like CUDA's operators, and compute with
the CPU's kernels. Ranks over "nccl" need a GPU each (`pretended_nccl`). A Python with
``tests/pretend/site`` on its PYTHONPATH starts with PRETEND_GPUS GPUs.

Graphs repeat operations (`recorded_graphs`).

It cannot show how fast a GPU is; which kernels it has, how they round, and whether they do so
the same twice (attention is plain products here); streams and pinned memory; fragments
and workspaces, which take memory as well; random numbers drawn on a GPU, which are the CPU's;
`torch.load` onto one; NCCL and vLLM.
"""

import ctypes
import os
import shutil
import subprocess
import sys
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace

import pretended_nccl
import recorded_graphs
import torch
from filelock import FileLock

HERE = Path(__file__).parent
GIGABYTES = 4
# -O1: most of the time is spent in torch's kernels and in the compiler.
COMMAND = "g++ -std=c++20 -O1 -fPIC -shared -isystem {torch}/include {source} -o {target} "
COMMAND += "-L{torch}/lib -lc10 -ltorch_cpu"


def why_not():
    """Return the reason why GPUs cannot be pretended here, or an empty string."""
    if not sys.platform.startswith("linux"):
        return "pretended GPUs are built on Linux only"
    if torch.version.cuda or torch.version.hip:
        return "this PyTorch is built for GPUs"
    return "" if shutil.which("g++") else "g++ is not installed (see `make test-packages`)"


def build():
    """Return the path of the library; the first build takes a quarter of a minute."""
    source = HERE / "cuda.cpp"
    version = f"{COMMAND} {torch.__version__}".encode()
    name = f"pretended_cuda_{sha256(version + source.read_bytes()).hexdigest()[:16]}.so"
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "persistcal")
    cache.mkdir(parents=True, exist_ok=True)
    with FileLock(cache / "pretended_cuda.lock"):
        if not (cache / name).exists():
            part = cache / f"{name}.part"
            values = {"torch": Path(torch.__file__).parent, "source": source, "target": part}
            words = [word.format(**values) for word in COMMAND.split()]
            done = subprocess.run(words, capture_output=True, text=True, check=False)
            assert done.returncode == 0, f"{source} does not compile:\n{done.stderr[-3000:]}"
            part.rename(cache / name)
    return cache / name


class Driver:
    """The functions of a CUDA build below `torch.cuda`, by their names in `torch._C`.

    CUDA_VISIBLE_DEVICES is read at the first call that NVML cannot answer.
    """

    def __init__(self, library, n_gpus, capability):
        self.library, self.capability = library, capability
        self.all = [str(gpu) for gpu in range(n_gpus)]
        self.seen = None
        self.total = GIGABYTES * 10**9
        self.of_torch = {
            "_cuda_init": self.init,
            "_cuda_getDeviceCount": lambda: len(self.begin()),
            "_cuda_getDevice": library.current_gpu,
            "_cuda_setDevice": self.set_device,
            "_cuda_exchangeDevice": self.exchange_device,
            "_cuda_maybeExchangeDevice": self.exchange_device,
            "_cuda_synchronize": lambda: None,
            "_cuda_emptyCache": lambda: None,
            "_cuda_ipc_collect": lambda: None,
            "_cuda_isCurrentStreamCapturing": lambda: False,
            "_cuda_setMemoryFraction": lambda f, gpu: library.limit(gpu, int(f * self.total)),
            "_cuda_resetPeakMemoryStats": library.forget_most_used,
            "_cuda_memoryStats": self.memory_stats,
        }

    def begin(self):
        if self.seen is None:
            visible = os.environ.get("CUDA_VISIBLE_DEVICES", ",".join(self.all)).split(",")
            self.seen = [gpu for gpu in visible if gpu in self.all]
            self.library.start(len(self.seen))
            for gpu in range(len(self.seen)):
                self.library.limit(gpu, self.total)
            torch.cuda.default_generators = (torch.default_generator,) * len(self.seen)
        return self.seen

    def init(self):
        if not self.begin():
            raise RuntimeError("No CUDA GPUs are available")

    def set_device(self, gpu):
        if gpu >= len(self.begin()):
            raise RuntimeError("CUDA error: invalid device ordinal")
        self.library.set_current_gpu(gpu)

    def exchange_device(self, gpu):
        former = self.library.current_gpu()
        if gpu >= 0:
            self.set_device(gpu)
        return former

    def memory_stats(self, gpu):
        taken = {"current": self.library.used(gpu), "peak": self.library.most_used(gpu)}
        return {"allocated_bytes": {"all": taken}, "reserved_bytes": {"all": taken}}

    def cudaMemGetInfo(self, gpu):  # noqa: N802 - the name in CUDA's runtime
        return self.total - self.library.used(gpu), self.total

    def properties(self, device=None):
        description = {
            "name": "pretended GPU",
            "total_memory": self.total,
            "multi_processor_count": 132,
        }
        return SimpleNamespace(
            **description, major=self.capability[0], minor=self.capability[1]
        )


driver = None  # once started


def start(n_gpus, capability=(9, 0)):
    """Give this process GPUs; before anything asks torch for them."""
    global driver
    library = ctypes.CDLL(str(build()))
    for name in ("kernels", "used", "most_used"):
        getattr(library, name).restype = ctypes.c_int64
    library.limit.argtypes = [ctypes.c_int, ctypes.c_int64]
    library.fail_after.argtypes = [ctypes.c_int64, ctypes.c_char_p]
    driver = Driver(library, n_gpus, capability)
    import torch._dynamo  # it must look for CUDA before the start

    for name, function in driver.of_torch.items():
        setattr(torch._C, name, function)
    cuda = torch.cuda
    cuda._cudart = driver
    cuda._exchange_device = driver.exchange_device
    cuda._maybe_exchange_device = driver.exchange_device
    cuda.get_device_properties = driver.properties
    cuda._raw_device_count_nvml = lambda: n_gpus
    cuda.Stream = cuda.Event = Idle
    cuda.current_stream = cuda.default_stream = Idle
    recorded_graphs.install()
    torch.backends.cuda.is_built = lambda: True
    of_host = torch.UntypedStorage.clone
    torch.UntypedStorage.clone = lambda s: clone(s) if s.device.type == "cuda" else of_host(s)
    pretended_nccl.start(lambda: driver.begin()[library.current_gpu()])


def clone(storage):
    """Copy a storage, as `copy.deepcopy` does; this build can make none for a GPU."""
    empty = torch.empty(0, dtype=torch.uint8, device=storage.device)
    return empty.set_(storage, 0, (storage.nbytes(),), (1,)).clone().untyped_storage()


class Idle:
    """A stream or an event; all its work is done at once."""

    def __init__(self, *_, **__):
        self.cuda_stream = self.stream_id = 0

    def __getattr__(self, name):
        return lambda *_, **__: True

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


@contextmanager
def limited(n_bytes, gpu=0):
    """Leave only `n_bytes` of a GPU's memory free in the ``with`` block."""
    driver.library.limit(gpu, driver.library.used(gpu) + n_bytes)
    try:
        yield
    finally:
        driver.library.limit(gpu, driver.total)


@contextmanager
def failing(n_kernels, message=None):
    """Fail once, after so many kernels: for lack of memory, or with a message of CUDA's."""
    driver.library.fail_after(n_kernels, message and message.encode())
    try:
        yield
    finally:
        driver.library.fail_after(-1, None)
