"""What a search goes over: the points between a good and a bad end, which are commits or releases."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Point:
    """A commit, or a release of a package."""

    id: str  # the whole hash, or the version
    name: str  # by which texts name it
    subject: str = ""  # of a commit, as are the next two
    author_date: str = ""  # ISO 8601
    merges: bool = False


@dataclass(frozen=True)
class History:
    """``points[0]`` is the good end, the last one the bad end."""

    points: tuple[Point, ...]
    of: str  # the repository's folder, or the package
    noun: str = "commit"  # what a point is
    content: str = ""  # a hash that changes with files of these names

    @property
    def last(self) -> int:
        return len(self.points) - 1
