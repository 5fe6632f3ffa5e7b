"""Writers replace regular files only, whole or not at all."""

import os
import stat
import threading
from contextlib import suppress

import pytest

from persistcal.store.files import write_whole, written_whole

TEXT = "wörter\n" * 20_000  # more than a pipe holds


def test_a_pipe_a_device_and_a_link_stay_what_they_are(tmp_path):
    pipe, read = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()), daemon=True)
    reader.start()
    write_whole(pipe, TEXT)
    reader.join(10)
    assert (read, stat.S_ISFIFO(pipe.stat().st_mode)) == ([TEXT.encode()], True)

    device = tmp_path / "null"
    with suppress(PermissionError):  # for others than root
        os.mknod(device, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        with suppress(PermissionError):  # in a folder mounted without devices
            write_whole(device, TEXT)
        assert stat.S_ISCHR(device.stat().st_mode)

    target, link, dangling = tmp_path / "a" / "page.html", tmp_path / "link", tmp_path / "new"
    target.parent.mkdir()
    target.write_text("old")
    link.symlink_to("a/page.html")
    dangling.symlink_to(tmp_path / "a" / "later.html")
    for path in (link, dangling):
        write_whole(path, TEXT)
        assert path.is_symlink()
        assert path.read_text(encoding="utf-8") == TEXT
    assert target.read_text(encoding="utf-8") == TEXT
    assert sorted(path.name for path in target.parent.iterdir()) == ["later.html", "page.html"]


def test_a_failure_leaves_the_target_of_a_link_and_a_folder_is_refused(tmp_path):
    (tmp_path / "kept").write_text("old")
    (tmp_path / "link").symlink_to(tmp_path / "kept")
    with pytest.raises(KeyError), written_whole(tmp_path / "link") as part:
        part.write_text("half")
        raise KeyError
    assert (tmp_path / "kept").read_text() == "old"
    with pytest.raises(IsADirectoryError, match="is a folder") as refused:
        write_whole(tmp_path, TEXT)
    assert refused.value.filename == str(tmp_path)
