"""``gate.toml`` holds what options say, options replace it, and a key that it does not have is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from fairlap.errors import InvalidRequest
from fairlap.request.gate_file import FILE, NAME, GateFile, gate_rules
from fairlap.request.race_request import schema_text

TOP = Path(__file__).parents[3]


def test_the_published_schema_is_that_of_the_code() -> None:
    assert (TOP / FILE).read_text() == schema_text(GateFile)


def test_without_a_file_the_options_and_the_usual_bound_hold(tmp_path: Path) -> None:
    found = gate_rules(folder=tmp_path)
    assert (found.max_slowdown, found.strict, found.required) == (0.02, False, ())


def test_the_file_is_read_without_options_and_options_replace_it(tmp_path: Path) -> None:
    text = 'max_slowdown = "3%"\nstrict = true\nrequire = ["memory_peak<=+2%", "cpu_time<=+5%"]\n'
    (tmp_path / NAME).write_text(text)
    found = gate_rules(folder=tmp_path)
    assert (found.max_slowdown, found.strict) == (0.03, True)
    assert [each.text for each in found.required] == ["memory_peak<=+2%", "cpu_time<=+5%"]
    found = gate_rules(0.1, require=["page_faults<=+50%"], folder=tmp_path)
    assert (found.max_slowdown, [each.text for each in found.required]) == (0.1, ["page_faults<=+50%"])


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ('requires = ["memory_peak<=+2%"]', "E_TOML", "require"),
        ("max_slowdwon = 0.02", "E_TOML", "max_slowdown"),
        ('require = "memory_peak<=+2%"', "E_REQUEST", "require"),
        ('require = ["memory_peak<=2%"]', "E_REQUIRE", NAME),
        ("max_slowdown = 3", "E_REQUEST", "3%"),
        ("require = [", "E_TOML", NAME),
    ],
)
def test_what_the_file_cannot_say_is_refused(tmp_path: Path, text: str, code: str, said: str) -> None:
    (tmp_path / NAME).write_text(text)
    with pytest.raises(InvalidRequest) as refused:
        gate_rules(folder=tmp_path)
    assert refused.value.code == code
    assert said in str(refused.value)
