"""Load pickled lists and torch tensors so that nothing else can be loaded.

A pickle is a program: these functions run only programs that build the plain values
they ask for, and refuse all others before the first step.
"""

import io
import pickle
import pickletools
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import torch

MAX_BYTES = 2**26  # a file of the release has a few million
MAX_STEPS = 2**23  # of a pickle; a list of strings takes about three for each string

# What the pickles of protocols 0 to 5 need for lists, None and strings.
_PLAIN = frozenset(
    "PROTO FRAME STOP MARK POP_MARK NONE EMPTY_LIST LIST APPEND APPENDS EMPTY_TUPLE "
    "UNICODE BINUNICODE SHORT_BINUNICODE BINUNICODE8 "
    "MEMOIZE PUT BINPUT LONG_BINPUT GET BINGET LONG_BINGET".split()
)
# What torch.save needs for tensors. Others that torch takes for safe can reserve memory at
# will: bytearray(2**33).
_TENSOR_PARTS = re.compile(
    r"collections OrderedDict|torch\._utils _rebuild_tensor_v2|torch \w+Storage"
)


class UnsafeFileError(ValueError):
    """A file is damaged or holds something other than plain values."""


class _ListUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> NoReturn:
        raise pickle.UnpicklingError(f"it asks for {module}.{name}")

    def persistent_load(self, pid: object) -> NoReturn:
        raise pickle.UnpicklingError("it asks for a persistent object")


def _size(path: str | Path) -> int:
    n_bytes = Path(path).stat().st_size
    if n_bytes > MAX_BYTES:
        raise UnsafeFileError(f"{path}: refused, it is larger than {MAX_BYTES:,} bytes.")
    return n_bytes


def _steps(content: bytes) -> Iterator[tuple[str, Any]]:
    """Yield the name and argument of each step of a pickle; refuse those without end."""
    for count, (opcode, argument, _) in enumerate(pickletools.genops(content)):
        if count == MAX_STEPS:
            raise pickle.UnpicklingError(f"more than {MAX_STEPS:,} steps")
        yield opcode.name, argument


def _check_lists(content: bytes) -> None:
    """Refuse steps that call, import or reserve memory by a number in the file."""
    n_kept = 0
    for name, argument in _steps(content):
        if name not in _PLAIN:
            raise pickle.UnpicklingError(f"opcode {name}")
        if name in ("MEMOIZE", "PUT", "BINPUT", "LONG_BINPUT"):
            # Places are given in turn, and there is room for the highest one.
            if argument is not None and not 0 <= argument <= n_kept:
                raise pickle.UnpicklingError("a memo with gaps")
            n_kept += 1


def _check_tensors(content: bytes) -> None:
    """Refuse names other than those that a tensor is put together from."""
    for name, argument in _steps(content):
        if name == "GLOBAL" and not _TENSOR_PARTS.fullmatch(argument):
            raise pickle.UnpicklingError(argument)


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
    _size(path)
    content = Path(path).read_bytes()
    try:
        _check_lists(content)
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
    waiting, n_visited, n_held = [value], 0, 0
    while waiting:
        entry = waiting.pop()
        # Shared lists nested in each other would otherwise multiply without end.
        n_visited += 1
        if n_visited > n_bytes:
            raise UnsafeFileError(f"{path}: refused, it holds more entries than bytes.")
        if type(entry) is torch.Tensor:
            # Tensors may repeat few stored numbers, by strides of zero or as several views.
            n_held += entry.numel() * entry.element_size()
            dense = entry.layout is torch.strided and entry.device.type == "cpu"
            if (
                n_held > n_bytes
                or not dense
                or entry.dtype.is_complex
                or entry.dtype == torch.bool
            ):
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
    n_bytes = _size(path)
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
            # torch.save compresses nothing, so a file larger inside than outside is a trap.
            stored = all(entry.compress_type == zipfile.ZIP_STORED for entry in entries)
            if not stored or sum(entry.file_size for entry in entries) > n_bytes:
                raise UnsafeFileError(
                    f"{path}: refused, torch.save does not compress its files."
                )
            pickles = [entry for entry in entries if entry.filename.endswith(".pkl")]
            if len(pickles) != 1:
                raise UnsafeFileError(f"{path}: refused, it holds {len(pickles)} pickles.")
            _check_tensors(archive.read(pickles[0]))
        value = torch.load(path, map_location="cpu", weights_only=True)
    except UnsafeFileError:
        raise
    # A damaged file may fail in as many ways as there are parts of it.
    except Exception as error:
        (reason, *_) = f"{error}\n".splitlines()
        what = (
            "it holds code or objects, not only tensors and plain containers"
            if isinstance(error, pickle.UnpicklingError)
            else "not a whole file of torch.save"
        )
        raise UnsafeFileError(f"{path}: refused, {what} ({reason}).") from error
    _check_plain(value, path, n_bytes)
    if isinstance(value, dict):
        return {key: _to_array(entry) for key, entry in value.items()}
    return _to_array(value)
