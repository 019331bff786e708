"""A saved run as a recipe for doing it again: a container, the versions that ran, the plan, and one command."""

from __future__ import annotations

from pathlib import Path

from fairlap.errors import InvalidRequest
from fairlap.race.plan import save_plan
from fairlap.race.run import Run
from fairlap.render.recipe.container import dockerfile
from fairlap.render.recipe.readme import readme
from fairlap.render.recipe.versions import versions_of
from fairlap.store.run_file import save_run

_WHEELS = """Put a wheel of fairlap {version} here, unless your package index has one.
In its source tree: `pip wheel . --no-deps --wheel-dir WHERE_THIS_FILE_IS`
"""


def write_recipe(run: Run, folder: Path) -> list[Path]:
    """The files that were written. The folder is made; one that holds anything is refused."""
    versions = versions_of(run)
    texts = {
        "Dockerfile": dockerfile(run, versions),
        "requirements.txt": _listed("What the contestants need, in the versions that ran.", versions.requirements),
        "constraints.txt": _listed("What else was installed, should anything ask for it.", versions.constraints),
        "environments.txt": _listed("For those who ran in an environment of their own.", versions.environments),
        "wheels/README.md": _WHEELS.format(version=run.fairlap),
        "README.md": readme(run, versions),
    }
    _require_empty(folder)
    try:
        (folder / "wheels").mkdir(parents=True, exist_ok=True)
        (folder / "out").mkdir(exist_ok=True)
        for name, text in texts.items():
            (folder / name).write_text(text)
        save_plan(run.plan, folder / "plan.json")
        save_run(folder / "recorded.json", run)
    except OSError as error:
        raise InvalidRequest(f"the recipe could not be written to {folder}: {error.strerror}") from None
    return [*(folder / name for name in texts), folder / "plan.json", folder / "recorded.json"]


def _require_empty(folder: Path) -> None:
    try:
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise InvalidRequest(f"{folder} is there already and not an empty folder; give another one")
    except OSError as error:
        raise InvalidRequest(f"{folder} cannot be looked into: {error.strerror}") from None


def _listed(what: str, lines: tuple[str, ...]) -> str:
    return "\n".join([f"# {what}", *lines]) + "\n"
