"""Archives from elsewhere: unpacked without running code or writing outside the folder."""

import hashlib
import os
import pickle
import tarfile

import numpy as np
import pytest
import torch
from release_archive import Hostile, compress, tar_of

from reproduce.release_files import (
    ArchiveError,
    UnsafeFileError,
    check_digest,
    load_arrays,
    load_lists,
    unpack,
)

HEX = hashlib.sha256(b"archive").hexdigest()


@pytest.fixture
def archive(tmp_path):
    path = tmp_path / "a.tar.zst"
    path.write_bytes(b"archive")
    return path


@pytest.mark.parametrize(
    "text",
    [HEX, f"{HEX}\n", f"{HEX.upper()}  a.tar.zst\n", f"{HEX} *dist/a.tar.zst\n",
     f"{'0' * 64}  b.tar.zst\n{HEX}  a.tar.zst\n", f"{HEX}  renamed.tar.zst\n"],
)  # fmt: skip
def test_an_archive_with_the_published_digest_is_accepted(archive, text):
    digest = archive.with_name("a.sha256")
    digest.write_text(text)
    check_digest(archive, digest)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"{'0' * 64}  a.tar.zst", rf"its sha256 is {HEX} but a\.sha256 has 0000"),
        ("", r"a\.sha256: has no sha256 of a\.tar\.zst"),
        (HEX[:-1], r"has no sha256 of a\.tar\.zst"),
        (f"{HEX}  b.tar.zst\n{HEX}  c.tar.zst", r"has no sha256 of a\.tar\.zst"),
        ("<!DOCTYPE html>", r"has no sha256 of a\.tar\.zst"),
    ],
)
def test_an_archive_with_another_or_no_digest_is_refused(archive, text, message):
    digest = archive.with_name("a.sha256")
    digest.write_text(text)
    with pytest.raises(ArchiveError, match=message):
        check_digest(archive, digest)


def test_a_missing_digest_or_archive_is_refused_with_a_remedy(archive):
    with pytest.raises(ArchiveError, match=r"a\.sha256: no such file; download it"):
        check_digest(archive, archive.with_name("a.sha256"))
    with pytest.raises(ArchiveError, match=r"b\.tar\.zst: no such file; download it"):
        check_digest(archive.with_name("b.tar.zst"), archive)


def unpacked(tmp_path, content):
    (tmp_path / "in.tar.zst").write_bytes(content)
    (tmp_path / "out").mkdir()
    return unpack(tmp_path / "in.tar.zst", tmp_path / "out", below="results/conset")


MEMBER = ("results/conset/quiz/file", bytes(range(256)) * 40, {})


def test_files_are_unpacked_exactly(tmp_path):
    folder = ("./results/conset", b"", {"type": tarfile.DIRTYPE})
    long = ("results/conset/" + "long/" * 60 + "name", b"x", {})
    assert unpacked(tmp_path, compress(tar_of(folder, MEMBER, long))) == 2
    assert (tmp_path / "out" / MEMBER[0]).read_bytes() == MEMBER[1]
    assert (tmp_path / "out" / long[0]).read_bytes() == b"x"


def test_archives_of_several_frames_are_unpacked_completely(tmp_path):
    content = tar_of(MEMBER)
    assert unpacked(tmp_path, compress(content[:5000]) + compress(content[5000:])) == 1
    assert (tmp_path / "out" / MEMBER[0]).read_bytes() == MEMBER[1]


@pytest.mark.parametrize(
    ("name", "attributes", "message"),
    [
        ("results/conset/../../../outside", {}, "would be extracted to"),
        ("../outside", {}, "lies outside results/conset/"),
        ("/tmp/outside", {}, "lies outside results/conset/"),
        ("results/conset/s", {"type": tarfile.SYMTYPE, "linkname": "/etc"}, "is neither a"),
        ("results/conset/h", {"type": tarfile.LNKTYPE, "linkname": MEMBER[0]}, "is neither a"),
        ("results/conset/d", {"type": tarfile.CHRTYPE}, "is neither a file nor a folder"),
        ("results/conset/p", {"type": tarfile.FIFOTYPE}, "is neither a file nor a folder"),
        ("results/other/file", {}, "lies outside results/conset/"),
        ("results/conset", {}, "lies outside results/conset/"),
        ("outside", {"type": tarfile.DIRTYPE}, "lies outside results/conset/"),
        (MEMBER[0], {}, "is there twice"),
    ],
)
def test_hostile_members_are_refused(tmp_path, name, attributes, message):
    content = compress(
        tar_of(MEMBER, (name, b"" if "type" in attributes else b"bad", attributes))
    )
    with pytest.raises(ArchiveError, match=rf"in\.tar\.zst: refused, .* {message}"):
        unpacked(tmp_path, content)
    written = {p.relative_to(tmp_path) for p in tmp_path.rglob("*") if not p.is_dir()}
    assert {str(path) for path in written} == {"in.tar.zst", f"out/{MEMBER[0]}"}


def flip_byte(content, position):
    content = bytearray(content)
    content[position] ^= 0xFF
    return bytes(content)


PACKED = compress(tar_of(("results/conset/noise", os.urandom(50_000), {})))
SHORT = compress(tar_of(MEMBER))


@pytest.mark.parametrize(
    "content",
    [
        *(PACKED[:n] for n in (0, 3, len(PACKED) // 5, len(PACKED) * 9 // 10, -1)),
        *(flip_byte(SHORT, position) for position in (0, 5, -3)),
        *(b"not an archive", tar_of(MEMBER), compress(b"no tar" * 200)),
    ],
    ids=range(11),
)
def test_truncated_damaged_and_other_archives_are_refused(tmp_path, content):
    with pytest.raises(ArchiveError, match=r"in\.tar\.zst: truncated, damaged or not a \.tar"):
        unpacked(tmp_path, content)


@pytest.fixture
def sentinel(tmp_path):
    path = tmp_path / "sentinel"
    pickle.loads(pickle.dumps(Hostile(path)))
    assert path.exists()  # an unsafe loader would make it
    path.unlink()
    yield path
    assert not path.exists()


@pytest.mark.parametrize("protocol", [0, 2, 4])
def test_pickled_calls_are_refused(tmp_path, sentinel, protocol):
    path = tmp_path / "x.pkl"
    path.write_bytes(pickle.dumps([["a", Hostile(sentinel)]], protocol))
    with pytest.raises(UnsafeFileError, match=r"x\.pkl: refused, .*it asks for"):
        load_lists(path, depth=2)


@pytest.mark.parametrize(
    "content",
    [
        b"cos\nsystem\n(S'touch %s'\ntR.",  # GLOBAL and REDUCE
        b"(cos\nsystem\nS'touch %s'\no.",  # OBJ
        b"(S'touch %s'\nios\nsystem\n.",  # INST
        b"(lp0\ncos\nsystem\np1\n0g1\n(S'touch %s'\ntR.",  # a call in the memo
        b"Pid\n.",  # a persistent object
        b"\x80\x02\x82\x01.",  # a registered extension
    ],
)
def test_calls_in_handwritten_pickles_are_refused(tmp_path, sentinel, content):
    path = tmp_path / "x.pkl"
    path.write_bytes(content.replace(b"%s", str(sentinel).encode()))
    with pytest.raises(UnsafeFileError, match=r"x\.pkl: refused, not a whole pickle"):
        load_lists(path, depth=2)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([["a"], "b"], "str where a list belongs"),
        (["a"], "str where a list belongs"),
        ([["a", None]], "NoneType where a string belongs"),
        ([[["a"]]], "list where a string belongs"),
        (None, "NoneType where a list belongs"),
        ([["a", 1]], "int where a string belongs"),
        ([{"a": "b"}], "dict where a list belongs"),
        ((["a"],), "tuple where a list belongs"),
    ],
)
def test_pickles_of_other_types_are_refused(tmp_path, value, message):
    (tmp_path / "x.pkl").write_bytes(pickle.dumps(value))
    with pytest.raises(UnsafeFileError, match=rf"x\.pkl: refused, .*{message}"):
        load_lists(tmp_path / "x.pkl", depth=2)


@pytest.mark.parametrize("protocol", [0, 1, 2, 4])  # 3 and 5 write these as 2 and 4
def test_lists_of_strings_are_loaded(tmp_path, protocol):
    value = [["a", "é" * 300, ""], None, [], ["a\nb"] * 3]
    (tmp_path / "x.pkl").write_bytes(pickle.dumps(value, protocol))
    assert load_lists(tmp_path / "x.pkl", depth=2) == value


@pytest.mark.parametrize("n", [0, 1, 10, -1])
def test_truncated_pickles_are_refused(tmp_path, n):
    (tmp_path / "x.pkl").write_bytes(pickle.dumps([["a"] * 50])[:n])
    with pytest.raises(UnsafeFileError, match=r"x\.pkl: refused"):
        load_lists(tmp_path / "x.pkl", depth=2)


@pytest.mark.parametrize("zipped", [True, False])
def test_code_in_tensor_files_is_refused(tmp_path, sentinel, zipped):
    path = tmp_path / "x.pt"
    torch.save({"confs": Hostile(sentinel)}, path, _use_new_zipfile_serialization=zipped)
    with pytest.raises(UnsafeFileError, match=r"x\.pt: refused, .*contains code"):
        load_arrays(path)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (torch.ones(3).to_sparse(), "not plain and dense"),
        (torch.ones(3, dtype=torch.complex64), "not plain and dense"),
        ({"a": torch.nn.Parameter(torch.ones(3))}, "Parameter, not only tensors"),
        ({"a": {1, 2}}, "set, not only tensors|code or objects"),
    ],
)
def test_tensor_files_of_other_types_are_refused(tmp_path, value, message):
    torch.save(value, tmp_path / "x.pt")
    with pytest.raises(UnsafeFileError, match=rf"x\.pt: refused, .*{message}"):
        load_arrays(tmp_path / "x.pt")


def test_damaged_tensor_files_are_refused(tmp_path):
    path = tmp_path / "x.pt"
    torch.save(torch.ones(100), path)
    whole = path.read_bytes()
    path.write_bytes(whole[:500])
    with pytest.raises(UnsafeFileError, match=r"x\.pt: refused, not a whole file"):
        load_arrays(path)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.int8, torch.int64])
def test_tensors_become_arrays_of_64_bit_numbers(tmp_path, dtype):
    value = torch.tensor([[1, 0], [3, 2]], dtype=dtype)
    for content in (
        value,
        {"confs": value, "eval_range": (0, 2), "said": [None, 1.5, "x", True]},
    ):
        torch.save(content, tmp_path / "x.pt")
        read = load_arrays(tmp_path / "x.pt")
        array = read["confs"] if isinstance(content, dict) else read
        assert array.tolist() == [[1, 0], [3, 2]]
        assert array.dtype == (np.float64 if dtype.is_floating_point else np.int64)
