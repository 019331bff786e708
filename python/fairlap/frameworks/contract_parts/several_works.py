"""Of adapters whose processes may take one work after the other, and what one work leaves for the next."""

from __future__ import annotations

from typing import ClassVar


class SeveralWorks:
    # The variants of which it was measured that works in one process have the ratios of works in processes of their
    # own; see docs/explanation/taking-turns.md.
    of_several_works: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def forget(cls) -> None:
        """Drop what the framework keeps of a contestant that is gone, before the next one is prepared."""
