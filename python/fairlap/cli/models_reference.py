"""The table of built-in models, made from their folders: ``python -m fairlap.cli.models_reference``."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

from fairlap.errors import FairlapError
from fairlap.machine.files.atomic_files import write_output
from fairlap.models.names import family_of, sizes_of_family, workload_names
from fairlap.models.registry import find
from fairlap.models.spec import Spec

PAGE = Path("docs/reference/models.md")
BEGIN, END = "<!-- models -->", "<!-- end of models -->"
_NO_MODEL = "callable"  # stands for whatever is handed in
_PREFIXES = ((1e9, "G"), (1e6, "M"), (1e3, "k"))
_HEADS = ("model", "what it is", "parameters", "MACs of an item", "batch", "modes", "sizes from")


def table() -> str:
    """List all built-in models with what their specs say; the first paragraph of a spec's text says what it is."""
    names = [name for name in workload_names() if name != _NO_MODEL]
    built_in = [name for name in names if find(name).package == f"fairlap.bench_models.{name}"]
    lines = [f"| {' | '.join(_HEADS)} |", "|" + " --- |" * len(_HEADS)]
    return "\n".join([*lines, *map(_line, built_in)])


def _line(name: str) -> str:
    model = find(name)
    spec, code = model.spec, model.package.partition(":")[0]
    text = " ".join((import_module(f"{code}.spec").__doc__ or "").partition("\n\n")[0].split())
    cells = (
        _called(name),
        text.replace("``", "`").replace("|", "\\|"),
        f"{spec.parameters:,}" if spec.parameters else "",
        _macs(spec),
        str(spec.default_batch),
        ", ".join(spec.modes),
        spec.published,
    )
    return f"| {' | '.join(cells)} |".replace("|  |", "| |").replace("|  |", "| |")


def _called(name: str) -> str:
    family = family_of(name)
    former = sizes_of_family(family)[name.partition(":")[2]].get("formerly", "") if family else ""
    return f"`{name}`, `{former}`" if former else f"`{name}`"


def _macs(spec: Spec) -> str:
    macs = 1e9 * (spec.gmacs_per_item or 0.0)
    for size, prefix in _PREFIXES:
        if macs >= size:
            return f"{macs / size:.3g} {prefix}"
    return ""


def page_with_table(page: str) -> str:
    before, _, rest = page.partition(BEGIN)
    return f"{before}{BEGIN}\n\n{table()}\n\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    try:
        write_output(PAGE, page_with_table(PAGE.read_text("utf-8")).encode())
    except (FairlapError, OSError) as error:
        sys.exit(f"{error}; run it from the top of the repository")
