"""Errors of GPUs are said in one sentence, all others in their own words."""

import pytest
import torch
import torch.distributed as dist

from persistcal.store.jobs import explain, is_full

NCCL = """NCCL error in: ProcessGroupNCCL.cpp:77, unhandled cuda error, NCCL version 2.29
ncclUnhandledCudaError: Call to CUDA function failed.
Last error:
Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 1b000"""


@pytest.mark.parametrize(
    ("error", "full", "quoted"),
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
def test_what_a_gpu_means_is_one_sentence(error, full, quoted):
    assert is_full(error) == full
    said = explain(error)
    if quoted is None:
        assert said == str(error)
    else:
        start = "The GPU's memory holds" if full else "The processes of this training do not"
        assert said.startswith(start) and quoted in said
        assert "\n" not in said and said.endswith(").")
