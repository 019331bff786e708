"""The two sides of a suite as a user names them: folders, commits of the repository here, or releases of a package."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from fairlap.errors import InvalidRequest
from fairlap.pull_request.checkouts import base_checkout, git
from fairlap.pull_request.sides import BASE, CHANGE
from fairlap.request.fields.package_origin import is_wheel_or_commit
from fairlap.request.suite import E_SUITE


@dataclass(frozen=True)
class Sides:
    """Empty without sides. ``named`` has those that are not folders of the user, as they were given."""

    folders: dict[str, Path] = field(default_factory=dict)
    packages: dict[str, str] = field(default_factory=dict)
    named: dict[str, str] = field(default_factory=dict)


@contextmanager
def suite_sides(base: str | None, change: str | None) -> Iterator[Sides]:
    """Check out commits into folders that are gone afterwards."""
    if (base is None) != (change is None):
        raise InvalidRequest("give both --base and --change, or neither", code=E_SUITE)
    found = Sides()
    with ExitStack() as stack:
        for side, text in ((BASE, base), (CHANGE, change)):
            if text is not None:
                _add(found, side, text, stack)
        folders = {folder.resolve() for side, folder in found.folders.items() if side not in found.packages}
        same = len(found.folders) == 2 and not found.packages and len(folders) == 1
        if same or (base is not None and base == change):
            raise InvalidRequest(f"--base and --change are the same, {base}", code=E_SUITE)
        yield found


def _add(found: Sides, side: str, text: str, stack: ExitStack) -> None:
    folder = Path(text)
    if folder.is_dir():
        found.folders[side] = folder.absolute()
        return
    found.named[side] = text
    if "==" in text or is_wheel_or_commit(text):
        found.folders[side], found.packages[side] = Path.cwd(), text
        return
    here = Path.cwd()
    commit = git(here, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{text}^{{commit}}")
    if commit.returncode:
        raise InvalidRequest(
            f"{text} is not a folder, a commit of the repository here, or a release such as numpy==2.1.0", code=E_SUITE
        )
    below = git(here, "rev-parse", "--show-prefix").stdout.strip()
    found.folders[side] = stack.enter_context(base_checkout(here, commit.stdout.strip())) / below
