"""The reports of one program's runs: kept as they come in the timed calls, read between them."""

from __future__ import annotations

import json
import shutil
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path

from fairlap.errors import shortened
from fairlap.frameworks.contract_parts.called_programs import ContestantFailed
from fairlap.frameworks.programs.reported_times import HOW_TO_REPORT, BadReport, NoReport, reported_time
from fairlap.machine.files.scratch_folder import ScratchFolder
from fairlap.request.commands import REPORT_FILE, report_in, with_report_file

# The folder that criterion writes, ``target/criterion`` or ``CRITERION_HOME``: below it ``BENCHMARK/new`` for each.
# There ``benchmark.json`` has the name and ``estimates.json`` the figures, as criterion writes them since version 0.3
# (``analysis/mod.rs`` and ``report.rs`` of its sources). ``base`` and saved baselines are of earlier runs, and
# ``change`` has shares.
_NEW, _NAME, _ESTIMATES = "new", "benchmark.json", "estimates.json"


def criterion_texts(folder: Path) -> bytes:
    """Read what the newest run wrote, as text in which the name of each benchmark precedes its estimates."""
    found = []
    for estimates in sorted(folder.rglob(f"{_NEW}/{_ESTIMATES}")):
        named = estimates.with_name(_NAME)
        by_place = {"full_id": str(estimates.parent.parent.relative_to(folder))}
        name = named.read_bytes() if named.is_file() else json.dumps(by_place).encode()
        found += [name, estimates.read_bytes()]
    return b"\n".join(found)


_MOST_BYTES = 16 * 2**20
_MOST_SHOWN = 60

_Texts = dict[str, bytes]


class ReportFailed(ContestantFailed):
    """A program's report of its own time is missing or cannot be used."""

    code = reported = "E_REPORT"


class OwnReport:
    """``words`` is the command line with the path of the report in it, where it names one."""

    def __init__(self, words: Sequence[str], reported: str) -> None:
        self._format, self._benchmark = report_in(reported)
        self.is_printed = not any(REPORT_FILE in word for word in words)
        self._kept: list[_Texts] = []
        self.method = f"reported by {self._format}"
        self.words = list(words)
        if not self.is_printed:
            scratch = ScratchFolder()
            weakref.finalize(self, scratch.remove)
            self._file = scratch.path / "report"
            self.words = with_report_file(words, str(self._file))

    def keep(self, output: Callable[[], bytes], errors: Callable[[], bytes]) -> None:
        """Keep the report after a run.

        The file, or criterion's folder, is removed, so that the next run cannot leave it as it was, and because some
        tools overwrite none.
        """
        if self.is_printed:
            self._kept.append({"its standard output": output(), "its standard error": errors()})
            return
        try:
            if self._format == "criterion" and self._file.is_dir():
                written = criterion_texts(self._file)
                shutil.rmtree(self._file)
            else:
                written = self._file.read_bytes()
                self._file.unlink()
        except OSError as error:
            raise ReportFailed(
                f"it wrote no report to {REPORT_FILE} ({error.strerror}); {HOW_TO_REPORT[self._format]}"
            ) from None
        self._kept.append({f"its file {REPORT_FILE}": written})

    def newest_ns(self, calls: int) -> Sequence[float]:
        kept, self._kept = self._kept[-calls:], []
        return [self._read(texts) for texts in kept]

    def _read(self, texts: _Texts) -> float:
        why = ""
        for where, text in texts.items():
            if len(text) > _MOST_BYTES:
                raise ReportFailed(f"{where} has {len(text):,} bytes, more than a report of {self._format} may have")
            try:
                name, time_ns = reported_time(text.decode("utf-8", "replace"), self._format, self._benchmark)
            except NoReport as error:
                why = why or str(error)
            except BadReport as error:
                raise ReportFailed(f"{where}, read as {self._format}: {error}") from None
            else:
                self.method = f"reported by {self._format}{f', {shortened(name, _MOST_SHOWN)}' if name else ''}"
                return time_ns
        sizes = " and ".join(f"{where} ({len(text):,} bytes)" for where, text in texts.items())
        raise ReportFailed(f"{sizes}, read as {self._format}: {why}; {HOW_TO_REPORT[self._format]}")
