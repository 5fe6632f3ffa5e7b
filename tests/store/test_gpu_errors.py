"""Errors of GPUs are explained in one sentence; other errors keep their message."""

import pytest
import torch
import torch.distributed as dist

from persistcal.store.jobs import explain, is_full

NCCL = """NCCL error in: ProcessGroupNCCL.cpp:77, unhandled cuda error, NCCL version 2.29
ncclUnhandledCudaError: Call to CUDA function failed.
Last error:
Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 1b000"""


@pytest.mark.parametrize(
    ("error", "memory_is_full", "quotation"),
    [
        (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB"), True, "2 GiB)"),
        (RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when x"), True, "CUBLAS_STATUS"),
        (RuntimeError("CUDA error: out of memory\nCUDA kernel might"), True, "out of memory)"),
        (dist.DistBackendError(NCCL), False, "both on CUDA device 1b000"),
        (RuntimeError("shape mismatch\nof two lines"), False, None),
        (ValueError("CUDA out of memory is a question of the quiz"), False, None),
        (MemoryError("One question alone does not fit"), False, None),
    ],
)
def test_a_gpu_error_becomes_one_sentence_with_a_quotation(error, memory_is_full, quotation):
    assert is_full(error) == memory_is_full
    message = explain(error)
    if quotation is None:
        assert message == str(error)
        return
    memory, processes = "The GPU's memory holds", "The processes of this training do not"
    assert message.startswith(memory if memory_is_full else processes)
    assert quotation in message and "\n" not in message and message.endswith(").")
