"""A recipe to repeat a run: a container, the versions that ran, the plan, and one command."""

from __future__ import annotations

from pathlib import Path

from fairlap.errors import InvalidRequest, NotWritten
from fairlap.race.planning.plan_file import save_plan
from fairlap.race.run import Run
from fairlap.render.recipe.container import dockerfile
from fairlap.render.recipe.own_models import models_of
from fairlap.render.recipe.readme import readme
from fairlap.render.recipe.versions import versions_of
from fairlap.store.runs.run_file import save_run

_WHEELS = """Put a wheel of fairlap {version} here, unless your package index has one.
In its source tree: `pip wheel . --no-deps --wheel-dir WHERE_THIS_FILE_IS`
"""


def write_recipe(run: Run, folder: Path) -> list[Path]:
    """Write the files into a new or empty folder and return their paths."""
    versions = versions_of(run)
    own = models_of(run.plan)
    texts = {
        "Dockerfile": dockerfile(run, versions, own),
        "requirements.txt": _listed("Packages of the contestants, in the versions that ran.", versions.requirements),
        "constraints.txt": _listed(
            "Other packages that were installed; used only as dependencies.", versions.constraints
        ),
        "environments.txt": _listed(
            "Packages of contestants that ran in a separate environment.", versions.environments
        ),
        "wheels/README.md": _WHEELS.format(version=run.fairlap),
        "README.md": readme(run, versions, own),
    }
    _require_empty(folder)
    try:
        (folder / "wheels").mkdir(parents=True, exist_ok=True)
        (folder / "out").mkdir(exist_ok=True)
        for name, text in texts.items():
            (folder / name).write_text(text)
        if own:
            own.copy_into(folder)
        save_plan(own.plan, folder / "plan.json")
        save_run(folder / "recorded.json", run)
    except OSError as error:
        raise NotWritten(f"cannot write the recipe to {folder}: {error.strerror}") from None
    return [*(folder / name for name in texts), folder / "plan.json", folder / "recorded.json"]


def _require_empty(folder: Path) -> None:
    try:
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise InvalidRequest(f"{folder} exists and is not an empty folder; use another one")
    except OSError as error:
        raise InvalidRequest(f"cannot read {folder}: {error.strerror}", code="E_FILE") from None


def _listed(what: str, lines: tuple[str, ...]) -> str:
    return "\n".join([f"# {what}", *lines]) + "\n"
