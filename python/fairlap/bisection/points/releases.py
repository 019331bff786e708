"""The releases of a package between two versions, in the order of the versions: those of pip's index, or wheels."""

from __future__ import annotations

import glob
import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fairlap.bisection.bisect_request import E_BISECT, BisectRequest
from fairlap.bisection.points.history import History, Point
from fairlap.bisection.points.pip_index import versions_of, wheel_of
from fairlap.errors import FairlapError, InvalidRequest
from fairlap.machine.software import package_of

_PACKAGE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")
_WHEEL = ".whl"
_SHOWN = 8


@dataclass(frozen=True)
class Releases:
    """``wheels`` are by the form of the version in which two spellings are equal; there are none of an index."""

    package: str
    wheels: Mapping[str, tuple[Path, ...]] = field(default_factory=dict)

    @property
    def folders(self) -> tuple[Path, ...]:
        return tuple(dict.fromkeys(each.parent for own in self.wheels.values() for each in own))

    def requirement(self, version: str) -> str:
        """Name what pip installs: of a file with its hash, so that another file of this name is another release."""
        if not self.wheels:
            return f"{self.package}=={version}"
        own = self.wheels[_plain(version)]
        wheel = own[0] if len(own) == 1 else wheel_of(self.package, version, self.folders)
        try:
            with wheel.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise FairlapError(f"{wheel} cannot be read: {error.strerror}", code="E_INSTALL") from None
        return f"{self.package} @ {wheel.as_uri()}#sha256={digest}"


def releases_named(texts: Sequence[str]) -> Releases:
    """Read the name of a package, or wheels, folders of wheels, and patterns; a folder has a slash in its name."""
    if len(texts) == 1 and _PACKAGE.fullmatch(texts[0]) and not texts[0].endswith(_WHEEL):
        return Releases(texts[0])
    files = sorted({file for text in texts for file in _wheels_in(text)})
    names = sorted({package_of(file.name.partition("-")[0]) for file in files})
    if len(names) != 1:
        what = f"wheels of {', '.join(names[:_SHOWN])}" if names else "no wheels"
        raise InvalidRequest(
            f"--releases {' '.join(texts[:_SHOWN])}: {what}; name a package, or wheels of one, such as ./torch-*.whl",
            code=E_BISECT,
        )
    wheels: dict[str, tuple[Path, ...]] = {}
    for file in files:
        version = _plain(file.name.split("-")[1])
        wheels[version] = (*wheels.get(version, ()), file)
    return Releases(names[0], wheels)


def releases_between(request: BisectRequest, releases: Releases, notify: Callable[[str], None]) -> History:
    """List what pip finds between the ends; pre-releases of an index only where an end is one."""
    if releases.wheels:
        found = versions_of(releases.package, releases.folders, pre_releases=True)
        versions = [each for each in found if _plain(each) in releases.wheels]
        if others := len(releases.wheels) - len(versions):
            notify(f"{others} of {len(releases.wheels)} wheels are not for this Python")
    else:
        versions = versions_of(releases.package)
        if not {_plain(request.good), _plain(request.bad)} <= set(map(_plain, versions)):
            versions = versions_of(releases.package, pre_releases=True)
    first, last = (
        _place_of(option, version, versions, releases.package)
        for option, version in (("--good", request.good), ("--bad", request.bad))
    )
    if first >= last:
        raise InvalidRequest(f"{request.good} is not a version before {request.bad}", code=E_BISECT)
    points = tuple(Point(each, f"{releases.package} {each}") for each in versions[first : last + 1])
    return History(points, releases.package, "release", _hash_of_files(releases))


def _wheels_in(text: str) -> list[Path]:
    path = Path(text)
    if path.is_dir():
        return [each.resolve() for each in path.glob(f"*{_WHEEL}")]
    named = [path] if path.is_file() else [Path(each) for each in glob.glob(text)]  # noqa: PTH207  (an absolute pattern)
    return [each.resolve() for each in named if each.suffix == _WHEEL and each.name.count("-") > 1]


def _place_of(option: str, wanted: str, versions: Sequence[str], package: str) -> int:
    for place, version in enumerate(versions):
        if _plain(version) == _plain(wanted):
            return place
    shown = versions if len(versions) <= _SHOWN else [*versions[: _SHOWN // 2], "...", *versions[-_SHOWN // 2 :]]
    raise InvalidRequest(
        f"{option}: pip finds no {package} {wanted} for this Python; it finds {', '.join(shown)}", code=E_BISECT
    )


def _plain(version: str) -> str:
    """Write a version without what does not matter: ``v1.26.0`` is ``1.26``, and the name of a wheel has a line."""
    return re.sub(r"(\.0)+$", "", version.strip().lower().removeprefix("v").replace("_", "."))


def _hash_of_files(releases: Releases) -> str:
    """By their sizes and dates, since wheels may have gigabytes."""
    files = sorted(each for own in releases.wheels.values() for each in own)
    known = [f"{each} {each.stat().st_size} {each.stat().st_mtime_ns}" for each in files]
    return hashlib.sha256("\n".join(known).encode()).hexdigest() if known else ""
