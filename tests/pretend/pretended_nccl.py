"""NCCL's rules over gloo: each rank needs its GPU, and tensors must be on GPUs.

Sums are in another order than NCCL's, and the speed is not NCCL's.
"""

import socket

import torch.distributed as dist


def start(own_gpu):
    """Let ranks join over "nccl"; `own_gpu` returns the number of a rank's GPU."""
    join, leave = dist.init_process_group, dist.destroy_process_group
    state = {"nccl": False}

    def init_process_group(backend=None, device_id=None, **options):
        state["nccl"] = backend == "nccl"
        join("gloo" if state["nccl"] else backend, **options)
        if state["nccl"]:
            taken = [None] * dist.get_world_size()
            dist.all_gather_object(taken, f"GPU {own_gpu()} of {socket.gethostname()}")
            if len(set(taken)) < len(taken):
                raise dist.DistBackendError(f"NCCL error: Duplicate GPU detected: {taken}")

    def destroy_process_group(*arguments):
        state["nccl"] = False
        leave(*arguments)

    def over_host(collective):
        def call(tensor, *arguments, **options):
            if not state["nccl"]:
                return collective(tensor, *arguments, **options)
            if tensor.device.type != "cuda":
                raise RuntimeError("No backend type associated with device type cpu")
            if not tensor.is_contiguous():
                raise ValueError("Tensors must be contiguous")
            of_host = tensor.cpu()
            collective(of_host, *arguments, **options)
            tensor.copy_(of_host)

        return call

    backend_of = dist.get_backend
    dist.init_process_group = init_process_group
    dist.destroy_process_group = destroy_process_group
    dist.all_reduce = over_host(dist.all_reduce)
    dist.broadcast = over_host(dist.broadcast)
    dist.get_backend = lambda *group: "nccl" if state["nccl"] else backend_of(*group)
