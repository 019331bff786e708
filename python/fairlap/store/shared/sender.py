"""Sends the runs of this machine to its shared store: the one that has just ended, and those that had to wait."""

from __future__ import annotations

from pathlib import Path

from fairlap.errors import InvalidRequest
from fairlap.store.errors import NoSuchRun
from fairlap.store.file_store import Store
from fairlap.store.opening import shared_url, store_path
from fairlap.store.shared import waiting
from fairlap.store.shared.address import Address, address_of
from fairlap.store.shared.sending import Carried, pull, push
from fairlap.store.shared.shared_store import SharedStore, open_shared_store
from fairlap.store.store import open_store
from fairlap.store.tables import require_no_sweep


class Sender:
    def __init__(self, address: Address) -> None:
        self._address = address

    def require_reachable(self) -> None:
        """Make the tables of an empty database, so that what is wrong is known before a race instead of after it."""
        SharedStore(self._address, patient=False).close()

    def expect(self, store: Path, run: str) -> None:
        """Note the run, which is sent at the next opportunity, even if its process is killed."""
        waiting.add(store, run, self._address.target)

    def waiting(self, store: Path) -> list[str]:
        return waiting.waiting(store, self._address.target)

    def send(self, path: Path, run: str) -> list[Carried]:
        """Send this run, then those that had to wait; those that are still recorded wait longer."""
        with open_store(path) as local, SharedStore(self._address) as shared:
            others = [each for each in self.waiting(path) if each != run and not _is_recorded(local, each)]
            return list(push(local, shared, [run, *others]))


def sender() -> Sender | None:
    """None where the user's store is a file."""
    url = shared_url()
    return Sender(address_of(url)) if url else None


def named_address() -> Address:
    if not (url := shared_url()):
        raise InvalidRequest(
            "no shared store is named; set FAIRLAP_STORE to its URL, postgresql://USER@HOST:5432/DATABASE",
            code="E_STORE_URL",
        )
    return address_of(url)


def open_with(run: str) -> Store:
    """Open the store of this machine, with the run in it, to resume it.

    A run that only the shared store has is received first.
    """
    url, path = shared_url(), store_path()
    if not url:
        return open_store(reading=True)
    local = open_store(path)
    try:
        local.id_of(run)
    except NoSuchRun:
        with open_shared_store(url, reading=True) as shared:
            run = shared.id_of(run)
            shared.ask(require_no_sweep, run)
            for received in pull(local, shared, [run]):
                if received.outcome == "failed":
                    raise InvalidRequest(received.message, code=received.code) from None
    except BaseException:
        local.close()
        raise
    return local


def _is_recorded(local: Store, run: str) -> bool:
    try:
        return local.state(run) == "running"
    except NoSuchRun:
        return False
