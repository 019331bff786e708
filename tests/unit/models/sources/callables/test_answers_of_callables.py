"""Right callables of every kind pass, and wrong ones do not, whatever their arguments and answers are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from callables_opened import OpenedCallables, answer_of, source_of_callables
from fairlap.models.array_files import safetensors
from fairlap.worker.slowdown import slowed
from onnx_files import code_of

ROWS = """
def draw(rng, n=200):
    return rng.standard_normal((n, 6), np.float32), rng.standard_normal(6).astype(np.float32)
def ref(x, w): return np.tanh(x @ w)
def by_loop(x, w):
    found = np.empty(len(x), np.float32)
    for row, each in enumerate(x):
        found[row] = np.tanh(sum(a * b for a, b in zip(each, w)))
    return found
def as_list(x, w): return [float(each) for each in np.tanh(x @ w)]
def in_float64(x, w): return np.tanh(x.astype(np.float64) @ w)
def off_by_one_at_the_edge(x, w):
    found = ref(x, w)
    found[-1] = found[-2]
    return found
def transposed(x, w): return ref(x, w)[None, :]
def in_half(x, w): return np.tanh(x.astype(np.float16) @ w.astype(np.float16)).astype(np.float32)
def constant(x, w): return np.zeros(len(x), np.float32)
kept = []
def stale(x, w):
    kept.append(ref(x, w))
    return kept[max(0, len(kept) - 2)]
def of_the_first(x, w):
    kept.append(ref(x, w))
    return kept[0]
def with_a_nan(x, w):
    found = ref(x, w)
    found[0] = np.nan
    return found
def ignoring(x, w): return np.tanh(x @ np.ones_like(w))
def nothing(x, w): return None
def writing(x, w):
    x *= 2
    return np.tanh(x @ w / 2)
"""


@pytest.mark.parametrize("name", ["ref", "by_loop", "as_list", "in_float64"])
def test_right_callables_answer_right(name: str, tmp_path: Path) -> None:
    assert OpenedCallables(tmp_path, ROWS).wrong_on(name) == [""] * 5


@pytest.mark.slow_but("in_half", "stale", "with_a_nan", "nothing")
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("off_by_one_at_the_edge", ["E_OUTPUT"] * 5),
        ("transposed", ["E_OUTPUT"] * 5),
        ("in_half", ["E_OUTPUT"] * 5),
        ("constant", ["E_OUTPUT"] * 5),
        ("stale", ["", *["E_STALE_ANSWER"] * 4]),
        ("of_the_first", ["", *["E_STALE_ANSWER"] * 4]),
        ("with_a_nan", ["E_OUTPUT"] * 5),
        ("ignoring", ["E_OUTPUT"] * 5),
        ("nothing", ["E_OUTPUT"] * 5),
        ("writing", ["E_ARGUMENT_CHANGED"] * 5),
    ],
)
def test_wrong_callables_do_not(name: str, expected: list[str], tmp_path: Path) -> None:
    assert OpenedCallables(tmp_path, ROWS).wrong_on(name) == expected


def test_the_reference_is_evaluated_in_float64(tmp_path: Path) -> None:
    materials = OpenedCallables(tmp_path, ROWS).materials
    inputs = materials.workload("inputs").inputs
    expected = np.tanh(inputs["x"].astype(np.float64) @ inputs["w"].astype(np.float64))
    np.testing.assert_allclose(materials.reference("inputs")["answer"], expected, rtol=1e-14)


def test_sizes_are_dimensions(tmp_path: Path) -> None:
    opened = OpenedCallables(tmp_path, ROWS, dims="n=7")
    assert opened.materials.workload("inputs").inputs["x"].shape == (7, 6)
    assert code_of(source_of_callables(tmp_path, ROWS, dims="m=7"), tmp_path) == "E_MODEL_DIMENSIONS"


def test_a_float64_callable_that_computes_in_float32_is_wrong(tmp_path: Path) -> None:
    code = """
    def draw(rng): return rng.standard_normal(1000)
    def ref(x): return np.cumsum(x)
    def by_loop(x):
        found = np.empty_like(x)
        total = 0.0
        for place, each in enumerate(x):
            total += each
            found[place] = total
        return found
    def in_float32(x): return np.cumsum(x.astype(np.float32)).astype(np.float64)
    """
    opened = OpenedCallables(tmp_path, code)
    assert opened.wrong_on("by_loop") == [""] * 5
    assert opened.wrong_on("in_float32") == ["E_OUTPUT"] * 5


def test_a_long_sum_may_be_added_up_in_any_order(tmp_path: Path) -> None:
    code = """
    def draw(rng): return rng.random(200_000, np.float32)
    def ref(x): return x.sum()
    def one_after_the_other(x): return np.cumsum(x)[-1]  # which NumPy rounds after each
    def without_a_thousandth(x): return x[200:].sum()
    """
    opened = OpenedCallables(tmp_path, code)
    assert opened.wrong_on("one_after_the_other") == [""] * 5
    assert "" not in opened.wrong_on("without_a_thousandth")


def test_float16_callables_are_compared_by_its_rounding(tmp_path: Path) -> None:
    code = """
    def draw(rng): return rng.standard_normal((64, 32)).astype(np.float16)
    def ref(x):
        e = np.exp(x - x.max(axis=1, keepdims=True))
        return e / e.sum(axis=1, keepdims=True)
    def in_float32(x): return ref(x.astype(np.float32)).astype(np.float16)
    def unnormalised(x): return np.exp(x - x.max(axis=1, keepdims=True))
    """
    opened = OpenedCallables(tmp_path, code)
    assert opened.wrong_on("ref") == opened.wrong_on("in_float32") == [""] * 5
    assert opened.wrong_on("unnormalised") == ["E_OUTPUT"] * 5


def test_whole_numbers_and_truth_values_are_exact(tmp_path: Path) -> None:
    code = """
    def draw(rng): return {"x": rng.integers(-(2**62), 2**62, 50), "limit": 3}
    def ref(x, limit):
        return {"next": x + 1, "odd": x % 2 == 1, "count": int((x > limit).sum()), "ends": (x.max(), x.min())}
    def one_more(x, limit): return ref(x, limit) | {"next": x + 2}
    def inverted(x, limit): return ref(x, limit) | {"odd": x % 2 == 0}
    def lacking(x, limit): return {key: each for key, each in ref(x, limit).items() if key != "ends"}
    """
    opened = OpenedCallables(tmp_path, code)
    assert set(opened.answer("ref")) == {
        "answer.next",
        "answer.odd",
        "answer.count",
        "answer.ends[0]",
        "answer.ends[1]",
    }
    assert opened.wrong_on("ref") == [""] * 5
    for wrong in ("one_more", "inverted", "lacking"):
        assert opened.wrong_on(wrong) == ["E_OUTPUT"] * 5, wrong


def test_complex_numbers_lists_and_texts_are_arguments(tmp_path: Path) -> None:
    code = """
    def draw(rng):
        signal = (rng.standard_normal(64) + 1j * rng.standard_normal(64)).astype(np.complex64)
        weights = [float(each) for each in rng.random(64)]
        return {"signal": signal, "weights": weights, "how": "ortho", "also": {"by": 2}}
    def ref(signal, weights, how, also):
        assert type(weights) is list and type(weights[0]) is float
        return np.fft.fft(signal * np.asarray(weights), norm=how) * also["by"]
    def conjugated(signal, weights, how, also): return ref(signal, weights, how, also).conj()
    """
    opened = OpenedCallables(tmp_path, code)
    assert opened.wrong_on("ref") == [""] * 5
    assert opened.wrong_on("conjugated") == ["E_OUTPUT"] * 5


def test_arguments_keep_their_layout_in_memory_and_their_alignment(tmp_path: Path) -> None:
    code = """
    def draw(rng):
        whole = rng.standard_normal((6, 8), np.float32)
        return whole.T, np.asfortranarray(whole), whole[::-1, ::2], np.broadcast_to(whole[0], (3, 8)), np.float32(2)
    seen = []
    def ref(t, f, s, b, scale):
        seen.append(([each.strides for each in (t, f, s, b)], t.ctypes.data % 64, type(scale)))
        return t.sum() + f.sum() + s.sum() + b.sum() * scale
    def newest(): return seen[-1]
    """
    opened = OpenedCallables(tmp_path, code)
    opened.answer("ref")
    strides, offset, kind = opened.function(f"{opened.source.inputs.partition(':')[0]}:newest")()
    assert strides == [(4, 32), (4, 24), (-32, 8), (0, 4)]
    assert offset == 0
    assert kind is np.float32


def test_arguments_that_the_reference_writes_to_are_answers(tmp_path: Path) -> None:
    code = """
    def draw(rng): return rng.standard_normal(40), np.empty(40)
    def ref(x, out): np.multiply(x, 3, out=out)
    def lazy(x, out): pass
    def half(x, out): np.multiply(x[:20], 3, out=out[:20])
    def overwriting(x, out):
        np.multiply(x, 3, out=out)
        x[0] = 0
    """
    opened = OpenedCallables(tmp_path, code)
    assert set(opened.answer("ref")) == {"argument out"}
    assert opened.wrong_on("ref") == [""] * 5
    assert opened.wrong_on("lazy") == opened.wrong_on("half") == ["E_OUTPUT"] * 5
    assert opened.wrong_on("overwriting") == ["E_ARGUMENT_CHANGED"] * 5
    assert opened.codes == []


@pytest.mark.parametrize("kind", ["np.asarray", "list"])
def test_what_calls_read_and_change_is_put_back_before_each(kind: str, tmp_path: Path) -> None:
    code = f"""
    def draw(rng): return {kind}(rng.random(50).tolist())
    def ref(x): x.sort()
    def checking(x):
        assert sorted(x) != list(x)
        x.sort()
    """
    opened = OpenedCallables(tmp_path, code)
    assert opened.codes == ["W_ARGUMENTS_RESTORED"]
    contestant = opened.contestant("checking")
    call = contestant.bind(opened.materials.workload("inputs").inputs)
    for _ in range(3):
        [answer] = answer_of(contestant, call).values()
        assert (np.diff(answer) > 0).all()


def test_a_reference_that_has_no_answer_in_float64_answers_in_its_own_type(tmp_path: Path) -> None:
    code = """
    def draw(rng): return rng.standard_normal(100, np.float32)
    def ref(x):
        if x.dtype != np.float32: raise TypeError("float32 only")
        return x * 2
    def reading_bits(x): return (x.view(np.float32)[:100]) * np.float32(2)
    def thrice(x): return x * 3
    """
    opened = OpenedCallables(tmp_path, code)
    assert opened.codes == ["W_REFERENCE_TYPE"]
    assert opened.wrong_on("ref") == [""] * 5
    assert opened.wrong_on("thrice") == ["E_OUTPUT"] * 5


def test_one_that_computes_nonsense_in_float64_answers_in_its_own_type(tmp_path: Path) -> None:
    code = """
    def draw(rng): return rng.standard_normal(100, np.float32)
    def ref(x): return x.view(np.float32)[:100] * np.float32(2)  # as a kernel of C does with a pointer
    """
    opened = OpenedCallables(tmp_path, code)
    assert opened.codes == ["W_REFERENCE_TYPE"]
    assert opened.wrong_on("ref") == [""] * 5


def test_what_a_check_cannot_see_is_reported(tmp_path: Path) -> None:
    code = """
    def draw(rng): return rng.standard_normal(100), rng.standard_normal(100)
    def ref(x, y): return x + 0 * y
    def weak(x, y): return x.size
    """
    assert OpenedCallables(tmp_path, code).codes == ["W_INPUT_UNNOTICED"]
    assert OpenedCallables(tmp_path, code, reference="weak").codes == ["W_WEAK_PROOF"]


@pytest.mark.slow_but(first=6)
@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("def draw(rng): return rng.random(3)\ndef ref(x): return x + np.random.random()", "E_SOURCE_RANDOM"),
        ("def draw(rng): return rng.random(3)\ncalls = []\ndef ref(x):\n calls.append(1)\n return x + len(calls)",
         "E_SOURCE_RANDOM"),
        ("def draw(rng): return np.random.random(3)\ndef ref(x): return x + 1", "E_SOURCE_RANDOM"),
        ("def draw(rng): return np.ones(3)\ndef ref(x): return x + 1", "E_SOURCE_INPUTS"),
        ("def draw(rng): return ()\ndef ref(): return 1", "E_SOURCE_INPUTS"),
        ("def draw(rng): return rng.random(rng.integers(1, 9))\ndef ref(x): return x + 1", "E_SOURCE_INPUTS"),
        ("def draw(rng): return object()\ndef ref(x): return 1", "E_SOURCE_INPUTS"),
        ("def draw(rng): return np.array(['a'])\ndef ref(x): return 1", "E_SOURCE_INPUTS"),
        ("def draw(rng): return rng.random(3)\ndef ref(x): return np.log(x - 1)", "E_SOURCE_INPUTS"),
        ("def draw(rng): return rng.random(3)\ndef ref(x, y): return x", "E_REFERENCE"),
        ("def draw(rng): return rng.random(3)\ndef ref(x): return None", "E_REFERENCE"),
        ("def draw(rng): return rng.random(3)\ndef ref(x): return 'text'", "E_REFERENCE"),
        ("def draw(rng): raise SystemExit(3)\ndef ref(x): return x", "E_REFERENCE"),
        ("def draw(): return 1\ndef ref(x): return x", "E_REFERENCE"),
        ("def draw(rng): return 1\nref = 3", "E_REFERENCE"),
        ("def draw(rng): return 1", "E_REFERENCE"),
    ],
)  # fmt: skip
def test_what_proves_nothing_is_refused_with_a_code(code: str, expected: str, tmp_path: Path) -> None:
    assert code_of(source_of_callables(tmp_path, code), tmp_path) == expected


def test_further_arguments_are_drawn_for_the_search_for_kept_answers(tmp_path: Path) -> None:
    materials = OpenedCallables(tmp_path, ROWS).materials
    first = [safetensors.read(file)["x"] for file in (*materials.further_files, materials.inputs_file("inputs"))]
    assert len(first) == 9
    assert len({each.tobytes() for each in first}) == 9


def test_other_arguments_take_the_place_of_bound_ones_and_leave_it_again(tmp_path: Path) -> None:
    code = """
    def draw(rng): return rng.random(9), [float(each) for each in rng.random(3)], float(rng.random())
    def ref(x, weights, by): return x * by + sum(weights)
    kept = {}
    def by_place(x, weights, by):
        return kept.setdefault(x.ctypes.data, x * by + sum(weights))
    """
    opened = OpenedCallables(tmp_path, code)
    inputs, other = (opened.materials.workload(which).inputs for which in ("inputs", "unseen-0"))
    for name, is_right in (("ref", True), ("by_place", False)):
        contestant = opened.contestant(name)
        assert contestant.rebind is not None
        assert contestant.inputs_read is not None
        first = contestant.bind(inputs)
        [before] = answer_of(contestant, first).values()
        [elsewhere] = answer_of(contestant, contestant.rebind(first, other)).values()
        assert np.allclose(elsewhere, opened.materials.reference("unseen-0")["answer"]) == is_right
        contestant.inputs_read()
        [after] = answer_of(contestant, first).values()
        np.testing.assert_array_equal(before, after)


def test_a_callable_that_is_slowed_down_on_purpose_answers_by_its_arguments_as_well(tmp_path: Path) -> None:
    code = """
    def draw(rng): return rng.random(9), np.zeros(9)
    def ref(x, out): np.multiply(x, 3, out=out)
    """
    opened = OpenedCallables(tmp_path, code)
    slow = slowed(opened.contestant("ref"), 0.5)
    [answer] = answer_of(slow, slow.bind(opened.materials.workload("inputs").inputs)).values()
    np.testing.assert_array_equal(answer, opened.materials.reference("inputs")["argument out"])
