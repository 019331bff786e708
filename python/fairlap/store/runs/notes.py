"""What people write about a stored run: a note, and tags to find it by."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from fairlap.errors import InvalidRequest
from fairlap.json_errors import NOT_THE_DOCUMENT
from fairlap.store.database import Database

_MOST_IN_A_NOTE = 10_000
_MOST_IN_A_TAG = 100
_MOST_TAGS = 100


def write_note(db: Database, run: str, note: str) -> None:
    """Replace the run's note; an empty one removes it."""
    if len(note) > _MOST_IN_A_NOTE:
        raise InvalidRequest(f"the note has {len(note):,} characters; it may have {_MOST_IN_A_NOTE:,}")
    db.execute("UPDATE runs SET note = ? WHERE id = ?", (note, run))


def change_tags(db: Database, run: str, added: Iterable[str], removed: Iterable[str]) -> tuple[str, ...]:
    """Add tags, then remove others; those that the run then has, in the order in which it got them."""
    [[text]] = db.execute("SELECT tags FROM runs WHERE id = ?", (run,))
    had, gone = read_tags(text), set(removed)
    tags = tuple(dict.fromkeys((*had, *map(_checked, added))))
    if missing := gone - set(tags):
        raise InvalidRequest(f"the run {run} has no tag {min(missing)!r}; it has {', '.join(had) or 'none'}")
    left = tuple(tag for tag in tags if tag not in gone)
    if len(left) > _MOST_TAGS:
        raise InvalidRequest(f"a run may have {_MOST_TAGS} tags; {run} would have {len(left)}")
    db.execute("UPDATE runs SET tags = ? WHERE id = ?", (msgspec.json.encode(left).decode(), run))
    return left


def read_tags(text: str) -> tuple[str, ...]:
    """Read what the store holds; none where another program has written something else there."""
    try:
        return msgspec.json.decode(text, type=tuple[str, ...])
    except NOT_THE_DOCUMENT:
        return ()


def stored_tags(db: Database) -> list[str]:
    """Collect those of all runs."""
    return sorted({tag for (text,) in db.execute("SELECT DISTINCT tags FROM runs") for tag in read_tags(text)})


def _checked(tag: str) -> str:
    if not tag or len(tag) > _MOST_IN_A_TAG or tag != tag.strip() or not tag.isprintable() or "," in tag:
        raise InvalidRequest(
            f"{tag[:_MOST_IN_A_TAG]!r} cannot be a tag; use up to {_MOST_IN_A_TAG} characters without commas, such as "
            "nightly"
        )
    return tag
