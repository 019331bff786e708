"""The README of a recipe: the one command, and what the container does not contain."""

from __future__ import annotations

from fairlap.machine.differences import lasting
from fairlap.quantity_text import count
from fairlap.race.planning.plan_reach import reach_of
from fairlap.race.run import Run
from fairlap.render.recipe.container import (
    data_to_bring,
    install_command,
    mount_option,
    variables_left_out,
    words_to_race,
)
from fairlap.render.recipe.own_models import FOLDER, OwnModels
from fairlap.render.recipe.versions import Versions


def readme(run: Run, versions: Versions, own: OwnModels) -> str:
    works = ", ".join(map(run.plan.title_of, run.plan.works))
    ran = {process.block for process in run.processes}
    parts = [
        f"# Repeat of {_code(works)}",
        f"{_code(', '.join(each.text for each in run.plan.contestants))}; fairlap {_code(run.fairlap)}, "
        f"Python {versions.python}, {count(len(run.processes), 'process')} in {count(len(ran), 'block')}"
        + (f"; started at {_code(run.began_at)}." if run.began_at else "."),
        f"Put a wheel of fairlap {_code(run.fairlap)} into `wheels`, unless your package index has one. Then run:",
        _block(f"docker build --tag fairlap-again . && docker run --rm {_options(run)} fairlap-again"),
        "Without Docker, in this folder:",
        _block(
            f"python{'.'.join(versions.python.split('.')[:2])} -m venv again && {install_command('again/bin/pip')}"
            f" && {_constraint(versions)}again/bin/fairlap {' '.join(words_to_race(own))} -o out/run.json"
        ),
        "Compare the new run with the recorded one, and the two machines:",
        _block("fairlap diff recorded.json out/run.json"),
        *_remarks(run, versions, own),
        "## The machine of the recorded run",
        "| fact | value |\n| --- | --- |\n"
        + "\n".join(f"| {_cell(name)} | {_cell(value)} |" for name, value in sorted(lasting(run.machine).items())),
    ]
    return "\n\n".join(parts) + "\n"


def _options(run: Run) -> str:
    cores = sorted({core for block in run.plan.blocks for core in block.cores})
    options = [f"--cpuset-cpus {','.join(map(str, cores))}"] if cores else []
    if run.plan.device != "cpu":
        options.append("--gpus all")
    options += [mount_option(data) for data in data_to_bring(run)]
    return " ".join([*options, '--volume "$PWD/out:/out"'])


def _constraint(versions: Versions) -> str:
    return 'PIP_CONSTRAINT="$PWD/environments.txt" ' if versions.environments else ""


def _remarks(run: Run, versions: Versions, own: OwnModels) -> list[str]:
    remarks = _remarks_on_models(own)
    if versions.builds:
        remarks.append(
            f"- Your package index may not have these builds: {_code(', '.join(versions.builds))}. "
            "Without them pip installs another build of the same version; "
            "`PIP_EXTRA_INDEX_URL` can name an index that has them."
        )
    programs = [each.program for each in run.plan.contestants if each.program]
    if programs:
        listed = _code(", ".join(programs))
        remarks.append(f"- Programs are not part of the recipe; copy them to the paths in the plan: {listed}.")
    for data, hashes in data_to_bring(run).items():
        known = f" (hash {' and '.join(map(_code, hashes))})" if hashes else ""
        remarks.append(
            f"- The data is not part of the recipe: copy {_code(data)}{known} to the same path. "
            "The container mounts it read-only; `fairlap diff` reports different data."
        )
    apart = [each.text for each in run.plan.contestants if each.version]
    if apart or versions.environments:
        remarks.append("- Some contestants run in a separate environment, which pip creates when the race starts.")
    if reach_of(own.plan):
        remarks.append("- `--trust` runs the commands, files and packages that the plan names; read `plan.json` first.")
    left_out = variables_left_out(run.machine)
    if left_out:
        remarks.append(f"- These variables were set and are not carried over: {_code(', '.join(left_out))}.")
    remarks.append("- A container shares its host's kernel, clocks and load; `fairlap doctor` checks them.")
    return ["## What is not included", "\n".join(remarks)]


def _remarks_on_models(own: OwnModels) -> list[str]:
    remarks = [
        f"- The file {_code(file.place)} is not part of the recipe, since {why}: put the one with the SHA-256 "
        f"{_code(file.digest)} there."
        for file, why in own.left_out().items()
    ]
    remarks += [
        f"- The code of {_code(text)} is not part of the recipe: put its module into `{FOLDER}`."
        for text in own.modules
    ]
    if any(file.place.endswith(".py") for file in own.files):
        remarks.append("- What the scripts read is not part of the recipe.")
    return remarks


def _block(command: str) -> str:
    return f"```\n{command}\n```"


def _code(text: str) -> str:
    """Text of the run on one line and as code, so that Markdown does not interpret it."""
    return f"`{' '.join(text.replace('`', ' ').split())}`"


def _cell(text: str) -> str:
    return _code(text).replace("|", "\\|")
