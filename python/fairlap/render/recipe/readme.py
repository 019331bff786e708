"""The page that stands in a recipe's folder: the one command, and what the container cannot bring."""

from __future__ import annotations

from fairlap.machine.differences import lasting
from fairlap.race.run import Run
from fairlap.render.recipe.container import (
    data_to_bring,
    hashes_of_data,
    install_command,
    mount_option,
    variables_left_out,
)
from fairlap.render.recipe.versions import Versions
from fairlap.request.work import work_title


def readme(run: Run, versions: Versions) -> str:
    works = work_title(", ".join(work.label for work in run.plan.works), run.plan.data)
    parts = [
        f"# {_code(works)}, once more",
        f"{_code(', '.join(each.text for each in run.plan.contestants))}; fairlap {_code(run.fairlap)}, "
        f"Python {versions.python}, {run.plan.process_count()} processes in {len(run.plan.blocks)} blocks"
        + (f"; begun at {_code(run.began_at)}." if run.began_at else "."),
        f"First put a wheel of fairlap {_code(run.fairlap)} into `wheels`, unless your package index has one. Then:",
        _block(f"docker build --tag fairlap-again . && docker run --rm {_options(run)} fairlap-again"),
        "Without Docker, in this folder:",
        _block(
            f"python{'.'.join(versions.python.split('.')[:2])} -m venv again && {install_command('again/bin/pip')}"
            f" && {_constraint(versions)}again/bin/fairlap compare --plan plan.json --json out/run.json"
        ),
        "What came of it, beside what was recorded, and what differs between the machines:",
        _block("fairlap diff recorded.json out/run.json"),
        *_remarks(run, versions),
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
    if data := data_to_bring(run):
        options.append(mount_option(data))
    return " ".join([*options, '--volume "$PWD/out:/out"'])


def _constraint(versions: Versions) -> str:
    return 'PIP_CONSTRAINT="$PWD/environments.txt" ' if versions.environments else ""


def _remarks(run: Run, versions: Versions) -> list[str]:
    remarks = []
    if versions.builds:
        remarks.append(
            f"- These are builds that your package index may not have: {_code(', '.join(versions.builds))}. "
            "Without them pip takes its own build of the same version, which may be another one; "
            "`PIP_EXTRA_INDEX_URL` can name an index that has them."
        )
    programs = [each.program for each in run.plan.contestants if each.program]
    if programs:
        listed = _code(", ".join(programs))
        remarks.append(f"- Programs are not part of the recipe; copy them to where the plan finds them: {listed}.")
    if data := data_to_bring(run):
        hashes = hashes_of_data(run)
        known = f" (hash {' and '.join(map(_code, hashes))})" if hashes else ""
        remarks.append(
            f"- The data that was fed is not part of the recipe: bring {_code(data)}{known} to the same path. "
            "The container reads it there and cannot write it; `fairlap diff` says so when it is other data."
        )
    apart = [each.text for each in run.plan.contestants if each.version]
    if apart or versions.environments:
        remarks.append("- Some contestants get an environment of their own, made with pip while the race begins.")
    left_out = variables_left_out(run.machine)
    if left_out:
        remarks.append(f"- These variables were set and mean nothing elsewhere: {_code(', '.join(left_out))}.")
    remarks.append("- A container shares its host's kernel, clocks and neighbours: `fairlap doctor` tells.")
    return ["## What it does not bring", "\n".join(remarks)]


def _block(command: str) -> str:
    return f"```\n{command}\n```"


def _code(text: str) -> str:
    """What a file says, on one line and as code, so that it is shown and not obeyed."""
    return f"`{' '.join(text.replace('`', ' ').split())}`"


def _cell(text: str) -> str:
    return _code(text).replace("|", "\\|")
