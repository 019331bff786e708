"""What the kernel holds of files: dropped, seen, and not dropped where a process maps it."""

from __future__ import annotations

import mmap
from pathlib import Path

import pytest
from fairlap.machine.files import page_cache

PAGES = 512


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "data"
    path.write_bytes(b"x" * (PAGES * mmap.PAGESIZE))
    page_cache.evict([str(path)])
    if page_cache.resident_share([str(path)]) > 0:
        pytest.skip("this file system keeps its files in memory, as tmpfs does")
    return str(path)


def test_a_file_that_was_read_is_in_the_cache_until_it_is_dropped(file: str) -> None:
    Path(file).read_bytes()
    assert page_cache.resident_share([file]) == 1.0
    page_cache.evict([file])
    assert page_cache.resident_share([file]) == 0.0


def test_half_of_two_files_is_in_the_cache_when_one_of_them_was_read(file: str, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_bytes(b"y" * (PAGES * mmap.PAGESIZE))
    page_cache.evict([file])
    assert page_cache.resident_share([file, str(other)]) == 0.5


def test_pages_that_a_process_maps_stay(file: str) -> None:
    with Path(file).open("rb") as opened, mmap.mmap(opened.fileno(), 0, prot=mmap.PROT_READ) as mapped:
        assert sum(mapped[page * mmap.PAGESIZE] for page in range(PAGES)) == PAGES * ord("x")
        page_cache.evict([file])
        assert page_cache.resident_share([file]) == 1.0


def test_an_empty_file_has_no_page_that_is_missing(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    page_cache.evict([str(tmp_path / "empty")])
    assert page_cache.resident_share([str(tmp_path / "empty")]) == 1.0
