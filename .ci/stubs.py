"""Write the stub of the native module, or check with --check that the committed stub matches the module.

pybind11-stubgen does not show which classes support the buffer protocol, and writes the members of enumerations as
class variables; both are corrected here, from the module.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

STUB = Path(__file__).parent.parent / "python/fairlap/engine/_native.pyi"
BUFFER_METHOD = "    def __buffer__(self, flags: int, /) -> memoryview:\n        ...\n"


def buffer_classes() -> list[str]:
    """Return the classes whose objects support the buffer protocol (a slot that only C code can see)."""
    from fairlap.engine import _native

    return list(_native.buffer_classes())


def enum_member(line: re.Match[str]) -> str:
    from fairlap.engine import _native

    member, enumeration = line.groups()
    return f"    {member} = {getattr(_native, enumeration)[member].value}"


def generated() -> str:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pybind11_stubgen", "fairlap.engine._native", "-o", folder, "--exit-code"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        text = (Path(folder) / "fairlap/engine/_native.pyi").read_text()
    method = r"    def (__new__|__format__)\((cls|self), \w+\):\n"
    text = re.sub(rf'(    @classmethod\n)?{method}(        """.*?"""\n)?        \.\.\.\n', "", text)
    text = re.sub(r"^    (\w+): typing\.ClassVar\[(\w+)\]$", enum_member, text, flags=re.MULTILINE)
    lines = []
    inside: str | None = None
    buffers = set(buffer_classes())
    for line in text.splitlines(keepends=True):
        if line.startswith("class "):
            inside = line.removeprefix("class ").split("(")[0].split(":")[0].strip()
        if inside in buffers and line.startswith("    def "):
            lines.append(BUFFER_METHOD)
            inside = None
        lines.append(line if line.endswith("\n") else line + "\n")
    return "".join(lines)


def main() -> int:
    text = generated()
    if "--check" not in sys.argv:
        STUB.write_text(text)
        return 0
    if STUB.exists() and STUB.read_text() == text:
        return 0
    print("python/fairlap/engine/_native.pyi does not match the module; run `make stubs` and commit it")
    return 1


if __name__ == "__main__":
    sys.exit(main())
