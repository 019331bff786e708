"""A bundle that somebody else packed writes nothing, takes no memory of its own choice, and is not found whole."""

from __future__ import annotations

import io
import resource
import zipfile
from pathlib import Path

import pytest
from command_line import invoke
from fairlap.errors import FairlapError


def archive_of(compression: int, **parts: bytes) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", compression) as archive:
        for name, part in parts.items():
            archive.writestr(name, part)
    return content.getvalue()


@pytest.mark.parametrize(
    "name", ["../outside", "/tmp/fairlap-outside", "a/../../outside", "\x1b]0;owned\x07", "manifest.json"]
)
def test_no_member_is_written_anywhere(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    monkeypatch.chdir(inner)
    (inner / "evil.fairlap").write_bytes(archive_of(zipfile.ZIP_STORED, **{name: b"x"}))
    result = invoke("verify", "evil.fairlap")
    assert isinstance(result.exception, (FairlapError, SystemExit))
    assert result.exit_code != 0
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["evil.fairlap", "inner"]
    assert not Path("/tmp/fairlap-outside").exists()


def test_a_member_that_grows_a_thousandfold_is_not_unpacked(tmp_path: Path) -> None:
    bomb = archive_of(zipfile.ZIP_DEFLATED, **{"run.json": bytes(3 * 10**8), "manifest.json": b"{}"})
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    (tmp_path / "bomb.fairlap").write_bytes(bomb)
    assert invoke("verify", tmp_path / "bomb.fairlap").exit_code != 0
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100 * 1024
