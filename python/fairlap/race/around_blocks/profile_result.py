"""What is known of one profile process. It is not timed and belongs to no block."""

from __future__ import annotations

import msgspec

from fairlap.scenarios.process_result import Outcome
from fairlap.scenarios.untimed.profile_messages import Profile


class ProfileResult(msgspec.Struct, frozen=True):
    """One contestant's process that ran under the framework's own profiler, after the blocks."""

    number: int  # of the contestant's profile processes on this work
    contestant: str
    work_id: str
    outcome: Outcome = "finished"
    code: str = ""  # of an outcome other than finished
    message: str = ""
    version: str = ""
    profile: Profile | None = None  # present when it finished
    elapsed_s: float = 0.0

    @property
    def key(self) -> tuple[int, str, str]:
        return self.number, self.contestant, self.work_id
