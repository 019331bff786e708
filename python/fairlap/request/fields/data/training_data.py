"""What a model learns from, as a work holds it: where the items are, how many of them it takes, and their sizes."""

from __future__ import annotations

from pathlib import Path

import msgspec

from fairlap import quantity_text

_SHOWN_DIGITS = 8


class ItemSizes(msgspec.Struct, frozen=True):
    """What decides the sizes of a model that follows its data."""

    item: tuple[int, ...]  # the shape of one item's input
    classes: int | None  # None where each item has one value


class TrainingData(msgspec.Struct, frozen=True):
    """A built-in set or a user's files. Equal ones with equal hashes are the same data."""

    text: str  # as the user wrote it
    path: str = ""  # from the root on; empty for a built-in set
    column: str = ""  # with the labels, of a table; the last one if it is empty
    fraction: float = 1.0  # of the items that are not held out
    hash: str = ""  # of all items as they are in the files
    sizes: ItemSizes | None = None  # None for a model whose sizes are fixed

    @property
    def identity(self) -> TrainingData:
        """The data, wherever its files are: the hash covers their content."""
        return msgspec.structs.replace(self, text="", path="") if self.path else self

    @property
    def label(self) -> str:
        """With the beginning of the hash, since files of one name may have other items."""
        name = self.text
        if self.path:
            name = Path(self.path).name + (f":{self.column}" if self.column else "")
            name += f" ({self.hash[:_SHOWN_DIGITS]})"
        return name if self.fraction == 1 else f"{quantity_text.share(self.fraction, 4)} of {name}"
