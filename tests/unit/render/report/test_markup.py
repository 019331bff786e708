import json

import pytest
from fairlap.render.report.markup import Markup, as_json, breaking, json_island, tag, trusted


def test_a_text_is_escaped_and_an_element_is_not() -> None:
    inner = tag("b", "x < y")
    assert tag("p", inner, "<i>") == "<p><b>x &lt; y</b>&lt;i&gt;</p>"


def test_an_attribute_cannot_be_left() -> None:
    assert tag("a", title='" onclick="alert(1)') == '<a title="&quot; onclick=&quot;alert(1)"></a>'


def test_attributes_that_are_none_or_false_are_not_written() -> None:
    assert tag("input", hidden=True, checked=False, value=None, class_="a") == '<input hidden class="a">'


def test_an_element_made_of_strings_joined_by_hand_is_text_again() -> None:
    joined_by_hand = tag("b", "x") + "<script>"
    assert not isinstance(joined_by_hand, Markup)
    assert "<script>" not in tag("p", joined_by_hand)


@pytest.mark.parametrize("text", ["</script>", "<!--", "<script>", "\u2028", "a & b"])
def test_data_cannot_end_its_element_and_comes_back_as_it_was(text: str) -> None:
    island = json_island("shown", {"name": text})
    inside = island.removeprefix('<script type="application/json" id="shown">').removesuffix("</script>")
    assert not any(sign in inside for sign in "<>&\u2028")
    assert json.loads(inside) == {"name": text}


def test_what_is_no_number_is_not_written_as_one() -> None:
    with pytest.raises(ValueError, match="JSON"):
        as_json(float("nan"))


def test_half_a_character_does_not_stop_the_page() -> None:
    assert tag("p", "a\udcffb") == "<p>a?b</p>"


def test_a_style_sheet_that_ends_its_element_is_refused() -> None:
    with pytest.raises(ValueError, match="element"):
        trusted("body {} </STYLE><script>")


def test_a_name_may_be_broken_after_its_parts_and_is_escaped() -> None:
    assert breaking("torch:feed=<b>, jax:a") == "torch:<wbr>feed=<wbr>&lt;b&gt;, jax:<wbr>a"
