"""Explanations of GPU errors; torch is not imported here, as most jobs need none."""

FULL = (
    "CUDA out of memory",
    "CUDA error: out of memory",
    "CUBLAS_STATUS_ALLOC_FAILED",
    "CUDNN_STATUS_ALLOC_FAILED",
    "MPS backend out of memory",
)


def is_full(error: BaseException) -> bool:
    """Return whether an error of any library means that a GPU's memory is full."""
    if not isinstance(error, RuntimeError):
        return False
    return type(error).__name__ == "OutOfMemoryError" or any(s in str(error) for s in FULL)


def explain(error: BaseException) -> str:
    """Return the message of an error; for a GPU's, a sentence with its cause and remedy."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    if is_full(error):
        return (
            "The GPU's memory holds the model, but not what is computed beside it even for the "
            "smallest batch; use a larger GPU, or several that share the model, or a smaller "
            f"batch_size ({lines[0]})."
        )
    # DistBackendError and its like; NCCL's own lines say more than the first one.
    if isinstance(error, RuntimeError) and "NCCL" in str(error):
        return (
            "The processes of this training do not reach each other over NCCL; each needs a "
            "GPU of its own and a network to the others, and NCCL_DEBUG=INFO says more "
            f"({'; '.join(dict.fromkeys([lines[0], lines[-1]]))})."
        )
    return str(error)
