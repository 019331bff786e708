"""What a process of an input pipeline showed besides the times of its passes."""

from __future__ import annotations

import msgspec

from fairlap.request.fields.data.stored_data import PageCache


class PassesFound(msgspec.Struct, frozen=True):
    """``still_cached`` is the share of the files' pages that stayed in memory when they were to leave it."""

    cache: PageCache
    items: int  # of a pass
    first_batch_s: float | None  # the median time from the beginning of a pass to its first batch
    still_cached: float
    read_share: float | None  # of the pages that had left, those that the pass looked at brought back
