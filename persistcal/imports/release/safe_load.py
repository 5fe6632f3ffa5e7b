"""Load pickled lists and torch tensors so that nothing else can be loaded.

A pickle is a program: its calls and imports are refused, and so are values of other types.
"""

import io
import pickle
from typing import Any, NoReturn

import torch

from persistcal.store.files import FilePath, read_bytes

_PLAIN_TYPES = (str, int, float, bool, type(None))


class UnsafeFileError(ValueError):
    """A file is damaged or contains something other than plain values."""


class _ListUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> NoReturn:
        raise pickle.UnpicklingError(f"it asks for {module}.{name}")


def load_lists(path: FilePath, *, depth: int) -> list[Any]:
    """Load a pickle of lists of strings, nested `depth` levels deep; refuse all else uncalled.

    Entries of the outermost list may be None.
    """
    try:
        lists = _ListUnpickler(io.BytesIO(read_bytes(path))).load()
    # A damaged pickle may fail in as many ways as there are opcodes.
    except Exception as error:
        raise UnsafeFileError(
            f"{path}: refused, not a whole pickle of only lists, None and strings ({error})."
        ) from error
    _check_lists(lists, path, depth)
    return lists


def _check_lists(value: object, path: FilePath, depth: int, level: int = 0) -> None:
    if not isinstance(value, list if level < depth else str):
        raise UnsafeFileError(
            f"{path}: refused, {type(value).__name__} where "
            f"{'a list' if level < depth else 'a string'} belongs."
        )
    if isinstance(value, list):
        for entry in value:
            if not (entry is None and level == 0):
                _check_lists(entry, path, depth, level + 1)


def load_arrays(path: FilePath) -> object:
    """Load what `torch.save` wrote, a tensor or a dict; refuse all else uncalled.

    Tensors become arrays, of float64 or int64.
    """
    try:
        value = torch.load(path, map_location="cpu", weights_only=True)
    # A damaged file may fail in as many ways as there are parts of it.
    except Exception as error:
        (reason, *_) = f"{error}\n".splitlines()
        what = (
            "it contains code or objects, not only tensors and plain containers"
            if isinstance(error, pickle.UnpicklingError)
            else "not a whole file of torch.save"
        )
        raise UnsafeFileError(f"{path}: refused, {what} ({reason}).") from error
    _check_tensors(value, path)
    if isinstance(value, dict):
        return {key: _to_array(entry) for key, entry in value.items()}
    return _to_array(value)


def _check_tensors(value: object, path: FilePath) -> None:
    """Refuse anything but dense tensors of numbers in plain containers."""
    if isinstance(value, list | tuple | dict):
        for entry in [*value, *value.values()] if isinstance(value, dict) else value:
            _check_tensors(entry, path)
    elif type(value) is torch.Tensor:
        odd = value.dtype.is_complex or value.dtype == torch.bool
        if odd or value.layout is not torch.strided:
            raise UnsafeFileError(f"{path}: refused, a tensor that is not plain and dense.")
    elif type(value) not in _PLAIN_TYPES:
        raise UnsafeFileError(
            f"{path}: refused, {type(value).__name__}, not only tensors of numbers and plain "
            "containers."
        )


def _to_array(value: object) -> object:
    if not isinstance(value, torch.Tensor):
        return value
    wide = torch.float64 if value.dtype.is_floating_point else torch.int64
    return value.detach().to(wide).numpy()
