"""Prices are the user's own: kept with currency and date, looked up by name, never invented."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from fairlap.cli.commands.list import command
from fairlap.errors import InvalidRequest
from fairlap.results.prices import EXAMPLE, Price, known_prices, price_named, prices_file
from fairlap.results.results import results_of
from runs_for_rows import a_run

TABLE = """[[price]]
name = "small.instance"
per_hour = 3.6
currency = "EUR"
dated = 2026-01-31

[[price]]
name = "NVIDIA H100"
per_hour = 2
currency = "USD"
dated = "2025-12-01"
"""


@pytest.fixture(autouse=True)
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "fairlap").mkdir()
    return tmp_path / "fairlap" / "prices.toml"


def test_a_price_is_found_by_name_with_its_currency_and_date(settings: Path) -> None:
    settings.write_text(TABLE)
    assert price_named("small.instance") == Price(3.6, "EUR", "small.instance", "2026-01-31")
    assert price_named("NVIDIA H100") == Price(2.0, "USD", "NVIDIA H100", "2025-12-01")
    assert price_named("1.5EUR/h").per_hour == 1.5
    [row, _] = results_of(a_run(), "r", price=price_named("small.instance")).rows
    assert row.currency == "EUR"
    assert row.cost_per_1000_items is not None


def test_a_name_that_is_not_there_is_reported_with_a_near_one_or_the_place(settings: Path) -> None:
    with pytest.raises(InvalidRequest, match="small"):
        price_named("small")
    settings.write_text(TABLE)
    with pytest.raises(InvalidRequest, match=r"small.instance"):
        price_named("smal.instance")


def test_without_a_table_a_name_is_refused_with_the_command_that_shows_how_to_write_one(settings: Path) -> None:
    with pytest.raises(InvalidRequest) as refused:
        price_named("abc")
    assert refused.value.code == "E_PRICE"
    assert "does not exist" in str(refused.value)
    assert "`fairlap list prices`" in str(refused.value)
    settings.touch()
    with pytest.raises(InvalidRequest) as refused:
        price_named("abc")
    assert "does not exist" not in str(refused.value)
    assert "`fairlap list prices`" in str(refused.value)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("3.6", "0", "price[0].per_hour"),
        ("3.6", "inf", "price[0].per_hour"),
        ("3.6", "nan", "price[0].per_hour"),
        ("3.6", "'3.6'", "price[0].per_hour"),
        ('"EUR"', '"euro"', "price[0].currency"),
        ('"2025-12-01"', '"last year"', "price[1].dated"),
        ("dated = 2026-01-31\n", "", "price[0].dated"),
        ("NVIDIA H100", "small.instance", "small.instance"),
        ("per_hour = 2", "per_our = 2", "price[1].per_our; did you mean per_hour?"),
        ("[[price]]\nname", "[small]\nname", "small"),
        ("EUR", "EUR\nUSD", "line 4"),
    ],
)
def test_an_error_in_the_table_names_the_file_and_the_key(settings: Path, old: str, new: str, words: str) -> None:
    settings.write_text(TABLE.replace(old, new, 1))
    with pytest.raises(InvalidRequest) as refused:
        known_prices()
    assert words in str(refused.value)
    assert str(settings) in str(refused.value)


def test_the_list_shows_the_prices_and_where_they_lie(settings: Path) -> None:
    text = CliRunner().invoke(command, ["prices"]).output
    assert str(prices_file()) == str(settings)
    assert f"No prices yet. Write entries such as this into {settings}" in text
    settings.write_text(EXAMPLE)
    assert [entry.currency for entry in known_prices()] == ["USD"]
    settings.write_text(TABLE)
    lines = CliRunner().invoke(command, ["prices"]).output.splitlines()
    assert lines[1].split() == ["small.instance", "3.6", "EUR/h", "2026-01-31"]
    assert lines[-1] == f"in {settings}"
    assert json.loads(CliRunner().invoke(command, ["prices", "--json"]).output)["file"] == str(settings)
