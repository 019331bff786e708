"""The store that a user means: a file of this machine, or a shared one."""

from __future__ import annotations

from pathlib import Path

from fairlap.store.file_store import Store
from fairlap.store.opening import open_for_reading, open_for_writing, shared_url, store_path


def open_store(path: Path | None = None, *, reading: bool = False) -> Store:
    """Open the user's own store, which may be a shared one, or the file at ``path``.

    It is made when there is none, but not for reading.
    """
    if path is None and (url := shared_url()):
        from fairlap.store.shared.shared_store import open_shared_store

        return open_shared_store(url, reading=reading)
    path = path or store_path()
    return Store(path, open_for_reading(path) if reading else open_for_writing(path))
