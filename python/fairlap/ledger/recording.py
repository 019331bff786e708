"""A run on its way into the store: every lap is kept on its own, as soon as it has ended."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import IO, TYPE_CHECKING

from fairlap.ledger.kept_laps import LapToKeep, lap_to_keep
from fairlap.ledger.under_way import let_go
from fairlap.race.laps import Lap

if TYPE_CHECKING:
    import numpy as np

    from fairlap.ledger.prices import Price
    from fairlap.ledger.store import Store


class Recording:
    """What cannot be written is held and tried again with the next lap, so that space made in time saves it all."""

    def __init__(self, store: Store, run: str, lock: IO[str]) -> None:
        self.run = run
        self._store = store
        self._lock = lock
        self._waiting: deque[LapToKeep] = deque()

    @property
    def not_kept(self) -> int:
        """Laps that wait for space."""
        return len(self._waiting)

    def keep(self, lap: Lap, samples_ns: Mapping[str, np.ndarray] | None = None) -> None:
        """A lap that crashed has no samples. Kept again, it replaces what was known of it, and its samples stay."""
        self._waiting.append(lap_to_keep(lap, samples_ns))
        self._write_waiting()

    def end(
        self,
        wall_s: Mapping[str, float],
        ended_early: str = "",
        interrupted: bool = False,
        *,
        baseline: str = "",
        price: Price | None = None,
    ) -> None:
        """The run's end first, then its rows: what the laps show can be drawn anew, that it ended cannot."""
        self._write_waiting()
        self._store.note_end(self.run, "interrupted" if interrupted else "finished", wall_s, ended_early)
        let_go(self._store.path, self.run, self._lock)
        self._store.draw_rows(self.run, baseline=baseline, price=price)

    def _write_waiting(self) -> None:
        while self._waiting:
            self._store.keep(self.run, self._waiting[0])
            self._waiting.popleft()
