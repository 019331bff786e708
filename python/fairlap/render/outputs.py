"""Every format that a run or its rows can be written in.

The end of a file's name decides which, the longest first: ``rows.json`` is fairlap's own, and ``rows.codequality.json``
is not.

One module of this package makes each format; it is imported when it is used.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from fairlap.errors import FairlapError, InvalidRequest
from fairlap.machine.files.atomic_files import write_output
from fairlap.suggestions import with_hint

if TYPE_CHECKING:
    from fairlap.results.results import Results
    from fairlap.results.row import Row

Content = Literal["rows", "page", "chart", "training", "results"]


class UnknownFormat(InvalidRequest):
    """The suffix of an output file belongs to no format, or to one that the command cannot write or read."""

    code = "E_OUTPUT_FORMAT"


@dataclass(frozen=True)
class Format:
    name: str
    content: Content
    encode: str  # module:function in files, or .folder.module:function; rows or results in, bytes out; else empty
    decode: str = ""  # module:function, the way back; empty where there is none
    binary: bool = False
    needs: tuple[str, ...] = ()  # modules that must be installed
    extra: str = ""  # of the package fairlap; it brings them

    def missing(self) -> str:
        """Name what to install before this format can be written, importing nothing; empty when it can be."""
        lacking = [name for name in self.needs if find_spec(name) is None]
        if not lacking:
            return ""
        return f"{self.name} needs {' and '.join(lacking)}: pip install 'fairlap[{self.extra}]'"


_CHART_LIBRARIES = ("altair", "vl_convert")
_JSON = Format("json", "rows", "files.json_file:encode", "files.json_file:decode")
_JSON_LINES = Format("jsonl", "rows", "files.json_file:encode_lines", "files.json_file:decode_lines")
_CSV = Format("csv", "rows", "files.csv_file:encode", "files.csv_file:decode")
_PARQUET = Format(
    "parquet", "rows", "files.parquet_file:encode", "files.parquet_file:decode", True, ("pyarrow",), "parquet"
)
_MARKDOWN = Format("md", "rows", "files.markdown_file:encode")
_PROMETHEUS = Format("prom", "rows", "files.prometheus_file:encode")
_HTML = Format("html", "page", "", "", False, _CHART_LIBRARIES, "report")
_SVG = Format("svg", "chart", "", "", False, _CHART_LIBRARIES, "report")
_PNG = Format("png", "chart", "", "", True, _CHART_LIBRARIES, "report")
_MLLOG = Format("mllog", "training", "files.mllog_file:encode", "", False, ("mlperf_logging",), "mlperf")
_JUNIT = Format("junit.xml", "results", "ci_reports.junit_file:encode")
_METRICS = Format("metrics.txt", "rows", "ci_reports.metrics_file:encode")
_CODE_QUALITY = Format("codequality.json", "results", "ci_reports.code_quality_file:encode")
_PYTEST_BENCHMARK = Format("pytest-benchmark.json", "results", "other_tools.pytest_benchmark_file:encode")
_ASV = Format("asv.json", "results", "other_tools.asv_file:encode")

FORMATS = {
    ".json": _JSON,
    ".jsonl": _JSON_LINES,
    ".ndjson": _JSON_LINES,
    ".csv": _CSV,
    ".parquet": _PARQUET,
    ".md": _MARKDOWN,
    ".markdown": _MARKDOWN,
    ".prom": _PROMETHEUS,
    ".html": _HTML,
    ".svg": _SVG,
    ".png": _PNG,
    ".mllog": _MLLOG,
    ".junit.xml": _JUNIT,
    ".metrics.txt": _METRICS,
    ".codequality.json": _CODE_QUALITY,
    ".pytest-benchmark.json": _PYTEST_BENCHMARK,
    ".asv.json": _ASV,
}
_LONGEST_FIRST = sorted(FORMATS, key=len, reverse=True)
ROW_FORMATS = {suffix: each for suffix, each in FORMATS.items() if each.content == "rows"}


def format_of(path: Path, among: dict[str, Format] = FORMATS) -> Format:
    """By the suffix, in capitals or not."""
    name = path.name.lower()
    suffix = next((each for each in _LONGEST_FIRST if name.endswith(each)), "")
    if suffix not in among or name == suffix:
        wrong = f"cannot tell the format of {path} from its suffix; use one of {', '.join(among)}"
        raise UnknownFormat(with_hint(wrong, path.suffix, among))
    return among[suffix]


def write(path: Path, results: Results, chosen: Format | None = None) -> None:
    """One file about a run: a JSON file holds all of it, the other formats its rows, page, main chart or training."""
    chosen = chosen or format_of(path)
    if chosen is _JSON:
        from fairlap.store.runs.run_file import encode_document, run_document

        write_output(path, encode_document(run_document(results.run, results)))
    elif chosen.content == "rows":
        write_output(path, encoded(results.rows, chosen))
    elif chosen.content in ("training", "results"):
        write_output(path, _function(chosen.encode)(results))
    else:
        from fairlap.store.runs.run_ids import is_an_id
        from fairlap.store.runs.run_sources import samples_of

        if results.samples is None and is_an_id(results.run_id):
            results = replace(results, samples=samples_of(results.run_id))
        write_output(path, _drawn(chosen, results))


def write_all(files: Iterable[tuple[Path, Format]], results: Results) -> list[str]:
    """Write each file even where another one fails. Returns what went wrong."""
    failures = []
    for path, chosen in files:
        try:
            write(path, results, chosen)
        except FairlapError as error:
            failures.append(str(error))
    return failures


def encoded(rows: Sequence[Row], chosen: Format) -> bytes:
    """Encode the whole file; text is UTF-8."""
    content: bytes = _function(chosen.encode)(rows)
    return content


def write_rows(path: Path, rows: Sequence[Row]) -> None:
    write_output(path, encoded(rows, format_of(path, ROW_FORMATS)))


def read_rows(path: Path) -> list[Row]:
    """Read what ``write_rows`` wrote, without loss; Markdown is for people and cannot be read back."""
    chosen = format_of(path, {suffix: each for suffix, each in FORMATS.items() if each.decode})
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InvalidRequest(f"cannot read {path}: {error.strerror}") from None
    try:
        rows: list[Row] = _function(chosen.decode)(content)
    except ValueError as error:  # also what msgspec, csv and pyarrow raise
        raise InvalidRequest(f"{path} does not hold rows as {chosen.name}: {error}") from None
    return rows


def _function(place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(import_module(f"fairlap.render.{module}"), name)


def _drawn(chosen: Format, shown: Results) -> bytes:
    if chosen.content == "page":
        from fairlap.render.report.page import page_of

        return page_of(shown).encode()
    from fairlap.render.charts.parts.static import main_chart

    return main_chart(shown, png=chosen.binary)
