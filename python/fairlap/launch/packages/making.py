"""How an environment is made where that is not as usual: another Python, sources with their flags, places of wheels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fairlap.launch.packages.built_wheels import built_wheel
from fairlap.launch.packages.interpreters import Interpreter, interpreter_named, own_interpreter
from fairlap.launch.packages.own_package import own_content
from fairlap.request.fields.package_origin import BUILD, FIND_LINKS, INDEX, PYTHON, flags_in, named_in, source_in
from fairlap.secrets import without_secrets

_LAYER = "beneath.pth"


@dataclass(frozen=True)
class Making:
    """``python`` is a version, or the path of an interpreter whose packages are used as they are."""

    python: str = ""
    flags: tuple[str, ...] = ()  # variables of the builds of sources, each as NAME=VALUE
    index: str = ""
    find_links: str = ""

    @property
    def interpreter(self) -> Interpreter:
        return interpreter_named(self.python)

    @property
    def shown(self) -> tuple[str, ...]:
        """As options of a contestant, without secrets."""
        named = [(PYTHON, self.python), (INDEX, self.index), (FIND_LINKS, self.find_links)]
        options = [*((BUILD, each) for each in self.flags), *(each for each in named if each[1])]
        return tuple(without_secrets(f"{option}={value}") for option, value in options)

    @property
    def key_lines(self) -> tuple[str, ...]:
        """What an environment depends on besides its requirements and the interpreter; none as usual."""
        beneath = self.python if self.interpreter.sites else ""
        own = "" if self.interpreter.is_alike else own_content()
        return tuple(filter(None, (*self.flags, self.index, self.find_links, beneath, own)))

    @property
    def pip_options(self) -> tuple[str, ...]:
        """What pip searches in addition, since an index of nightly builds has few other packages."""
        index = (f"--extra-index-url={self.index}",) if self.index else ()
        return (*index, *((f"--find-links={self.find_links}",) if self.find_links else ()))

    @property
    def variables(self) -> dict[str, str]:
        """Let no process write bytecode between the packages of the user's own environment.

        A free-threaded Python keeps running without its lock, also beside a module that does not ask for that. Packages
        of conda find their programs and data by the variable that activating an environment sets.
        """
        found = {"PYTHONDONTWRITEBYTECODE": "1"} if self.interpreter.sites else {}
        found |= {"PYTHON_GIL": "0"} if self.interpreter.free_threaded else {}
        return found | ({"CONDA_PREFIX": prefix} if (prefix := self.interpreter.conda_prefix) else {})


AS_USUAL = Making()


def making_of(options: Sequence[tuple[str, str]]) -> Making:
    given = dict(options)
    return Making(given.get(PYTHON, ""), flags_in(options), given.get(INDEX, ""), given.get(FIND_LINKS, ""))


def lay_on(site: Path, interpreter: Interpreter) -> None:
    """Let an environment see the packages of the interpreter after its own."""
    if interpreter.sites:
        lines = [f"import site; site.addsitedir({each!r})\n" for each in interpreter.sites]
        (site / _LAYER).write_text("".join(lines))


def with_built_wheels(requirements: Sequence[str], making: Making, python: Path, folder: Path) -> list[str]:
    """Put the wheel in the place of each source, built first where the folder does not have it."""
    found = []
    for each in requirements:
        if source_in(each) is None:
            found.append(each)
        else:
            wheel = built_wheel(each, making.flags, python, making.interpreter, folder, making.pip_options)
            found.append(f"{named_in(each)} @ {wheel.as_uri()}")
    return found


def runs_same_python(site: Path) -> bool:
    """Whether an environment has the Python of this process, whose native module its worker then imports."""
    return site.parent.name == own_interpreter().folder
