"""Names of contestants, ``torch``, ``torch:compile``, ``torch==2.13.0``, ``./my_worker:fast``, and of devices.

The address of a server, ``http://127.0.0.1:8000/v2/models/x`` or ``grpc://127.0.0.1:8001:model=x``, is one too, and so
is ``command:./program --option`` and ``serve:transformers:model=./m``, a server that is started.
``torch@./dist/torch.whl`` is short for ``torch:with=./dist/torch.whl``, which runs that package, and
``torch@docker=IMAGE:TAG`` for ``torch:docker=IMAGE:TAG``, which runs in a container of that image.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Self

import msgspec

from fairlap.errors import InvalidRequest
from fairlap.request.fields.package_origin import (
    DOCKER,
    OF_ENVIRONMENTS,
    PYTHON,
    WITH,
    goes_on_with_tag,
    is_short_place,
    require_well_formed,
)
from fairlap.request.fields.started_server import SERVE, goes_on, is_started, parts_of_started
from fairlap.request.work import Precision
from fairlap.secrets import without_secrets
from fairlap.suggestions import did_you_mean, nearest

_URL = re.compile(r"(?P<url>(?:https?|grpcs?)://.*?)(?P<options>(:[A-Za-z_]+=[^:]*)*)", re.IGNORECASE)
_VERSION = r"(==|~=|>=|<=|!=|<|>)\s*[^:\s]+"
_PACKAGE = re.compile(rf"(?P<name>[A-Za-z][A-Za-z0-9_.-]*?)\s*(?P<version>{_VERSION})?$")
_RELEASE = re.compile(r"(?P<name>[A-Za-z][A-Za-z0-9_.-]*)[@=]v?(?P<number>\d[A-Za-z0-9.+]*)")  # meant as one
_PARTS = re.compile(r":(?!//|\d+/|[^/:@=\s]*@)")  # not within an address, its login or its port


BEST = "best"  # in the place of a variant
THREADS = "threads"
HTTP = "http"  # the framework of a server that already runs
URL = "url"  # its option
COMMAND = "command"  # the framework of a command line
RUN, FOLDER, OUTPUT, REPORTED = "run", "folder", "output", "reported"  # its options
CALLABLES = "python"  # the framework of a Python callable
CALL, PATH = "call", "path"  # its options
BENCHMARK = "benchmark"  # the framework of a benchmark of an existing suite; PATH is an option of it too
VALUE, UNIT = "value", "unit"  # settings in force, of what it is ranked by where that is no time
REPORTED_VALUE = "reported_value"  # the quantity, then
AGAIN = " (again)"  # after the name of a contestant that races itself
FILE = "file"  # an option of any framework: the one that it runs, of several files of a model


class ContestantName(msgspec.Struct, frozen=True):
    """A framework with an optional variant and version, or a program that speaks the worker protocol."""

    text: str  # as the user wrote it; shown in tables
    framework: str  # empty for a program
    version: str = ""  # a version always means a separate environment
    variant: str = ""
    options: tuple[tuple[str, str], ...] = ()
    program: str = ""
    precision: Precision | None = None  # in a race across precisions; it is part of the text
    best: bool = False  # its settings are found by a search before the race, and are then part of it

    def __post_init__(self) -> None:
        """Of a plan too, which may come from elsewhere: the version becomes part of a requirement for pip."""
        if self.version and not re.fullmatch(_VERSION, self.version):
            raise InvalidRequest(f"{self.version!r} is not a version such as ==2.13.0", code="E_CONTESTANT")
        require_well_formed([each for each in self.options if each[0] in self._of_environment])

    def threads(self, given: int) -> int:
        """Of the threads that the race gives; the search for the best settings may have found fewer to be faster."""
        return int(dict(self.options)[THREADS]) if self.best and THREADS in dict(self.options) else given

    @property
    def framework_options(self) -> dict[str, str]:
        """Those that its worker is given."""
        return {
            name: value
            for name, value in self.options
            if name not in self._of_environment and not (self.best and name == THREADS)
        }

    @property
    def release(self) -> str:
        """What pip installs in its environment, besides the framework or in its place; empty where none is named."""
        return dict(self.options).get(WITH, "")

    @property
    def python(self) -> str:
        """The interpreter that it runs in, a version or a path; empty where none is named."""
        return "" if self.program else dict(self.options).get(PYTHON, "")

    @property
    def image(self) -> str:
        """The image in a container of which it runs; empty where none is named."""
        return "" if self.program else dict(self.options).get(DOCKER, "")

    @property
    def is_apart(self) -> bool:
        """Whether it runs in an environment that is made for it, also where its framework is installed here."""
        return bool(self.version or self.release or self.python or self.image)

    @property
    def _of_environment(self) -> tuple[str, ...]:
        """Options that a program may have as well, with its own meaning, are its own."""
        return (WITH,) if self.program else (*OF_ENVIRONMENTS, FILE)

    @property
    def file(self) -> str:
        """Name the one that it runs, of several files of a model; empty where there is one."""
        return "" if self.program else dict(self.options).get(FILE, "")

    def of_file(self, file: str) -> ContestantName:
        """Itself on one of several files, named as ``openvino:file=model.tflite``."""
        return msgspec.structs.replace(self, text=f"{self.text}:{FILE}={file}", options=(*self.options, (FILE, file)))

    @property
    def url(self) -> str:
        """Of a server that already runs; empty for other contestants."""
        return dict(self.options).get(URL, "") if self.framework == HTTP else ""

    def of(self, precisions: tuple[Precision, ...]) -> tuple[Precision, ...]:
        """Those that it races in: its own one, else those of the works."""
        return precisions if self.precision is None else (self.precision,)

    def across(self, precisions: Iterable[Precision]) -> tuple[ContestantName, ...]:
        """Itself in each precision, named as ``torch (bf16)``."""
        return tuple(
            msgspec.structs.replace(self, text=f"{self.text} ({precision})", precision=precision)
            for precision in precisions
        )

    @property
    def plain_text(self) -> str:
        """Without the precision: what a user writes."""
        return self.text.removesuffix(f" ({self.precision})") if self.precision else self.text


def contestant_named(text: str) -> ContestantName:
    """As ``_parsed``. Its text, which is shown and stored everywhere, has no secret; its options have what it runs."""
    found = _parsed(text)
    return msgspec.structs.replace(found, text=without_secrets(found.text))


def _parsed(text: str) -> ContestantName:
    """Parse ``REQUIREMENT[@PLACE][:VARIANT][:OPTION=VALUE]...``, or the address of a server with options.

    A requirement with a slash in it is a program, but where the slash is in the place of a package.
    """
    whole = text.strip()
    if any("\ud800" <= letter <= "\udfff" for letter in whole):  # bytes of the shell that are not UTF-8
        raise InvalidRequest(f"contestant {whole!a} is not valid UTF-8", code="E_CONTESTANT")
    if served := _URL.fullmatch(whole):
        options = tuple(_option(part, whole) for part in served["options"].split(":")[1:])
        return ContestantName(whole, HTTP, options=((URL, served["url"]), *options))
    if whole.startswith(f"{COMMAND}:") and not whole.startswith(f"{COMMAND}:{RUN}="):
        return ContestantName(whole, COMMAND, options=((RUN, whole.partition(":")[2].strip()),))
    if is_started(whole):
        server, version, options = parts_of_started(whole)
        return ContestantName(whole, SERVE, version, server, options)
    target, *further = _parts_of(whole)
    options = tuple(_option(part, whole) for part in further if "=" in part)
    variants = [part.strip() for part in further if "=" not in part]
    if len(variants) > 1 or any(not variant for variant in variants):
        raise InvalidRequest(
            f"{text!r} has {len(variants)} variants; write torch, torch:compile or torch==2.13.0", code="E_CONTESTANT"
        )
    variant = variants[0] if variants else ""
    name, _, place = target.partition("@")
    if (short := _option_of_place(place, whole)) and _PACKAGE.match(name):
        target, options = name, (*options, short)
    if "/" in target:
        return ContestantName(whole, "", variant=variant, options=options, program=target)
    found = _PACKAGE.match(target)
    if found is None:
        hint = _meant_by(target, further) or "write torch, torch:compile or torch==2.13.0"
        raise InvalidRequest(f"{text!r} is not a contestant; {hint}", code="E_CONTESTANT")
    version = re.sub(r"\s", "", found["version"] or "")
    if variant == BEST:
        return ContestantName(whole, found["name"], version, options=options, best=True)
    return ContestantName(whole, found["name"], version, variant, options)


def _meant_by(target: str, further: Sequence[str]) -> str:
    """Suggest ``torch@docker=IMAGE`` for ``torch@dcoker=IMAGE``, ``torch==2.13`` for ``torch=2.13``; else empty."""
    framework, _, place = target.partition("@")
    kind, is_option, value = place.partition("=")
    found = ""
    if is_option and (near := nearest(kind, OF_ENVIRONMENTS)):
        found = f"{framework}{'@' if near[0] == DOCKER else ':'}{near[0]}={value}"
    elif release := _RELEASE.fullmatch(target):
        found = f"{release['name']}=={release['number']}"
    return f"did you mean {':'.join((found, *further))}?" if found else ""


def _option_of_place(place: str, whole: str) -> tuple[str, str] | None:
    """Find the option that ``torch@PLACE`` is short for; None where it names no place."""
    if place.startswith(f"{DOCKER}="):
        return _option(place, whole)
    return (WITH, place) if is_short_place(place) else None


def _parts_of(whole: str) -> list[str]:
    """Split at colons, but for those before the tag of an image, and within its digest."""
    found: list[str] = []
    for part in _PARTS.split(whole):
        if found and goes_on_with_tag(found[-1], part):
            found[-1] = f"{found[-1]}:{part}"
        else:
            found.append(part)
    return found


def with_version(contestant: str, version: str | None) -> str:
    """Name a contestant with the version that ran, which its own name may have."""
    return f"{contestant} {version}" if version and f"=={version}" not in contestant else contestant


class Contestants(tuple[ContestantName, ...]):
    """A list, or text with commas. Each occurs once, since two rows of one name could not be distinguished."""

    def __new__(cls, listed: str | Iterable[str]) -> Self:
        parts = _listed(listed) if isinstance(listed, str) else listed if isinstance(listed, Iterable) else [listed]
        parts = list(parts)
        for part in parts:
            if not isinstance(part, str):
                raise InvalidRequest(f'a contestant is a text such as "torch" (got {part!r})', code="E_CONTESTANT")
        if any(map(str.strip, parts)) and not all(map(str.strip, parts)):
            shown = listed if isinstance(listed, str) else ",".join(parts)
            if all(map(str.strip, parts[:-1])):  # a shell ends the argument at the space that follows
                message = f"nothing follows the comma of {shown!r}; write contestants without spaces, or in quotes"
                raise InvalidRequest(f"{message}: --on torch,jax or --on 'torch, jax'", code="E_CONTESTANT")
            raise InvalidRequest(f"a contestant between the commas of {shown!r} has no name", code="E_CONTESTANT")
        return cls.of([contestant_named(part) for part in parts if part.strip()])

    @classmethod
    def of(cls, names: Sequence[ContestantName]) -> Self:
        if not names:
            raise InvalidRequest("no contestant given; add --on torch,jax for example", code="E_CONTESTANT")
        for name, count in Counter(each.text for each in names).items():
            if count > 1:
                raise InvalidRequest(f"contestant {name} is given twice", code="E_CONTESTANT")
        return super().__new__(cls, names)


def _listed(text: str) -> list[str]:
    """Split at commas, but for those between the options of a server that is started."""
    found: list[str] = []
    for part in text.split(","):
        if found and goes_on(found[-1], part):
            found[-1] = f"{found[-1]},{part}"
        else:
            found.append(part)
    return found


def require_baseline(baseline: str, contestants: Sequence[str]) -> None:
    """Refuse a misspelt baseline, which would leave every ratio out."""
    if baseline and baseline not in contestants:
        hint = did_you_mean(baseline, contestants) or f"those that race are {', '.join(contestants)}"
        raise InvalidRequest(f"the baseline {baseline!r} is not a contestant; {hint}")


NO_CONTESTANTS = tuple.__new__(Contestants)
"""Of a request that names commands alone."""


class Devices(str):
    """``cpu`` or ``cuda:N``; for processes that share a step also ``cuda:0,cuda:1``, one for each of a host.

    ``cuda`` is ``cuda:0``, and with several processes on a host the first devices, as many as there are processes.
    """

    __slots__ = ()

    def __new__(cls, text: str) -> Self:
        parts = str(text).split(",")
        if str(text) == _NUMBERED:
            return super().__new__(cls, _NUMBERED)
        if any(part.isdecimal() for part in parts):
            raise InvalidRequest(f"{text!r}: write each GPU as cuda:N, such as cuda:0,cuda:1")
        found = [Device(part) for part in parts]
        if len(set(found)) < len(found) or (len(found) > 1 and "cpu" in found):
            raise InvalidRequest(f"{text!r} must name different GPUs, such as cuda:0,cuda:1")
        return super().__new__(cls, ",".join(found))

    def for_processes(self, count: int) -> tuple[str, ...]:
        """List the devices of so many processes of a host; fewer or more where others are named."""
        if self == _NUMBERED:
            return tuple(f"{_NUMBERED}:{number}" for number in range(count))
        return tuple(self.split(","))


_NUMBERED = "cuda"


class Device(Devices):
    """``cpu`` or ``cuda:N``; ``cuda`` is ``cuda:0``."""

    __slots__ = ()

    def __new__(cls, text: str) -> Self:
        if re.fullmatch(r"cuda:\d+([-,+](cuda:)?\d+)+|cuda(,cuda(:\d+)?)+", str(text)):
            raise InvalidRequest(f"{text!r} names several GPUs, and this runs on one; ranks are given cuda:0,cuda:1")
        if not re.fullmatch(r"cpu|cuda(:\d{1,2})?", str(text)):
            raise InvalidRequest(f"{text!r} is not a device; {_device_meant(str(text)) or 'use cpu, cuda or cuda:0'}")
        kind, _, number = text.partition(":")
        return str.__new__(cls, kind if kind == "cpu" else f"{kind}:{int(number or 0)}")


def _device_meant(text: str) -> str:
    kind, _, number = text.partition(":")
    near = ["cuda"] if kind.casefold() == "gpu" else nearest(kind, ("cpu", "cuda"))
    meant = ":".join((*near, *([number] if near == ["cuda"] and number.isdecimal() and len(number) < 3 else [])))
    return f"did you mean {meant}?" if meant else ""


def _option(part: str, whole: str) -> tuple[str, str]:
    key, _, value = part.partition("=")
    if not key.strip() or not value.strip():
        raise InvalidRequest(f"{whole!r}: {part!r} is not of the form OPTION=VALUE", code="E_CONTESTANT")
    return key.strip(), value.strip()
