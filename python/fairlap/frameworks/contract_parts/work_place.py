"""Which process does the work of a call. A worker sends it, so this imports nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

WorkIn = Literal["worker", "child", "own_server", "other_server"]
"""The one that is timed, one that each call starts, a server that it started, or a server that ran before."""

WHERE_WORK_IS: Mapping[WorkIn, str] = {
    "worker": "",
    "child": "its work is done in a process that each call starts",
    "own_server": "its work is done in a server process",
    "other_server": "its work is done in a server that fairlap did not start",
}
"""Why what is measured of the timed process is not of the work."""
