"""Users' models in a recipe: their files, or where to put which file, with its SHA-256.

The plan of a recipe has them in ``models``, next to the plan, on every machine.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import msgspec

from fairlap import quantity_text
from fairlap.race.planning.plan import Plan
from fairlap.render.recipe.versions import unusable
from fairlap.request.fields.source import Source, with_paths

FOLDER = "models"
MOST_BYTES = 100 * 2**20  # of all models together; more is not copied


@dataclass(frozen=True)
class OwnFile:
    """One file of a user's model, and its place in the recipe."""

    there: Path
    place: str  # relative to the recipe
    digest: str

    def why_left_out(self) -> str:
        """Empty where the file is as it was raced."""
        try:
            with self.there.open("rb") as file:
                same = hashlib.file_digest(file, "sha256").hexdigest() == self.digest
        except OSError:
            return "it is not here any more"
        return "" if same else "it has changed since"


@dataclass(frozen=True)
class OwnModels:
    plan: Plan  # with the places of the recipe
    files: tuple[OwnFile, ...]
    modules: tuple[str, ...]  # module:function, whose files are not known

    def __bool__(self) -> bool:
        return bool(self.files or self.modules)

    def left_out(self) -> dict[OwnFile, str]:
        """Files that are not copied, and why."""
        reasons = {file: file.why_left_out() for file in self.files}
        size = sum(file.there.stat().st_size for file, why in reasons.items() if not why)
        if size > MOST_BYTES:
            large = f"the models have {quantity_text.size(size)}, and {quantity_text.size(MOST_BYTES)} are copied"
            reasons = {file: why or large for file, why in reasons.items()}
        return {file: why for file, why in reasons.items() if why}

    def copy_into(self, folder: Path) -> None:
        left_out = self.left_out()
        (folder / FOLDER).mkdir(parents=True, exist_ok=True)
        for file in self.files:
            if file not in left_out:
                (folder / file.place).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file.there, folder / file.place)


def models_of(plan: Plan) -> OwnModels:
    """Files keep their places to one another, since a model may have several."""
    sources = [work.source for work in plan.works if work.source is not None]
    paths: list[str] = []
    for source in sources:
        with_paths(source, lambda path: paths.append(path) or path)  # type: ignore[func-returns-value]
    if wrong := [path for path in paths if not Path(path).is_absolute() or ".." in Path(path).parts]:
        raise unusable(f"the path {wrong[0]!a} of its model is not absolute")
    folders = {source.folder for source in sources}
    together = os.path.commonpath([str(Path(path).parent) for path in paths if path not in folders] or ["/"])

    def place(path: str) -> str:
        return FOLDER if path in folders else f"{FOLDER}/{Path(path).relative_to(together)}"

    works = tuple(
        msgspec.structs.replace(work, source=with_paths(work.source, place)) if work.source else work
        for work in plan.works
    )
    digests = {path: digest for source in sources for path, digest in source.files}
    return OwnModels(
        msgspec.structs.replace(plan, works=works),
        tuple(OwnFile(Path(path), place(path), digest) for path, digest in digests.items()),
        tuple(dict.fromkeys(name for source in sources if not source.files for name in _modules_of(source))),
    )


def _modules_of(source: Source) -> tuple[str, ...]:
    return (source.shown, source.inputs) if source.of_callables else (source.text,)
