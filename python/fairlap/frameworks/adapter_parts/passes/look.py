"""Compare the items of a pass with the reference: each must come once, with its label and its pixels."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from fairlap import quantity_text
from fairlap.frameworks.contract_parts.called_programs import ContestantFailed
from fairlap.models.sources.stored_items.reference_items import ReferenceItems, in_bytes, marks_of
from fairlap.models.sources.stored_items.stored_items import StoredItems

# How a pipeline that does other work than asked for fails.
Fault = Literal[
    "last batch dropped", "number of items", "size of batches", "form of items", "repeated", "label", "pixels"
]


class OtherItems(ContestantFailed):
    """A pass yielded something else than each item once, in batches of the size asked for."""

    code = reported = "E_OUTPUT"

    def __init__(self, fault: Fault, message: str) -> None:
        super().__init__(message)
        self.fault = fault


Array = npt.NDArray[Any]

MOST_OFF_IN_GRID = 2.0  # steps of 255, the mean over the grid: decoders differ by less, images by far more
MOST_OFF_IN_PIXELS = 2.0  # the mean over an image: decoders and the two roundings of a resize differ by less

_NONE = np.zeros(0, np.int64)


class Look:
    """Of one pass. ``end`` raises OtherItems by the name of what is wrong."""

    def __init__(self, of: StoredItems, folder: Path) -> None:
        self._of, self._reference = of, ReferenceItems.read(folder)
        self._seen = np.zeros(of.items, np.int64)
        self._by_label = {
            int(label): np.flatnonzero(self._reference.labels == label) for label in np.unique(self._reference.labels)
        }
        self._every = np.arange(of.items)
        self._by_hash: dict[bytes, list[int]] = defaultdict(list)
        if not of.has_pixels:
            for number, mark in enumerate(self._reference.marks):
                self._by_hash[mark.tobytes()].append(number)
        self._kept = {int(number): place for place, number in enumerate(self._reference.kept)}
        self._off: list[float] = []  # of the kept images that came
        self._unknown = self._mislabelled = 0

    def see(self, items: Array, labels: Array) -> None:
        for item, mark, label in zip(items, marks_of(items, self._of), labels.tolist(), strict=True):
            own = self._candidates(mark, label)
            if own:
                number = next((each for each in own if not self._seen[each]), own[0])
                self._seen[number] += 1
                self._compare(item, number)
            elif self._candidates(mark):
                self._mislabelled += 1
            else:
                self._unknown += 1

    def end(self) -> None:
        off = float(np.median(self._off)) if self._off else 0.0
        if off > MOST_OFF_IN_PIXELS or self._unknown:
            found = f"{off:.1f} of 255 steps off" if off > MOST_OFF_IN_PIXELS else "of no item of the data"
            how = "decoded, and resized bilinearly with antialiasing" if self._of.has_pixels else "copied as they are"
            what = "pixels" if self._of.has_pixels else "rows"
            raise OtherItems("pixels", f"it yields other {what} ({found}); items must be {how}")
        if self._mislabelled:
            raise OtherItems(
                "label", f"it yields {quantity_text.count(self._mislabelled, 'item')} with the label of another"
            )
        missing, repeated = int((self._seen == 0).sum()), int((self._seen > 1).sum())
        if missing or repeated:
            raise OtherItems(
                "repeated",
                f"it repeats {quantity_text.count(repeated, 'item')} and leaves out {missing} of {self._of.items:,}",
            )

    def _candidates(self, mark: Array, label: int | None = None) -> list[int]:
        """Find the items that this may be, the likeliest first: those of the label, or all."""
        if not self._of.has_pixels:
            alike = self._by_hash.get(mark.tobytes(), [])
            return [each for each in alike if label is None or self._reference.labels[each] == label]
        among = self._every if label is None else self._by_label.get(label, _NONE)
        distances = np.abs(self._reference.marks[among] - mark).mean(axis=1)
        near = np.flatnonzero(distances <= MOST_OFF_IN_GRID)
        return [int(among[place]) for place in near[np.argsort(distances[near], kind="stable")]]

    def _compare(self, item: Array, number: int) -> None:
        if number in self._kept:
            whole = self._reference.pixels[self._kept[number]].astype(np.float32)
            self._off.append(float(np.abs(in_bytes(item) - whole).mean()))
