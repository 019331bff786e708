"""A choice as text, records and a chart: all candidates, and the front by the form of the points."""

from __future__ import annotations

from fairlap.render.choice.chart import SHAPES, chart_points
from fairlap.render.choice.document import document_of
from fairlap.render.choice.shared_words import how_to_read
from fairlap.render.encoders import encoded
from fairlap.render.encoders.text import text_of
from planted_choice import NAMES, chosen


def test_the_text_has_every_candidate_and_pair_and_what_dominates() -> None:
    found = chosen(noise=0.002)
    text = text_of(document_of(found))
    assert all(f"{name} in torch" in text for name in NAMES)
    assert found.message in text
    [dominated] = [each for each in found.candidates if each.dominated_by]
    assert f"{dominated.name} is dominated by {', '.join(dominated.dominated_by)}" in text
    assert len(encoded(document_of(found), "csv").decode().splitlines()) == 1 + len(NAMES)


def test_what_is_minimised_and_absent_is_explained() -> None:
    found = chosen(minimise="energy")
    assert (found.reason, len(found.recommended)) == ("not_separated", len(NAMES))
    assert found.candidates[0].absent["energy_per_item_j"] in text_of(document_of(found))


def test_points_on_the_front_and_dominated_ones_have_different_forms() -> None:
    points = {point["label"]: point for point in chart_points(chosen(noise=0.002))}
    assert set(points) == set(NAMES)
    assert SHAPES[points["small"]["front"]] != SHAPES[points["heavy"]["front"]]
    assert len(set(SHAPES.values())) == len(SHAPES)
    assert points["large"]["score"] > points["small"]["score"]
    assert points["large"]["time_low"] <= points["large"]["time"] <= points["large"]["time_high"]


def test_names_have_the_contestant_where_there_are_several() -> None:
    labels = {point["label"] for point in chart_points(chosen(contestants="torch,jax"))}
    assert labels == {f"{name} in {contestant}" for name in NAMES for contestant in ("torch", "jax")}


def test_marks_grow_with_files_where_all_have_sizes() -> None:
    sizes = {"small": 300, "large": 200_000, "copy": 400, "heavy": 500}
    with_sizes, without = chosen(file_bytes=sizes), chosen(file_bytes={"small": 300})
    assert {point["bytes"] for point in chart_points(with_sizes)} == set(sizes.values())
    assert ("Larger marks" in how_to_read(with_sizes), "Larger marks" in how_to_read(without)) == (True, False)
    assert "195 KiB" in text_of(document_of(with_sizes))
