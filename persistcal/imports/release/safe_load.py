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
from typing import Any, NoReturn

import torch

from persistcal.store.files import FilePath, read_bytes, size

MAX_BYTES = 2**26  # a file of the release has a few million
MAX_STEPS = 2**23  # of a pickle; a list of strings takes about three for each string

_REMEMBER = frozenset("MEMOIZE PUT BINPUT LONG_BINPUT".split())
# What the pickles of protocols 0 to 5 need for lists, None and strings.
_PLAIN = _REMEMBER | set(
    "PROTO FRAME STOP MARK POP_MARK NONE EMPTY_LIST LIST APPEND APPENDS EMPTY_TUPLE "
    "UNICODE BINUNICODE SHORT_BINUNICODE BINUNICODE8 GET BINGET LONG_BINGET".split()
)
# What torch.save needs for tensors. Others that torch takes for safe can reserve memory at
# will: bytearray(2**33).
_TENSOR_PARTS = re.compile(
    r"collections OrderedDict|torch\._utils _rebuild_tensor_v2|torch \w+Storage"
)

_PLAIN_TYPES = (dict, str, int, float, bool, type(None))


class UnsafeFileError(ValueError):
    """A file is damaged or holds something other than plain values."""


class _ListUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> NoReturn:
        raise pickle.UnpicklingError(f"it asks for {module}.{name}")


def _size(path: FilePath) -> int:
    n_bytes = size(path)
    if n_bytes > MAX_BYTES:
        raise UnsafeFileError(f"{path}: refused, it is larger than {MAX_BYTES:,} bytes.")
    return n_bytes


def _check_steps(content: bytes, *, plain: bool) -> None:
    """Refuse a pickle with steps that import, call or reserve memory, before the first runs.

    A `plain` one builds lists of strings, another one tensors, by the steps that torch takes.
    """
    n_kept = 0
    for count, (opcode, argument, _) in enumerate(pickletools.genops(content)):
        if count == MAX_STEPS:
            raise pickle.UnpicklingError(f"more than {MAX_STEPS:,} steps")
        if plain and opcode.name not in _PLAIN:
            raise pickle.UnpicklingError(f"opcode {opcode.name}")
        if opcode.name == "GLOBAL" and not _TENSOR_PARTS.fullmatch(str(argument)):
            raise pickle.UnpicklingError(argument)
        if opcode.name in _REMEMBER:
            # Places are given in turn, and there is room for the highest one.
            if argument is not None and not 0 <= int(argument) <= n_kept:
                raise pickle.UnpicklingError("a memo with gaps")
            n_kept += 1


def _entries(value: object, path: FilePath, n_bytes: int) -> Iterator[tuple[object, int]]:
    """Yield what nested containers hold, themselves included, and at which level.

    Shared lists nested in each other would otherwise multiply without end.
    """
    waiting, n_entries = [(value, 0)], 1
    while waiting:
        entry, level = waiting.pop()
        yield entry, level
        inside: list[object] = list(entry) if isinstance(entry, list | tuple | dict) else []
        if isinstance(entry, dict):
            inside += entry.values()
        if (n_entries := n_entries + len(inside)) > n_bytes:
            raise UnsafeFileError(f"{path}: refused, it holds more entries than bytes.")
        waiting += [(each, level + 1) for each in inside]


def load_lists(path: FilePath, *, depth: int) -> list[Any]:
    """Load a pickle of lists of strings, nested `depth` levels deep; refuse all else uncalled.

    Entries of the outermost list may be None.
    """
    _size(path)
    content = read_bytes(path)
    try:
        _check_steps(content, plain=True)
        lists = _ListUnpickler(io.BytesIO(content)).load()
    # A damaged pickle may fail in as many ways as there are opcodes.
    except (pickle.UnpicklingError, ValueError, IndexError, KeyError, EOFError) as error:
        raise UnsafeFileError(
            f"{path}: refused, not a whole pickle of only lists, None and strings ({error})."
        ) from error
    except (TypeError, AttributeError, MemoryError, OverflowError) as error:
        raise UnsafeFileError(f"{path}: refused, a damaged pickle ({error}).") from error
    for entry, level in _entries(lists, path, len(content)):
        fits = isinstance(entry, list if level < depth else str)
        if not fits and not (entry is None and level == 1):
            raise UnsafeFileError(
                f"{path}: refused, holds {type(entry).__name__} where "
                f"{'a list' if level < depth else 'a string'} belongs."
            )
    return lists


def load_arrays(path: FilePath) -> object:
    """Load what `torch.save` wrote, a tensor or a dict; refuse all else uncalled.

    Tensors become arrays, of float64 or int64.
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
            _check_steps(archive.read(pickles[0]), plain=False)
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
    _check_tensors(value, path, n_bytes)
    if isinstance(value, dict):
        return {key: _to_array(entry) for key, entry in value.items()}
    return _to_array(value)


def _check_tensors(value: object, path: FilePath, n_bytes: int) -> None:
    """Refuse anything but dense tensors of numbers in plain containers."""
    n_held = 0
    for entry, _ in _entries(value, path, n_bytes):
        if type(entry) is torch.Tensor:
            # Tensors may repeat few stored numbers, by strides of zero or as several views.
            n_held += entry.numel() * entry.element_size()
            dense = entry.layout is torch.strided and entry.device.type == "cpu"
            odd = entry.dtype.is_complex or entry.dtype == torch.bool
            if n_held > n_bytes or not dense or odd:
                raise UnsafeFileError(f"{path}: refused, a tensor that is not plain and dense.")
        elif not isinstance(entry, list | tuple) and type(entry) not in _PLAIN_TYPES:
            raise UnsafeFileError(
                f"{path}: refused, holds {type(entry).__name__}, not only tensors of numbers "
                "and plain containers."
            )


def _to_array(value: object) -> object:
    if not isinstance(value, torch.Tensor):
        return value
    wide = torch.float64 if value.dtype.is_floating_point else torch.int64
    return value.detach().to(wide).numpy()
