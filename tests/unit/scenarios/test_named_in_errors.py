"""What an error names is read by fixed rules: from texts in the forms that frameworks and runtimes print."""

from __future__ import annotations

from typing import Any

import pytest
from fairlap.scenarios.mistakes.naming import names_any, names_line, names_sizes, sides_named
from hypothesis import given
from hypothesis import strategies as st

PRODUCT = ((4, 17), (13, 6))
CLASH = (17, 13)

# The message, how many of both shapes it names, whether it names the sizes that do not fit, and a product.
OF_PRODUCTS = [
    ("mat1 and mat2 shapes cannot be multiplied (4x17 and 13x6)", 2, True, True),
    ("Matrix size-incompatible: In[0]: [4,17], In[1]: [13,6] [Op:MatMul]", 2, True, True),
    ("dot_general requires contracting dimensions to have the same shape, got (17,) and (13,).", 0, True, True),
    ("matmul: Input operand 1 has a mismatch (size 13 is different from 17)", 0, True, True),
    ("Node (product) Op (MatMul) [ShapeInferenceError] Incompatible dimensions", 0, False, True),
    ("call_function aten.addmm(FakeTensor(size=(4, 17)), FakeTensor(size=(13, 6)))", 2, True, True),
    ("got f32[4,17]{1,0} and f32[13,6]", 2, True, False),
    ("shapes torch.Size([4, 17]) and [13, 7]", 1, True, False),
    ("shapes (2, 4, 17) and (13, 6, 1)", 0, True, False),
    ("shapes 14x17 and 13x66", 0, True, False),
    ("shapes (41, 7) and (1, 36)", 0, False, False),
    ("1.17 and 13.5 are no sizes", 0, False, False),
    ("raised at line 17 of model.py:13, 0x17 0x13", 0, False, False),
    ('File "model.py", line 17, in f\n  File "other.py", line 13', 0, False, False),
]


@pytest.mark.parametrize(("message", "sides", "sizes", "operator"), OF_PRODUCTS)
def test_shapes_sizes_and_operators_are_found_in_what_frameworks_print(
    message: str, sides: int, sizes: bool, operator: bool
) -> None:
    assert sides_named(message, PRODUCT) == sides
    assert names_sizes(message, CLASH) == sizes
    assert names_any(message, ("matmul", "addmm", "dot_general", "multiplied")) == operator


@pytest.mark.parametrize(
    ("message", "sides", "found"),
    [
        ("shapes (17,13) (19,)", ((17, 13), (19,)), 2),
        ("shapes [17,13] vs. [19]", ((17, 13), (19,)), 2),
        ("The size of tensor a (13) must match that of tensor b (19)", ((17, 13), (19,)), 0),  # a size, and no shape
        ("Target 71 is out of bounds.", ("71", "37|36"), 1),
        ("index 71 is out of bounds for axis 0 with size 37", ("71", "37|36"), 2),
        ("index out of bounds: 0 <= tmp2 < 37L", ("71", "37|36"), 1),
        ("a label of 710 or 3.71 or -371", ("71",), 0),
        ("got torch.FloatTensor instead of Long", ("float|float32", "int|long"), 2),
        ("expected float != double", ("float|float32", "double|float64"), 2),
        ("a pointer and a printout", ("int",), 0),
        ("POINTS of an integer and Integers", ("int", "point", "integer|interval"), 1),
        ("UINT8 is no type of BatchIntervals", ("int", "interval"), 0),
        ("cannot reshape array of size 221 into shape (19,11)", ([(17, 13), "221"], [(19, 11), "209"]), 2),
        ("", (), 0),
    ],
)
def test_sides_are_shapes_or_words_of_which_any_will_do(message: str, sides: Any, found: int) -> None:
    assert sides_named(message, sides) == found


@pytest.mark.parametrize(
    ("printed", "found"),
    [
        ('  File "/home/me/model.py", line 12, in forward\n    return x @ w', True),
        ("defined at (most recent call last): /home/me/model.py:12:4 (forward)", True),
        ('  File "/home/me/model.py", line 120, in forward', False),
        ('  File "/home/me/own_model.py", line 12, in forward', True),  # no name of a planted file ends another
        ('  File "/site-packages/linear.py", line 12, in forward', False),
        ("x @ w", False),
    ],
)
def test_the_line_is_found_in_tracebacks_and_as_file_and_line(printed: str, found: bool) -> None:
    assert names_line(printed, "/home/me/model.py", (12, 40)) == found


shapes = st.lists(st.integers(1, 4096), min_size=2, max_size=4)
FORMS = ("({})", "[{}]", "{{{}}}", "torch.Size([{}])", "f32[{}]")


@given(shapes, st.sampled_from(FORMS), st.sampled_from((",", ", ")), st.text(alphabet="abc :.", max_size=9))
def test_a_shape_is_found_however_it_is_written_and_not_within_a_longer_one(
    shape: list[int], form: str, comma: str, before: str
) -> None:
    written = form.format(comma.join(map(str, shape)))
    assert sides_named(f"{before} {written} {before}", (tuple(shape),)) == 1
    longer = form.format(comma.join(map(str, [*shape, 9999])))
    assert sides_named(f"{before} {longer}", (tuple(shape),)) == 0
    assert names_sizes(longer, shape)
