"""NCCL's manners over gloo: a GPU for each rank, and tensors of GPUs only.

It sums in another order than NCCL does, and shows nothing of its speed.
"""

import socket

import torch.distributed as dist


def start(own_gpu):
    """Let ranks join over "nccl"; `own_gpu` returns the number of a rank's GPU."""
    join, leave = dist.init_process_group, dist.destroy_process_group
    state = {"nccl": False}

    def init_process_group(backend=None, device_id=None, **how):
        state["nccl"] = backend == "nccl"
        join("gloo" if state["nccl"] else backend, **how)
        if state["nccl"]:
            taken = [None] * dist.get_world_size()
            dist.all_gather_object(taken, f"GPU {own_gpu()} of {socket.gethostname()}")
            if len(set(taken)) < len(taken):
                raise dist.DistBackendError(f"NCCL error: Duplicate GPU detected: {taken}")

    def destroy_process_group(*arguments):
        state["nccl"] = False
        leave(*arguments)

    def over_host(collective):
        def call(tensor, *arguments, **how):
            if not state["nccl"]:
                return collective(tensor, *arguments, **how)
            if tensor.device.type != "cuda":
                raise RuntimeError("No backend type associated with device type cpu")
            if not tensor.is_contiguous():
                raise ValueError("Tensors must be contiguous")
            of_host = tensor.cpu()
            collective(of_host, *arguments, **how)
            tensor.copy_(of_host)

        return call

    backend_of = dist.get_backend
    dist.init_process_group = init_process_group
    dist.destroy_process_group = destroy_process_group
    dist.all_reduce = over_host(dist.all_reduce)
    dist.broadcast = over_host(dist.broadcast)
    dist.get_backend = lambda *group: "nccl" if state["nccl"] else backend_of(*group)
