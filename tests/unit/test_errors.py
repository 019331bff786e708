"""What libraries say is shortened to what went wrong."""

from __future__ import annotations

from fairlap.errors import cause_of

OPENVINO = """Check 'false' failed at src/frontends/tensorflow/src/frontend.cpp:151:
FrontEnd API failed with OpConversionFailure:
Model wasn't fully converted. Summary:
-- No conversion rule found for operations: TensorList
To facilitate the conversion of unsupported operations, refer to the documentation"""


def test_the_places_in_a_librarys_source_are_left_out_and_what_failed_is_kept() -> None:
    found = cause_of(RuntimeError(OPENVINO))
    assert "TensorList" in found
    assert "frontend.cpp" not in found
    assert "documentation" not in found
    assert "\n" not in found


def test_the_first_of_several_errors_is_the_cause() -> None:
    last = RuntimeError("Failed to export the model. This is step 1/3")
    last.__cause__ = ValueError("Cannot view a tensor\n\nOriginal traceback:\n File x, line 83")
    assert cause_of(last) == "ValueError: Cannot view a tensor"


def test_an_error_without_a_text_is_its_type() -> None:
    assert cause_of(KeyError()) == "KeyError"
