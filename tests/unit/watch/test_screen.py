"""Readings in the terminal: rows, bars, and what is absent."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from fairlap.watch.metrics import BYTES, SHARE, WATTS
from fairlap.watch.readings import ReadingsNow
from fairlap.watch.rows import rows_of
from fairlap.watch.run import plain_line
from fairlap.watch.screen import BLOCKS, Screen, sparkline
from rich.console import Console
from watched_machine import WatchedMachine, fake_nvml_path, fresh_fake_nvml, next_interval


def test_bars_are_means_and_blank_without_a_reading() -> None:
    points = [(1.0, 0.0), (31.0, 2.0), (32.0, 6.0), (59.0, 8.0)]
    assert sparkline(points, 6, 59.5, 60.0, 8.0, BLOCKS) == "▁  ▅ █"


def test_bars_keep_their_height_from_one_drawing_to_the_next() -> None:
    points = [(float(second), float(second % 7)) for second in range(60)]
    first = sparkline(points, 19, 59.5, 60.0, 7.0, BLOCKS)
    assert sparkline([*points, (61.0, 3.0)], 19, 61.0, 60.0, 7.0, BLOCKS)[:-1] == first[1:]


def test_a_point_outside_the_span_or_above_the_top_is_clipped() -> None:
    assert sparkline([(-1.0, 1.0), (61.0, 1.0), (59.0, 99.0)], 3, 59.0, 60.0, 1.0, BLOCKS) == "  █"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (WATTS.range_text(45.23, 312.4), "45.2–312 W"),
        (WATTS.range_text(45.23, 45.24), "45.2 W"),
        (SHARE.range_text(0.0, 0.5), "0–50 %"),
        (BYTES.range_text(2**20, 1.1 * 2**30), "1 MiB–1.1 GiB"),
    ],
)
def test_a_range_names_a_shared_unit_once(text: str, expected: str) -> None:
    assert text == expected


@pytest.fixture
def readings(tmp_path: Path) -> ReadingsNow:
    fake = fresh_fake_nvml()
    fake.fake_nvml_set_device_count(2)
    fake.fake_nvml_set_reading(1, b"throttle_reasons", 0x44)
    # Field 74: nanoseconds for which power throttled the device.
    fake.fake_nvml_set_field(1, 74, 3, 0, 500_000_000, 0)
    machine = WatchedMachine(tmp_path)
    with ReadingsNow(0.1, root=machine.root, nvml_library=fake_nvml_path()) as readings:
        fake.fake_nvml_advance(100_000_000)
        for step in range(1, 10):  # a slow machine may let an interval go by without a change
            machine.energy_uj(6_000_000 * step)
            next_interval(readings)
            if any("package-0" in row.name for row in rows_of(readings.series)):
                break
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
    for words in ("GPU 0", "GPU 1", "power", "100 W", "1,980 MHz", "1 GiB of 16 GiB", "power package-0", "stolen"):
        assert words in picture
    assert "power cap" in picture
    assert "hw thermal" in picture
    assert "4 GiB of 16 GiB" in picture
    assert BLOCKS[0] in picture


def test_the_main_reason_for_throttling_is_shown_with_the_share(readings: ReadingsNow) -> None:
    [throttled] = [row for row in rows_of(readings.series) if (row.group, row.name) == ("GPU 1", "throttled")]
    assert (throttled.alarming, throttled.note) == (True, "power")


def test_absences_are_cut_while_live_and_whole_at_the_end(readings: ReadingsNow) -> None:
    why = next(absence.why for absence in readings.absences() if absence.source == "cpu_frequency")
    live, last = ("".join(drawn(readings, live=live).split()) for live in (True, False))
    assert ("cpu_frequency" in live, "".join(why.split()) in live) == (True, False)
    assert "".join(why.split()) in last


def test_a_low_terminal_keeps_what_matters_most(readings: ReadingsNow) -> None:
    low = drawn(readings, live=True, height=24)
    assert "power package-0" in low
    assert "throttled" in low
    assert "SM clock" not in low


def test_an_output_without_block_characters_gets_ascii(readings: ReadingsNow) -> None:
    assert drawn(readings, live=True, encoding="ascii").isascii()


@pytest.mark.parametrize("width", [1, 20, 40, 79, 300])
def test_any_width_can_be_drawn(readings: ReadingsNow, width: int) -> None:
    assert max(map(len, drawn(readings, live=True, width=width).splitlines())) <= width


NUMBER = re.compile(r"\d[\d.,–-]*(?: (?:W|MHz|[KMGT]iB|B|°?C|%|cores|/s)(?!\w))?")


def numbers_in(picture: str) -> set[str]:
    """Of its rows, without the title and without what is absent."""
    rows = [line for line in picture.partition("absent")[0].splitlines() if "This machine" not in line]
    return set(NUMBER.findall("\n".join(rows)))


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
@pytest.mark.parametrize("live", [True, False])
def test_no_number_is_cut_in_a_narrow_picture(readings: ReadingsNow, live: bool, encoding: str) -> None:
    def picture(width: int) -> str:
        return drawn(readings, live=live, width=width, height=300, encoding=encoding)

    whole = numbers_in(picture(200))
    assert {"1,980 MHz", "4 GiB", "16 GiB", "0.00 cores"} <= whole
    for width in (*range(7, 100), *range(100, 200, 7)):  # below, even the word "columns" is folded
        narrow = picture(width)
        left_out = re.search(r"(\d+) rows? needs? (\d+) columns", " ".join(narrow.split()))
        assert numbers_in(narrow) - (set(left_out.groups()) if left_out else set()) <= whole, f"{width}\n{narrow}"


def test_every_row_has_its_whole_name_and_number_as_long_as_the_number_fits(readings: ReadingsNow) -> None:
    rows = rows_of(readings.series)
    longest = max(len(row.text) for row in rows)
    for width in range(longest, 120):
        words = " ".join(drawn(readings, live=True, width=width, height=300).split())
        for row in rows:
            assert row.name in words, width
            assert row.text in words, width
        assert "columns" not in words


def test_a_number_longer_than_the_terminal_is_left_out_with_the_columns_that_it_needs(
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
    used.history.extend([(readings.taken_s, 1000.1 * 2**30), (readings.taken_s, 1022 * 2**30)])
    note = next(row.note for row in rows_of(readings.series) if row.name == "used")
    assert len(note) >= 15
    assert note in drawn(readings, live=True, width=80)


def test_a_cut_absence_ends_with_an_ellipsis(readings: ReadingsNow) -> None:
    for encoding, ellipsis in (("utf-8", "…"), ("ascii", "...")):
        lines = [
            line.rstrip()
            for line in drawn(readings, live=True, width=30, encoding=encoding).splitlines()
            if line.startswith("cpu_frequency")
        ]
        assert lines
        assert all(line.endswith(ellipsis) for line in lines)


def test_a_plain_line_contains_every_reading(readings: ReadingsNow) -> None:
    line = plain_line(readings)
    assert "\n" not in line
    assert "GPU 0: power 100 W" in line
    assert "Memory: used 4 GiB of 16 GiB" in line
