"""Errors of PostgreSQL as messages that a user can act on."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from fairlap.errors import shortened
from fairlap.store.errors import StoreError, StoreIsBusy, StoreIsDamaged, StoreIsFull, StoreIsReadOnly

if TYPE_CHECKING:
    import psycopg

    from fairlap.store.shared.address import Address


class StoreIsUnreachable(StoreError):
    """No server answers, or it went away."""

    code = "E_STORE_UNREACHABLE"


class LoginRefused(StoreError):
    """The server does not admit this user, or not to this database, or not without TLS."""

    code = "E_STORE_LOGIN"


class StoredMeanwhile(StoreIsBusy):
    """Another machine stored the same run at the same time; trying again finds it."""


_PERMISSIONS = ("42501", "25006")
_DISK_OR_MEMORY = ("53100", "53200", "58030")
_CONFLICTS = ("40001", "40P01", "55P03", "57014")
_LOGIN = ("28000", "28P01", "3D000")
_TWICE = "23505"

# What a server says that cannot take a connection now, but may in a moment.
_LATER = ("starting up", "shutting down", "recovery", "too many clients", "connection slots", "not yet accepting")


@contextmanager
def readable_errors(address: Address) -> Iterator[None]:
    import psycopg

    try:
        yield
    except psycopg.Error as error:
        raise store_error(error, address) from None  # its text may repeat what must not be printed
    except sqlite3.DatabaseError as error:
        raise StoreIsDamaged(
            f"{address.shown} is damaged ({error}); if the machine that raced still has the run, remove it there with"
            " `fairlap runs remove` and send it again with `fairlap runs push`"
        ) from None


def store_error(error: psycopg.Error, address: Address) -> StoreError:
    import psycopg

    state, where = error.sqlstate or "", address.shown
    text = address.without_secrets(shortened(str(error)))
    if state in _PERMISSIONS:
        return StoreIsReadOnly(
            f"{where}: {text}; ask the owner of the database for the right, as in docs/how-to/share-a-store.md"
        )
    if state in _DISK_OR_MEMORY:
        return StoreIsFull(f"the server of {where} has no space left ({text}); what was stored before is intact")
    if state == _TWICE:
        return StoredMeanwhile(f"another machine stored the same run in {where} at the same time; try again")
    if state in _CONFLICTS:
        return StoreIsBusy(f"{where} was busy for too long ({text}); try again")
    if state in _LOGIN:
        return LoginRefused(f"cannot log in to {where}: {text}")
    if state.startswith(("08", "53", "57P")):
        return unreachable(address, text)
    if not state and isinstance(error, psycopg.OperationalError):
        return connecting_error(error, address)
    return StoreError(f"{where}: {text}")


def connecting_error(error: psycopg.OperationalError, address: Address) -> StoreError:
    """libpq gives a text alone. After FATAL comes what a server answered; without it, none did."""
    text = address.without_secrets(_reason(str(error)))
    if any(later in text for later in _LATER):
        return unreachable(address, text)
    if "FATAL" in str(error) or "no password supplied" in text:
        return LoginRefused(f"cannot log in to {address.shown}: {text}{_advice(text)}")
    if re.search(r"\b(SSL|TLS|certificate|sslmode)\b", text):
        return LoginRefused(f"no TLS connection to {address.shown}: {text}; see sslmode and sslrootcert")
    return unreachable(address, text)


def unreachable(address: Address, reason: str) -> StoreIsUnreachable:
    return StoreIsUnreachable(f"cannot reach {address.shown}: {reason}")


def _reason(text: str) -> str:
    """Take the end of the last line with a reason: ``connection to server at HOST failed: FATAL: reason``."""
    lines = [line for line in text.splitlines() if re.search(r"(failed|error): ", line)]
    return shortened(re.split(r"(?:failed|error): (?:FATAL:\s+)?", (lines or [text])[-1])[-1])


def _advice(text: str) -> str:
    if "password" in text:
        return "; give it in the URL, in PGPASSWORD or in ~/.pgpass"
    if "pg_hba.conf" in text:
        return "; the server's pg_hba.conf must admit this machine"
    return ""
