"""What requests to a worker have in common: by what each is answered, and what serves it there.

And the answer to those to prepare.

A worker imports this module before it says hello, so it must stay light.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, ClassVar, Generic, TypeVar, cast, get_args

import msgspec

from fairlap.frameworks.contract_parts.work_place import WorkIn

MOST_RAW_BYTES = 8 * 10**9

Answer = TypeVar("Answer", bound="Reply")


class Reply(msgspec.Struct, frozen=True, tag_field="type"):
    """What a worker sends."""

    @property
    def raw_bytes(self) -> int:
        """How many follow it, by its field ``bytes`` where it has one."""
        return int(getattr(self, "bytes", 0))

    def require_consistent(self) -> None:
        """Raise msgspec.ValidationError for numbers that contradict each other."""


def at(place: str) -> Any:
    """Find what ``module:name`` names."""
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)


class Ask(msgspec.Struct, Generic[Answer], frozen=True, tag_field="type"):
    """The class in the brackets is that of the answer."""

    served_by: ClassVar[str] = ""  # "module:function" of what the worker holds and the request; else its service itself
    served_alone_by: ClassVar[str] = ""  # "module:function" of the request, in a worker that prepares no contestant
    has_own_length: ClassVar[bool] = False  # it takes as long as what it asks for

    @classmethod
    def kind_of_answer(cls) -> type[Answer]:
        [base] = cls.__dict__["__orig_bases__"]  # Python 3.11 has no function for them
        return cast("type[Answer]", get_args(base)[0])

    @property
    def service(self) -> str:
        """Name the class that serves a worker whose first request this is; empty for that of one contestant."""
        return ""

    @property
    def text(self) -> str:
        """The phase that a lost worker was in."""
        return str(type(self).__struct_config__.tag)

    def most_raw_bytes(self, after_s: float) -> int:
        """Limit what an answer may announce after so long, by the request, and by what can be timed since."""
        return 0


class Prepared(Reply, frozen=True, tag="prepared"):
    version: str
    in_force: dict[str, str]  # settings read back from the framework, not copied from the request
    weights_hash: str  # of the loaded weights, see docs/reference/worker-protocol.md
    route: str = ""  # how a user's model got into the framework
    conversion_s: float | None = None  # how long that took, where it was converted
    work_in: WorkIn = "worker"  # the process that does the work of a call
    hosts: tuple[str, ...] = ()  # of a conductor: where its ranks run, in order of their numbers
