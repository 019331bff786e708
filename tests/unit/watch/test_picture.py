"""What a person sees: rows, bars, and what is absent."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from fairlap.watch.lines import plain_line
from fairlap.watch.readings import ReadingsNow
from fairlap.watch.rows import rows_of
from fairlap.watch.screen import BLOCKS, Screen, sparkline
from fairlap.watch.units import BYTES, SHARE, WATTS, part_text
from rich.console import Console
from watched_machine import WatchedMachine, fake_nvml_path, fresh_fake_nvml, next_interval


def test_bars_stand_for_means_and_what_was_not_read_has_none() -> None:
    points = [(1.0, 0.0), (31.0, 2.0), (32.0, 6.0), (59.0, 8.0)]
    assert sparkline(points, 6, 59.5, 60.0, 8.0, BLOCKS) == "▁  ▅ █"


def test_bars_keep_their_height_from_one_drawing_to_the_next() -> None:
    points = [(float(second), float(second % 7)) for second in range(60)]
    first = sparkline(points, 19, 59.5, 60.0, 7.0, BLOCKS)
    assert sparkline([*points, (61.0, 3.0)], 19, 61.0, 60.0, 7.0, BLOCKS)[:-1] == first[1:]


def test_a_point_outside_of_the_span_or_above_the_top_breaks_nothing() -> None:
    assert sparkline([(-1.0, 1.0), (61.0, 1.0), (59.0, 99.0)], 3, 59.0, 60.0, 1.0, BLOCKS) == "  █"


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        (WATTS.text(312.4), "312 W"),
        (WATTS.text(45.23), "45.2 W"),
        (SHARE.text(0.0), "0.0 %"),
        (SHARE.range_text(0.0, 0.5), "0.0–50.0 %"),
        (BYTES.range_text(2**20, 2**30), "0.0–1 GiB"),
        (BYTES.range_text(610 * 2**20, 1.1 * 2**30), "0.6–1.1 GiB"),
        (part_text(610 * 2**20, 23.5 * 2**30), "0.6 of 23.5 GiB"),
        (part_text(0, 0), "0.0 of 0 B"),
    ],
)
def test_figures_have_the_units_that_people_use(told: str, expected: str) -> None:
    assert told == expected


@pytest.fixture
def readings(tmp_path: Path) -> ReadingsNow:
    fake = fresh_fake_nvml()
    fake.fake_nvml_set_device_count(2)
    fake.fake_nvml_set_reading(1, b"throttle_reasons", 0x44)
    # Field 74: nanoseconds for which power held the device back.
    fake.fake_nvml_set_field(1, 74, 3, 0, 500_000_000, 0)
    machine = WatchedMachine(tmp_path)
    with ReadingsNow(0.1, root=machine.root, nvml_library=fake_nvml_path()) as readings:
        fake.fake_nvml_advance(100_000_000)
        next_interval(readings)
    return readings


def drawn(readings: ReadingsNow, *, live: bool, width: int = 80, height: int = 60, encoding: str = "utf-8") -> str:
    file = io.TextIOWrapper(io.BytesIO(), encoding=encoding, write_through=True)
    console = Console(file=file, width=width, height=height, force_terminal=True, color_system=None)
    console.print(Screen(readings, live=live))
    assert isinstance(file.buffer, io.BytesIO)
    return file.buffer.getvalue().decode(encoding)


def test_a_picture_fits_into_eighty_columns(readings: ReadingsNow) -> None:
    picture = drawn(readings, live=True)
    assert max(map(len, picture.splitlines())) <= 80
    for words in ("GPU 0", "GPU 1", "power", "100 W", "1,980 MHz", "1.0 of 16 GiB", "power package-0", "stolen"):
        assert words in picture
    assert "power cap" in picture
    assert "hardware heat" in picture
    assert "4.0 of 16 GiB" in picture
    assert BLOCKS[0] in picture


def test_the_reason_that_holds_a_device_back_most_stands_beside_the_share(readings: ReadingsNow) -> None:
    throttled = [row for row in rows_of(readings.series) if (row.group, row.name) == ("GPU 1", "throttled")]
    assert len(throttled) == 1
    assert throttled[0].alarming
    assert throttled[0].note == "power"


def test_absent_sources_are_told_in_the_picture_and_whole_in_the_last_one(readings: ReadingsNow) -> None:
    assert "cpu_frequency: no core has cpufreq under" in drawn(readings, live=True, width=120)
    last = " ".join(drawn(readings, live=False).split())
    assert "the kernel does not tell the clock here, as in most virtual machines" in last


def test_a_low_terminal_keeps_what_matters_most(readings: ReadingsNow) -> None:
    low = drawn(readings, live=True, height=24)
    assert "power package-0" in low
    assert "throttled" in low
    assert "SM clock" not in low


def test_an_output_without_blocks_gets_plain_signs(readings: ReadingsNow) -> None:
    assert drawn(readings, live=True, encoding="ascii").isascii()


@pytest.mark.parametrize("width", [1, 20, 40, 79, 300])
def test_any_width_can_be_drawn(readings: ReadingsNow, width: int) -> None:
    assert max(map(len, drawn(readings, live=True, width=width).splitlines())) <= width


FIGURE = re.compile(r"\d[\d.,–-]*(?: of [\d.,]+)?(?: (?:W|MHz|[KMGT]iB|B|°?C|%|cores|/s)(?!\w))?")


def figures_in(picture: str) -> set[str]:
    """Of its rows, without the title and without what is absent."""
    rows = [line for line in picture.partition("absent")[0].splitlines() if "This machine" not in line]
    return set(FIGURE.findall("\n".join(rows)))


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
@pytest.mark.parametrize("live", [True, False])
def test_every_figure_of_a_narrow_picture_is_a_whole_one(readings: ReadingsNow, live: bool, encoding: str) -> None:
    def picture(width: int) -> str:
        return drawn(readings, live=live, width=width, height=300, encoding=encoding)

    whole = figures_in(picture(200))
    assert {"1,980 MHz", "4.0 of 16 GiB", "0.00 cores"} <= whole
    for width in range(7, 200):  # below, even the word "columns" is folded
        told = picture(width)
        left_out = re.search(r"(\d+) rows? needs? (\d+) columns", " ".join(told.split()))
        assert figures_in(told) - (set(left_out.groups()) if left_out else set()) <= whole, f"{width}\n{told}"


def test_every_row_has_its_whole_name_and_its_figure_as_long_as_the_figure_fits(readings: ReadingsNow) -> None:
    rows = rows_of(readings.series)
    longest = max(len(row.text) for row in rows)
    for width in range(longest, 120):
        words = " ".join(drawn(readings, live=True, width=width, height=300).split())
        for row in rows:
            assert row.name in words, width
            assert row.text in words, width
        assert "columns" not in words


def test_a_figure_longer_than_the_terminal_is_left_out_and_the_columns_it_needs_are_told(
    readings: ReadingsNow,
) -> None:
    picture = drawn(readings, live=True, width=10, height=300)
    assert "1,980 MHz" in picture
    assert re.search(r"\d rows need \d+ columns", " ".join(picture.split()))


@pytest.mark.parametrize(("width", "bars", "notes"), [(80, True, True), (60, True, False), (50, False, False)])
def test_notes_are_left_out_first_and_then_the_bars(readings: ReadingsNow, width: int, bars: bool, notes: bool) -> None:
    picture = drawn(readings, live=True, width=width)
    assert (BLOCKS[0] * 5 in picture or BLOCKS[-1] in picture) == bars
    assert (len(re.findall("1,980 MHz", picture)) > len(re.findall("SM clock", picture))) == notes


def test_a_long_range_keeps_its_unit(readings: ReadingsNow) -> None:
    used = next(each for each in readings.series if each.metric.name == "memory_used_bytes")
    used.history.clear()
    used.history.extend([(readings.taken_s, 1000.1 * 2**30), (readings.taken_s, 1023.9 * 2**30)])
    told = next(row.note for row in rows_of(readings.series) if row.name == "used")
    assert len(told) > 15
    assert told in drawn(readings, live=True, width=80)


def test_what_is_absent_ends_with_a_sign_where_it_is_cut(readings: ReadingsNow) -> None:
    for encoding, sign in (("utf-8", "…"), ("ascii", "...")):
        told = [
            line.rstrip()
            for line in drawn(readings, live=True, width=30, encoding=encoding).splitlines()
            if line.startswith("cpu_frequency")
        ]
        assert told
        assert all(line.endswith(sign) for line in told)


def test_a_line_holds_everything_in_one_line(readings: ReadingsNow) -> None:
    line = plain_line(readings)
    assert "\n" not in line
    assert "GPU 0: power 100 W" in line
    assert "Memory: used 4.0 of 16 GiB" in line
