"""Small files that would take gigabytes: each is refused within 300 MB, and named."""

import io
import json
import pickle
import subprocess
import sys
import tarfile
import zipfile

import pyarrow as pa
import pytest
import torch

from persistcal.imports.release.safe_archive import ArchiveError, unpack

pytestmark = pytest.mark.slow

# Opened one after the other in a process that may not grow by more than 300 MB.
OPEN = """
import json, pathlib, resource, sys
from persistcal.imports.release import safe_archive, safe_load
folder = pathlib.Path(sys.argv[1])
size = int(pathlib.Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (size + 300 * 2**20,) * 2)
safe_load.MAX_STEPS = 2**18  # of which there are 2**25, so that the test is fast
said = {}
for path in sorted(folder.iterdir()):
    try:
        if path.suffix == ".pkl":
            safe_load.load_lists(path, depth=3)
        elif path.suffix == ".pt":
            safe_load.load_arrays(path)
        else:
            out = folder.parent / "out" / path.name
            out.mkdir(parents=True)
            safe_archive.unpack(path, out, below="results/conset")
        said[path.name] = "took it"
    except (safe_archive.ArchiveError, safe_load.UnsafeFileError) as error:
        said[path.name] = str(error)
    except BaseException as error:
        said[path.name] = f"raw {type(error).__name__}"
print(json.dumps(said))
"""
MEGABYTE = bytes(2**20)


class Bytes:
    def __reduce__(self):
        return bytearray, (2**33,)


def header(kind, size, name="results/conset/file"):
    member = tarfile.TarInfo(name)
    member.type, member.size = kind, size
    return member.tobuf(tarfile.GNU_FORMAT)


def sparse_header(*, extended):
    """A header of the old GNU kind; its flag says whether a map of the file follows."""
    block = bytearray(header(tarfile.GNUTYPE_SPARSE, 0))
    block[482] = extended
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block)


def pax(records, content=b""):
    """A file with such records in its pax header."""
    member = tarfile.TarInfo("results/conset/file")
    member.size, member.pax_headers = len(content), records
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.PAX_FORMAT) as tar:
        tar.addfile(member, io.BytesIO(content))
    return raw.getvalue()


def write_tar(path, *parts):
    with pa.output_stream(path, compression="zstd") as stream:
        for part in parts:
            stream.write(part)


def write_pt(path, program, **entries):
    """A file of torch.save with another pickle in it."""
    raw = io.BytesIO()
    torch.save(torch.ones(2), raw)
    with zipfile.ZipFile(raw) as good, zipfile.ZipFile(path, "w") as file:
        for entry in good.infolist():
            content = good.read(entry)
            file.writestr(entry, program if entry.filename.endswith("data.pkl") else content)
        for name, content in entries.items():
            file.writestr(name, content)


SPARSE_1 = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.realsize": "9"}
REFUSED = {
    "put.pkl": "a memo with gaps",
    "negative_put.pkl": "a memo with gaps",
    "binput.pkl": "a memo with gaps",
    "lists.pkl": "more than 262,144 steps",
    "large.pkl": "it is larger than 67,108,864 bytes",
    "bytearray.pt": "it holds code or objects, .* (__builtin__ bytearray)",
    "lists.pt": "more than 262,144 steps",
    "cycle.pt": "it holds more entries than bytes",
    "large.pt": "it is larger than 67,108,864 bytes",
    "long_name.tar.zst": "a member's headers are larger than 262,144 bytes",
    "pax.tar.zst": "a member's headers are larger than 262,144 bytes",
    "sparse_map.tar.zst": "a member's headers are larger than 262,144 bytes",
    "sparse_old.tar.zst": "a member's headers are larger than 262,144 bytes",
    "chain.tar.zst": "damaged or not a .tar.zst (maximum recursion depth",
    "global.tar.zst": "it has global headers",
    "negative.tar.zst": "has a negative size",
    "negative_sparse.tar.zst": "has a negative size",
    "sparse.tar.zst": "is neither a file nor a folder",
    "not_a_number.tar.zst": "damaged or not a .tar.zst (invalid literal for int()",
}


@pytest.fixture(scope="module")
def said(tmp_path_factory, request):
    folder = tmp_path_factory.mktemp("hostile") / "in"
    folder.mkdir()
    (folder / "put.pkl").write_bytes(b"(lp2147483646\n.")
    (folder / "negative_put.pkl").write_bytes(b"(lp-2147483646\n.")
    (folder / "binput.pkl").write_bytes(b"]" * 100 + b"r\x63\0\0\x01" + b"." * 2**25)
    (folder / "lists.pkl").write_bytes(b"\x80\x04(" + b"]" * 2**25 + b"l.")
    with (folder / "large.pkl").open("wb") as file:
        file.truncate(2**26 + 1)
    write_pt(folder / "bytearray.pt", pickle.dumps({"a": Bytes()}, protocol=2))
    write_pt(folder / "lists.pt", b"\x80\x02(" + b"]" * 2**25 + b"l.")
    write_pt(folder / "cycle.pt", b"\x80\x02]q\x00(" + b"h\x00" * 2**16 + b"e.")  # of itself
    with (folder / "large.pt").open("wb") as file:
        file.truncate(2**26 + 1)

    def tar(name, *parts):
        write_tar(folder / f"{name}.tar.zst", *parts)

    tar("long_name", header(tarfile.GNUTYPE_LONGNAME, 2**30), *[MEGABYTE] * 2**10)
    tar("pax", header(tarfile.XHDTYPE, 2**30), *[MEGABYTE] * 2**10)
    tar("sparse_map", pax(SPARSE_1, b"9999999999\n" + b"0\n" * 2**21))
    extended = bytes(504) + b"\x01" + bytes(7)  # a map that goes on in the next block
    tar("sparse_old", sparse_header(extended=1), *[extended * 2**11] * 2**9)
    tar("chain", header(tarfile.XHDTYPE, 0) * 2**20)
    tar("global", header(tarfile.XGLTYPE, 20), b"19 comment=" + bytes(501), pax({}, b"x"))
    tar("negative", pax({"size": "-1000000"}), pax({}, b"x"))
    tar("negative_sparse", pax({"GNU.sparse.map": "0,1", "GNU.sparse.size": "-1000000"}))
    tar("sparse", pax({"GNU.sparse.map": "0,1", "GNU.sparse.size": "1"}, b"x"))
    tar("not_a_number", pax({"GNU.sparse.map": "0,1", "GNU.sparse.size": "one"}))
    done = subprocess.run(
        [sys.executable, "-c", OPEN, str(folder)],
        cwd=request.config.rootpath,
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("name", REFUSED)
def test_refused_by_name_before_it_takes_memory(said, name):
    start, reason = said[name].split(": ", 1)
    assert start.endswith(name)
    for part in REFUSED[name].split(".* "):
        assert part in reason


def named(name):
    member = tarfile.TarInfo(f"results/conset/{name}")
    return [member.tobuf(tarfile.PAX_FORMAT), bytes(1024)]


GOOD, SECOND = (header(tarfile.REGTYPE, 0, f"results/conset/{name}") for name in "ab")


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        # another checksum, which does not end the archive
        ([GOOD, SECOND[:150] + b"9" + SECOND[151:], GOOD, bytes(1024)], "truncated, damaged"),
        ([GOOD], "truncated, damaged"),  # without its end
        *((named(name), "too long") for name in ("a" * 256, "é" * 128, "a/" * 600)),
    ],
)
def test_damaged_headers_and_names_that_no_disk_takes_are_refused(tmp_path, parts, reason):
    (tmp_path / "out").mkdir()
    write_tar(tmp_path / "x.tar.zst", *parts)
    with pytest.raises(ArchiveError, match=rf"x\.tar\.zst: .*{reason}"):
        unpack(tmp_path / "x.tar.zst", tmp_path / "out", below="results/conset")
