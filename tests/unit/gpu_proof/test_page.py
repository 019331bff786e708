"""The page shows the file's figures and asks for an explanation where methods differ."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from gpu.proof.device_file import merge_into
from gpu.proof.machine import PAGES
from gpu.proof.page import page_of, short_table
from gpu.proof.record import PartRecord, read, write
from gpu.proof.running import record_file
from gpu.proof.selection import selected

FACTS: dict[str, Any] = {"machine": {"driver": "1.2", "cuda": "13.0"}, "packages": {"torch": "9.9"}}


def made_up(folder: Path) -> None:
    record = PartRecord(record_file(folder, 3), 3, "Comparison with other timers")
    for method, ns in (("torch.cuda.Event", 1100.0), ("triton do_bench", 1010.0)):
        record.row(
            "side by side",
            case="empty | kernel",
            method=method,
            figure_ns=ns,
            reference="fairlap device_span",
            reference_ns=1000.0,
            difference_share=ns / 1000 - 1,
        )
    record.goal("host cost", "<= 0.25", 0.2, "", reached=True)
    record.goal("a goal not reached", "<= 1 ns", 3.0, "ns", reached=False, why="<b>because</b>")
    record.goal("a goal unknown", "<= 1 ns", None, "ns", reached=None, why="it was not there")
    record.end()


def test_only_disagreements_over_two_percent_are_listed_and_each_has_a_place_for_an_explanation(tmp_path: Path) -> None:
    made_up(tmp_path)
    document = merge_into(tmp_path / "device.json", "A device", FACTS, tmp_path)
    assert [each["method"] for each in document["disagreements"]] == ["torch.cuda.Event"]
    page = page_of(document, "device.json")
    assert "| 3 | torch.cuda.Event | fairlap device\\_span | empty \\| kernel +10.0% | not explained yet |" in page


def test_explanations_are_kept_when_the_file_is_written_again(tmp_path: Path) -> None:
    made_up(tmp_path)
    file = tmp_path / "device.json"
    document = merge_into(file, "A device", FACTS, tmp_path)
    document["disagreements"][0]["explanation"] = "it makes its events in Python"
    write(file, document)
    again = merge_into(file, "A device", FACTS, tmp_path)
    assert again["disagreements"][0]["explanation"] == "it makes its events in Python"
    assert "it makes its events in Python" in page_of(again, "device.json")


def test_every_goal_is_on_the_page_and_in_the_table_with_its_outcome(tmp_path: Path) -> None:
    made_up(tmp_path)
    document = merge_into(tmp_path / "device.json", "A device", FACTS, tmp_path)
    page, table = page_of(document, "device.json"), short_table(document)
    assert "| 3 | host cost | &lt;= 0.25 | 0.2 | yes |" in page
    assert "NO (&lt;b>because&lt;/b>)" in page
    assert "unknown: it was not there" in page
    for words in ("host cost", "NO (<b>because</b>)", "unknown: it was not there", "A race: not run"):
        assert words in table


@pytest.mark.parametrize("file", sorted(PAGES.glob("*.json")), ids=lambda file: str(file.stem))
def test_the_page_of_a_device_is_made_from_the_file_beside_it(file: Path) -> None:
    document = read(file)
    assert document is not None
    assert file.with_suffix(".md").read_text() == page_of(document, file.name)


def test_timers_are_side_by_side_and_what_decides_nothing_stays_in_the_file(tmp_path: Path) -> None:
    made_up(tmp_path)
    document = merge_into(tmp_path / "device.json", "A device", FACTS, tmp_path)
    document["parts"][2]["tables"]["readings"] = [{"case": "a reading", "ns": 1.0}]
    page = page_of(document, "device.json")
    assert "| case | torch.cuda.Event | triton do\\_bench |" in page
    assert "| empty \\| kernel | 1100 | 1010 |" in page
    assert "a reading" not in page


def test_steps_that_had_no_time_are_in_one_sentence_and_others_have_their_reason(tmp_path: Path) -> None:
    made_up(tmp_path)
    document = merge_into(tmp_path / "device.json", "A device", FACTS, tmp_path)
    document["parts"][2]["left_out"] = [
        {"step": "one", "reason": "no time left", "for_want_of_time": True},
        {"step": "two", "reason": "no time left", "for_want_of_time": True},
        {"step": "three", "reason": "not here: jax", "for_want_of_time": False},
    ]
    assert " three: not here: jax. No time was left for: one; two." in page_of(document, "device.json")


def test_errors_of_all_lengths_and_large_figures_are_summed_up() -> None:
    rows = [
        {"method": "m", "floor_ns": 5.0, "error_over_floor_ns": error, "host_ns_per_sample": 9.0}
        | {"samples": 10, "invalid": invalid}
        for error, invalid in ((1.0, 0), (-3.0, 2))
    ]
    products = [{"number_type": "fp32", "size": size, "operations_per_s": size * 1e9} for size in (4096, 8192)]
    shown = selected({"truth": rows, "products": products, "unknown": rows})
    [errors], [product] = shown.values()
    assert (errors["largest_error_over_floor_ns"], errors["invalid"]) == (-3.0, "2 of 20")
    assert product == {"number_type": "fp32", "size": 8192, "by": "PyTorch", "value": "8.192 Top/s"}
