"""``fairlap.runs``: the stored runs for programs and notebooks, each of which gives its results when asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime

from fairlap.errors import InvalidRequest, shown
from fairlap.request.python_options import texts_in
from fairlap.request.work_title import work_title
from fairlap.results.results import Results, results_of
from fairlap.store.errors import NoSuchRun
from fairlap.store.runs.run_ids import utc_text
from fairlap.store.search import RunSummary, State, Wanted
from fairlap.store.store import open_store

_MOST = 100


@dataclass(frozen=True)
class ListedRun:
    """A stored run, of which only what ``fairlap runs`` shows has been read."""

    summary: RunSummary

    @property
    def id(self) -> str:
        return self.summary.run

    @property
    def when(self) -> datetime | None:
        """When it began, in UTC; None of a run that was saved before this was kept."""
        began = utc_text(self.summary.began_at)
        return datetime.fromisoformat(began) if began else None

    @property
    def title(self) -> str:
        """Its work, or the first one and how many more."""
        first, *others = self.summary.works or ("no work",)
        title = work_title(first, self.summary.data, self.summary.frameworks)
        return f"{title} and {len(others)} more" if others else title

    @property
    def state(self) -> State:
        return self.summary.state

    @property
    def contestants(self) -> tuple[str, ...]:
        return self.summary.contestants

    @property
    def winner(self) -> str | None:
        """The contestant that is shown to be faster than all others in every work; None where there is none."""
        found = {_winner(self.summary, work, work_id) for work, work_id in self.summary.works_by_id}
        return found.pop() if len(found) == 1 else None

    def results(self) -> Results:
        """Read its processes, and judge them again."""
        with open_store(reading=True) as store:
            return results_of(store.load(self.id), self.id)

    @property
    def note(self) -> str:
        return self.summary.note

    @property
    def tags(self) -> tuple[str, ...]:
        return self.summary.tags

    def __repr__(self) -> str:
        began = self.when.strftime("%Y-%m-%d %H:%M") if self.when else "unknown time"
        outcome = f"{self.winner} is the fastest" if self.winner else ", ".join(self.contestants)
        return f"<run {self.id}, {began}, {self.state}: {self.title}: {outcome}>"


def runs(
    *,
    model: str = "",
    on: str | Sequence[str] = (),
    since: str | date = "",
    tag: str = "",
    limit: int | None = _MOST,
) -> tuple[ListedRun, ...]:
    """List the stored runs, the newest first, as ``fairlap runs`` does; none where nothing has been stored yet.

    Only those of this ``model``, with all contestants or frameworks of ``on``, that began at ``since`` (UTC unless it
    has another zone) or later, with this ``tag``. ``limit`` is the most that are listed; None lists all.
    ``[run.results() for run in fairlap.runs(model="mlp", on="jax")]``.
    """
    if not isinstance(model, str):
        raise InvalidRequest(f"model must be a name, as `fairlap runs` shows it, not {shown(model)}")
    if limit is not None and (not isinstance(limit, int) or isinstance(limit, bool) or limit < 1):
        raise InvalidRequest(f"limit must be a whole number above 0 or None, not {shown(limit)}")
    text = since if isinstance(since, str) else since.isoformat() if isinstance(since, date) else None
    began = "" if text is None else utc_text(text)
    if text is None or (text and not began):
        raise InvalidRequest(f"since={shown(since)} is not a date such as 2026-01-31 or 2026-01-31T14:00")
    if not isinstance(tag, str):
        raise InvalidRequest(f"tag must be a text, not {shown(tag)}")
    wanted = Wanted(model, on if isinstance(on, str) else ",".join(texts_in("on", on)), began, tag=tag)
    try:
        with open_store(reading=True) as store:
            return tuple(map(ListedRun, store.runs(wanted, limit)))
    except NoSuchRun:
        return ()


def _winner(summary: RunSummary, work: str, work_id: str) -> str | None:
    """Find the first of several, whose place no other contestant may hold as well."""
    placed = [each for each in summary.placed_on(work, work_id) if each.place is not None]
    return placed[0].contestant if len(placed) > 1 and placed[0].place == "1" else None
