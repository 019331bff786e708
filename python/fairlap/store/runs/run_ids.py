"""A run's id: when it began and three letters drawn, such as 20260102-030405-k3f. Sorted, ids are in order of time."""

from __future__ import annotations

import hashlib
import re
import secrets
from datetime import UTC, datetime

from fairlap.store.database import Database
from fairlap.store.errors import NoSuchRun, StoreError
from fairlap.suggestions import did_you_mean

LAST = "last"
_LETTERS = "23456789abcdefghjkmnpqrstvwxyz"  # none that is taken for another
_DRAWN = 3
_IDS_OF_A_SECOND = len(_LETTERS) ** _DRAWN
_SHARE_DRAWN_FROM = 4
_FORM = re.compile(rf"\d{{8}}-\d{{6}}-[{_LETTERS}]{{{_DRAWN}}}")
_MOST_NAMED = 5


def utc_text(began_at: str) -> str:
    """As it is stored: UTC, to the second. Empty for anything else."""
    try:
        given = datetime.fromisoformat(began_at)
    except ValueError:
        return ""
    given = given.replace(tzinfo=UTC) if given.tzinfo is None else given.astimezone(UTC)
    return given.isoformat(timespec="seconds")


def id_of(began_at: str, content: bytes | None = None) -> str:
    """Make an id, whose letters are drawn, or follow from the content, so that it has the same id again."""
    number = secrets.randbits(64) if content is None else int.from_bytes(hashlib.sha256(content).digest()[:8])
    return f"{time_in_ids(began_at)}-{_letters(number)[::-1]}"


def id_after(db: Database, began_at: str) -> str:
    """Draw an id that sorts after those of runs that began in the same second, while there is one."""
    second = time_in_ids(began_at)
    [[newest]] = db.execute("SELECT max(id) FROM runs WHERE id >= ? AND id < ?", (second, f"{second}~")).fetchall()
    least = 0 if newest is None else 1 + _number_in(require_id(newest))
    if least == _IDS_OF_A_SECOND:
        return id_of(began_at)
    # From the first few of those that are left, so that many runs can begin in one second.
    number = least + secrets.randbelow(-(-(_IDS_OF_A_SECOND - least) // _SHARE_DRAWN_FROM))
    return f"{second}-{_letters(number)}"


def _letters(number: int) -> str:
    """Write the end of a number, its last digit last."""
    letters = ""
    for _ in range(_DRAWN):
        number, place = divmod(number, len(_LETTERS))
        letters = _LETTERS[place] + letters
    return letters


def _number_in(run: str) -> int:
    number = 0
    for letter in run[-_DRAWN:]:
        number = number * len(_LETTERS) + _LETTERS.index(letter)
    return number


def time_in_ids(began_at: str) -> str:
    """Write what the ids of runs begin with that began then; noughts for a time that is not known."""
    digits = re.sub(r"\D", "", utc_text(began_at))[:14] or "0" * 14
    return f"{digits[:8]}-{digits[8:]}"


def is_an_id(text: str) -> bool:
    return _FORM.fullmatch(text) is not None


def require_id(found: object) -> str:
    """Check an id, which becomes part of the names of files."""
    if not isinstance(found, str) or not is_an_id(found):
        raise StoreError(f"the store has a run with the invalid id {found!r:.80}; fairlap did not write it")
    return found


def id_meant(db: Database, text: str) -> str:
    """Find the id that a user means by its beginning, else by its end, or by ``last``, the newest."""
    if text == LAST:
        newest = db.execute("SELECT id FROM runs ORDER BY id DESC LIMIT 1").fetchone()
        if newest is None:
            raise NoSuchRun("no run has been stored yet; `fairlap compare` stores one")
        return require_id(newest[0])
    # Every id with this beginning sorts between the text and the text followed by a character above all letters.
    found, place = _found(db, "id >= ? AND id < ?", (text, f"{text}~")), "begins"
    if not found:
        found, place = _found(db, "substr(id, length(id) - ? + 1) = ?", (len(text), text)), "ends"
    if len(found) == 1 or text in found:
        return text if text in found else str(found[0])
    if not found or not text:
        hint = did_you_mean(text, [LAST]) or f"`fairlap runs` lists them, and `{LAST}` is the newest"
        raise NoSuchRun(f"there is no run {text!r}; {hint}")
    named = ", ".join(found[:_MOST_NAMED])
    more = "" if len(found) <= _MOST_NAMED else " and others"
    raise NoSuchRun(f"{text!r} {place} more than one id: {named}{more}; give more of it")


def _found(db: Database, condition: str, values: tuple[object, ...]) -> list[str]:
    chosen = f"SELECT id FROM runs WHERE {condition} ORDER BY id DESC LIMIT ?"
    return [require_id(found[0]) for found in db.execute(chosen, (*values, _MOST_NAMED + 1))]
