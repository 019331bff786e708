"""What msgspec raises for bytes that are not the document that was expected: also for depth and for other encodings."""

from __future__ import annotations

import msgspec

NOT_THE_DOCUMENT = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
