"""The files of a machine, below a root folder that tests replace. A missing file reads as empty."""

from __future__ import annotations

from pathlib import Path


class Root:
    """Every reader of this package takes one; paths have no leading slash."""

    def __init__(self, folder: Path | str = "/") -> None:
        self._folder = str(folder).rstrip("/")

    @property
    def is_this_machine(self) -> bool:
        return not self._folder

    def text(self, path: str) -> str:
        """Without surrounding white space; empty for a file that is missing or cannot be read.

        Opened by its plain name: through pathlib the same few dozen files take twice the time.
        """
        try:
            with open(f"{self._folder}/{path}", encoding="utf-8", errors="replace") as file:  # noqa: PTH123
                return file.read().strip()
        except OSError:
            return ""

    def lines(self, path: str) -> list[str]:
        return self.text(path).splitlines()

    def number(self, path: str) -> int | None:
        """None for anything but a whole number, such as the ``max`` of a control group without a limit."""
        return whole_number(self.text(path))

    def named_numbers(self, path: str) -> dict[str, int]:
        """Of a file with lines such as ``oom_kill 3``."""
        pairs = (line.partition(" ") for line in self.lines(path))
        numbers = ((name, whole_number(value)) for name, _, value in pairs)
        return {name: number for name, number in numbers if number is not None}

    def names(self, folder: str) -> list[str]:
        """Sorted; empty for a folder that cannot be listed."""
        try:
            return sorted(entry.name for entry in Path(f"{self._folder}/{folder}").iterdir())
        except OSError:
            return []

    def exists(self, path: str) -> bool:
        try:
            return Path(f"{self._folder}/{path}").exists()
        except OSError:
            return False


THIS_MACHINE = Root()


def whole_number(text: str) -> int | None:
    try:
        return int(text)
    except ValueError:
        return None


def numbers_listed(text: str) -> list[int]:
    """Parse the kernel's lists: ``0-3,8`` is 0, 1, 2, 3 and 8. Empty for anything else."""
    found: list[int] = []
    for part in filter(None, text.strip().split(",")):
        first, _, last = part.partition("-")
        low, high = whole_number(first), whole_number(last or first)
        if low is None or high is None or not 0 <= low <= high < 1_000_000:
            return []
        found += range(low, high + 1)
    return found


def kilobytes(text: str) -> int | None:
    """From ``32K``, ``1024 KB`` or ``12M`` in the kernel's files."""
    digits = text.strip().rstrip("BKMGbkmgi ").strip()
    value = whole_number(digits)
    if value is None:
        return None
    return value * {"M": 1024, "G": 1024 * 1024}.get(text.strip()[len(digits) :].strip()[:1].upper(), 1)
