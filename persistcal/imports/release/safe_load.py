"""Load pickled lists and torch tensors so that nothing else can be loaded.

A pickle is a program: these functions run only programs that build the plain values
they ask for, and refuse all others before the first step.
"""

import io
import pickle
import pickletools
import zipfile
from pathlib import Path
from typing import Any, NoReturn

import torch

# What the pickles of protocols 0 to 5 need for lists, None and strings.
_PLAIN = frozenset(
    "PROTO FRAME STOP MARK POP_MARK NONE EMPTY_LIST LIST APPEND APPENDS EMPTY_TUPLE "
    "UNICODE BINUNICODE SHORT_BINUNICODE BINUNICODE8 "
    "MEMOIZE PUT BINPUT LONG_BINPUT GET BINGET LONG_BINGET".split()
)


class UnsafeFileError(ValueError):
    """A file is damaged or holds something other than plain values."""


class _ListUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> NoReturn:
        raise pickle.UnpicklingError(f"it asks for {module}.{name}")

    def persistent_load(self, pid: object) -> NoReturn:
        raise pickle.UnpicklingError("it asks for a persistent object")


def _check_opcodes(content: bytes) -> None:
    """Refuse opcodes that call, import or reserve memory by a number in the file."""
    for opcode, argument, _ in pickletools.genops(content):
        if opcode.name not in _PLAIN:
            raise pickle.UnpicklingError(f"opcode {opcode.name}")
        if opcode.name == "LONG_BINPUT" and (argument or 0) > len(content):
            raise pickle.UnpicklingError("a memo larger than the file")


def load_lists(path: str | Path, *, depth: int) -> list[Any]:
    """Load a pickle of nested lists of strings.

    Parameters
    ----------
    path : str or Path
        The pickle file.
    depth : int
        Levels of lists: 2 for a list of lists of strings. Entries of the outermost
        list may be None.

    Returns
    -------
    list
        The lists.

    Raises
    ------
    UnsafeFileError
        When the file is damaged or would build or call anything else. Nothing that
        it asks for is called.
    """
    content = Path(path).read_bytes()
    try:
        _check_opcodes(content)
        lists = _ListUnpickler(io.BytesIO(content)).load()
    # A damaged pickle may fail in as many ways as there are opcodes.
    except (pickle.UnpicklingError, ValueError, IndexError, KeyError, EOFError) as error:
        raise UnsafeFileError(
            f"{path}: refused, not a whole pickle of only lists, None and strings ({error})."
        ) from error
    except (TypeError, AttributeError, MemoryError, OverflowError) as error:
        raise UnsafeFileError(f"{path}: refused, a damaged pickle ({error}).") from error
    n_visited = 0

    def check(value: object, level: int, may_be_none: bool) -> None:
        nonlocal n_visited
        # Shared lists nested in each other would otherwise multiply without end.
        n_visited += 1
        if n_visited > len(content):
            raise UnsafeFileError(f"{path}: refused, it holds more entries than bytes.")
        if value is None and may_be_none:
            return
        if not isinstance(value, list if level else str):
            raise UnsafeFileError(
                f"{path}: refused, holds {type(value).__name__} where "
                f"{'a list' if level else 'a string'} belongs."
            )
        if isinstance(value, list):
            for entry in value:
                check(entry, level - 1, may_be_none=level == depth)

    check(lists, depth, may_be_none=False)
    return lists


def _check_plain(value: object, path: str | Path, n_bytes: int) -> None:
    """Refuse anything but dense tensors of numbers in plain containers."""
    waiting, n_visited = [value], 0
    while waiting:
        entry = waiting.pop()
        # Shared lists nested in each other would otherwise multiply without end.
        n_visited += 1
        if n_visited > n_bytes:
            raise UnsafeFileError(f"{path}: refused, it holds more entries than bytes.")
        if type(entry) is torch.Tensor:
            # A tensor may repeat its few stored numbers by strides of zero.
            large = entry.numel() * entry.element_size() > n_bytes
            dense = entry.layout is torch.strided and entry.device.type == "cpu"
            if large or not dense or entry.dtype.is_complex or entry.dtype == torch.bool:
                raise UnsafeFileError(f"{path}: refused, a tensor that is not plain and dense.")
        elif type(entry) is dict:
            waiting += [*entry, *entry.values()]
        elif isinstance(entry, list | tuple):
            waiting += entry
        elif entry is not None and type(entry) not in (str, int, float, bool):
            raise UnsafeFileError(
                f"{path}: refused, holds {type(entry).__name__}, not only tensors of numbers "
                "and plain containers."
            )


def _to_array(value: object) -> object:
    if not isinstance(value, torch.Tensor):
        return value
    wide = torch.float64 if value.dtype.is_floating_point else torch.int64
    return value.detach().to(wide).numpy()


def load_arrays(path: str | Path) -> object:
    """Load what `torch.save` wrote: a tensor, or a dict that holds tensors.

    Parameters
    ----------
    path : str or Path
        File of tensors, dicts, lists, tuples, strings and numbers.

    Returns
    -------
    ndarray, dict or other plain value
        The tensor, or a dict whose tensors are arrays: floats as float64, whole
        numbers as int64.

    Raises
    ------
    UnsafeFileError
        When the file is damaged or holds anything else. Nothing in it is called.
    """
    n_bytes = Path(path).stat().st_size
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
        # torch.save compresses nothing, so a file larger inside than outside is a trap.
        stored = all(entry.compress_type == zipfile.ZIP_STORED for entry in entries)
        if not stored or sum(entry.file_size for entry in entries) > n_bytes:
            raise UnsafeFileError(f"{path}: refused, torch.save does not compress its files.")
        value = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise UnsafeFileError(
            f"{path}: refused, it holds code or objects, not only tensors and plain containers."
        ) from error
    except (zipfile.BadZipFile, RuntimeError, ValueError, EOFError, KeyError) as error:
        if isinstance(error, UnsafeFileError):
            raise
        raise UnsafeFileError(
            f"{path}: refused, not a whole file of torch.save ({str(error).splitlines()[0]})."
        ) from error
    except (TypeError, AttributeError, IndexError, OSError, MemoryError) as error:
        raise UnsafeFileError(f"{path}: refused, a damaged file of torch.save.") from error
    _check_plain(value, path, n_bytes)
    if isinstance(value, dict):
        return {key: _to_array(entry) for key, entry in value.items()}
    return _to_array(value)
