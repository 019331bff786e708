"""Wrong arguments of the public functions are refused in fairlap's words, whatever they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import fairlap
import pytest
from wrong_arguments import RUBBISH, Accepted, Called

FAST = {"blocks": 2, "seconds": 0.002}
CALLS = [
    Called(
        "measure",
        (int,),
        {"samples": 2, "warmup": 0},
        "args kwargs done stream seconds target calls_per_sample pause_gc name clock",
    ),
    Called(
        "compare",
        ({"a": int, "b": float},),
        FAST,
        "done stream baseline budget only_winner target seed margin alpha reference inputs any_answers alone regime "
        "wait args name",
    ),
    Called(
        "compare",
        ("mlp",),
        {"on": "torch"},
        "batch mode precision threads seconds blocks budget target baseline require use price output shapes dims "
        "ranges inputs labels groups metric seed memory_limit_bytes wait commands conditions device pass_env "
        "keep_weights trust nonsense",
    ),
    Called(
        "compare_over",
        ({"a": len, "b": len},),
        {"inputs": lambda rng, n: ([0] * n,), "axes": {"n": [1, 2]}, **FAST},
        "output reference any_answers bytes_per_call flops_per_call done baseline budget target seed margin alpha wait "
        "report args",
    ),
    Called(
        "choose",
        (["a.onnx", "b.onnx"],),
        {"on": "torch", "inputs": "x.npy", "labels": "y.npy", "metric": "top1"},
        "minimise score_margin max_drop output batch",
    ),
    Called("load", ("mlp",), {"on": "torch", "p99": "20ms"}, "p50 workers largest_batch blocks scenario"),
    Called(
        "judge",
        ("base", "change"),
        {"call": "os:getpid"},
        "command suite gain build tests only ledger budget blocks threads seconds quantity reported inputs reference "
        "wait",
    ),
    Called(
        "bisect",
        ("v1", "v2"),
        {"call": "os:getpid"},
        "model on command releases sure repository prepare races budget quantity blocks inputs reference wait batch",
    ),
    Called("runs", (), {}, "model on since tag limit"),
    Called("floor", (), {}, "clock"),
    Called("c_function", ("libm.so.6:sin",), {}, "arguments"),
    Called("load_ipython_extension", (None,), {}),
    Called("NativeFunction", (1,), {}, "context name owner notices"),
    Called("Rotate", ([(1,), (2,)],), {}),
]
NOT_CALLED = {"Bisection", "CallableRaised", "Choice", "ComparisonOverAxes", "DeviceFailed", "FairlapError",
              "InProcessComparison", "InvalidRequest", "Judgement", "Measurement", "MeasurementInProgress",
              "NotAvailable", "__version__"}  # fmt: skip
"""What users get and do not make."""


def test_every_public_name_is_called_or_is_not_for_users_to_make() -> None:
    assert {each.function for each in CALLS} == set(fairlap.__all__) - NOT_CALLED


def _refuse_to_race(*arguments: Any, **options: Any) -> None:
    raise Accepted


@pytest.fixture
def no_race(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Arguments are checked, and no contestant starts."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FAIRLAP_STORE", str(tmp_path / "runs.sqlite"))
    for name in ("base", "change"):
        (tmp_path / name).mkdir()
    for place in (
        "fairlap.comparing._raced_alone",
        "fairlap.choice.choose.Race",
        "fairlap.judgement.judge.one_race",
        "fairlap.bisection.searching.commits_between",
    ):
        monkeypatch.setattr(place, _refuse_to_race)


@pytest.mark.usefixtures("no_race")
@pytest.mark.parametrize("called", CALLS, ids=lambda each: each.function)
def test_wrong_arguments_are_refused_in_plain_words(called: Called) -> None:
    wrong = {
        f"{place} = {name}": found
        for place in called.places
        for name, value in RUBBISH.items()
        if (found := called.with_rubbish(place, value))
    }
    assert wrong == {}
