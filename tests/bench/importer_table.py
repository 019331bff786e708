"""Write the tables of docs/reference/onnx-import.md: the operators that are claimed, and the node tests that pass.

The operators of LiteRT that are translated to ONNX go into docs/how-to/race-litert-files.md.

    python tests/bench/importer_table.py --on numpy,torch,jax,tensorflow

Without ``--on`` the shares stay as they are and only the list of operators is written again.
"""

from __future__ import annotations

import argparse
import re
import sys
from importlib.metadata import version

from fairlap.models.onnx_import.operators.table import claimed
from fairlap.models.sources.litert_files.list_updates import SET_ROW
from fairlap.models.sources.litert_files.onnx_of_litert import kinds_in_steps
from fairlap.models.sources.litert_files.operators import TRANSLATIONS
from generated_page import DOCS, write_part
from onnx_cases import EXCLUDED, EXCLUDED_IN_NUMPY, LIBRARIES, check, claimed_cases, loaded, reason_to_exclude

PAGE_OF_LITERT = DOCS / "how-to" / "race-litert-files.md"
PAGE = DOCS / "reference" / "onnx-import.md"


def shares(chosen: list[str]) -> str:
    cases = list(claimed_cases())
    lines = ["| library | passed | cases | share |", "| --- | ---: | ---: | ---: |"]
    for library in (each for each in LIBRARIES if each in chosen):
        counted = [case for case in cases if reason_to_exclude(case.name, library) is None]
        passed = 0
        for case in counted:
            try:
                check(case, loaded(case), library)
                passed += 1
            except Exception as error:
                print(f"{library} {case.name}: {error}", file=sys.stderr)
        name = f"{library} {version(library)}"
        lines.append(f"| {name} | {passed} | {len(counted)} | {passed / len(counted):.1%} |")
    excluded = [
        f"- {reason}: {sum(any(re.search(part, case.name) for part in parts) for case in cases)} cases{where}"
        for table, where in ((EXCLUDED, ""), (EXCLUDED_IN_NUMPY, ", in NumPy only"))
        for reason, parts in table.items()
    ]
    return "\n".join([*lines, "", f"The cases are those of onnx {version('onnx')}. Not counted:", "", *excluded])


def operators() -> str:
    return f"{len(claimed())} operators: " + ", ".join(f"`{name}`" for name in claimed()) + "."


def operators_of_litert() -> str:
    real, in_steps = (sorted(each) for each in (TRANSLATIONS.keys() - {SET_ROW}, kinds_in_steps()))
    return "\n\n".join(
        f"{len(kinds)} operators {how}: " + ", ".join(f"`{kind}`" for kind in kinds) + "."
        for how, kinds in (("of real numbers", real), ("in steps", in_steps))
    )


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--on", default="")
    chosen = options.parse_args().on
    write_part(PAGE, "operators", operators())
    write_part(PAGE_OF_LITERT, "operators", operators_of_litert())
    if chosen:
        write_part(PAGE, "shares", shares(chosen.split(",")))


if __name__ == "__main__":
    main()
