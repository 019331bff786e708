"""A file is complete or the previous one; links and devices stay what they are."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
from fairlap.errors import FairlapError
from fairlap.machine.files.atomic_files import why_not_writable, write_atomically, write_output


def test_a_file_is_replaced_and_no_temporary_file_remains(tmp_path: Path) -> None:
    for content in (b"one", b"two"):
        write_atomically(tmp_path / "file", content)
        assert (tmp_path / "file").read_bytes() == content
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_when_writing_fails_the_previous_file_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "file"
    write_atomically(file, b"whole")

    def torn(path: Path, content: bytes) -> int:
        with path.open("wb") as opened:
            opened.write(content[:2])
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(Path, "write_bytes", torn)
    with pytest.raises(FairlapError, match="No space left on device") as raised:
        write_output(file, b"another")
    assert raised.value.code == "E_FILE"
    assert file.read_bytes() == b"whole"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_link_to_itself_cannot_be_written_and_stays(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(FairlapError, match="loop"):
        write_output(tmp_path / "loop", b"nowhere")
    assert (tmp_path / "loop").is_symlink()


def test_a_link_stays_a_link_and_a_pipe_is_written_to(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "file")
    write_atomically(tmp_path / "link", b"through")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_bytes() == b"through"
    os.mkfifo(tmp_path / "pipe")
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append((tmp_path / "pipe").read_bytes()), daemon=True)
    reader.start()
    write_atomically(tmp_path / "pipe", b"flowing")
    reader.join(timeout=120)
    assert got == [b"flowing"]
    assert (tmp_path / "pipe").is_fifo()


def test_whether_a_file_can_be_written_is_known_before_and_changes_nothing(tmp_path: Path) -> None:
    file = tmp_path / "file"
    assert why_not_writable(file) == ""
    assert list(tmp_path.iterdir()) == []
    file.write_bytes(b"whole")
    assert why_not_writable(file) == ""
    assert file.read_bytes() == b"whole"
    (tmp_path / "link").symlink_to(tmp_path / "nowhere" / "file")
    for unwritable in (tmp_path / "link", tmp_path / "nowhere" / "file", tmp_path / (250 * "x"), file / "below"):
        assert why_not_writable(unwritable)
        with pytest.raises(FairlapError):
            write_output(unwritable, b"nothing")
