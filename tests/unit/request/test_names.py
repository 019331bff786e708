"""Contestants are named by requirement and variant; a version is one argument of pip, or is refused."""

from __future__ import annotations

import re

import pytest
from fairlap.errors import InvalidRequest
from fairlap.launch.runners import require_known
from fairlap.request.names import ContestantName, Contestants, contestant_named


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("torch", ContestantName("torch", "torch")),
        ("torch:compile", ContestantName("torch:compile", "torch", variant="compile")),
        ("torch==2.13.0", ContestantName("torch==2.13.0", "torch", "==2.13.0")),
        ("torch>=2.12:compile", ContestantName("torch>=2.12:compile", "torch", ">=2.12", "compile")),
        ("torch == 2.12.*", ContestantName("torch == 2.12.*", "torch", "==2.12.*")),
        (
            "torch:compile:mode=max-autotune",
            ContestantName(
                "torch:compile:mode=max-autotune", "torch", variant="compile", options=(("mode", "max-autotune"),)
            ),
        ),
        ("./worker:fast", ContestantName("./worker:fast", "", variant="fast", program="./worker")),
        ("/opt/worker", ContestantName("/opt/worker", "", program="/opt/worker")),
    ],
)
def test_a_name_says_framework_version_variant_and_options(text: str, expected: ContestantName) -> None:
    assert contestant_named(text) == expected


@pytest.mark.parametrize(
    "text", ["", ":compile", "torch:", "torch:a:b", "torch==", "=torch", "torch:=x", "torch:mode=", "to rch", "1torch"]
)
def test_what_is_not_a_name_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(InvalidRequest, match=r"torch|OPTION"):
        contestant_named(text)


def test_a_name_that_no_file_could_hold_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="not valid UTF-8"):
        contestant_named("./worker\udcff")


def test_a_list_keeps_its_order_and_each_stands_in_it_once() -> None:
    assert [name.text for name in Contestants(" jax , torch:compile,torch")] == ["jax", "torch:compile", "torch"]
    with pytest.raises(InvalidRequest, match="torch is given twice"):
        Contestants("torch,jax,torch")
    with pytest.raises(InvalidRequest, match="no contestant given"):
        Contestants(" , ")


HOSTILE = [
    "torch==1 --index-url http://evil.example",
    "torch==1\n--index-url=http://evil.example",
    "torch==1\t-r /etc/passwd",
    "torch @ file:///tmp/evil",
    "torch@file:///tmp/evil",
    "-r /etc/passwd",
    "--index-url=http://evil.example",
    "-e .",
    "torch==1;os.system('x')",
    "torch==../../evil",
    "torch==1,--pre",
    "git+https://evil.example/x",
    "torch==1 torch==2",
    "torch[extra]==1",
    "torch==$(touch x)",
    "torch==`touch x`",
    "torch==1\0x",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_a_version_is_one_argument_of_pip_or_refused(text: str) -> None:
    try:
        name = contestant_named(text)
    except InvalidRequest as refused:
        assert refused.code == "E_CONTESTANT"  # noqa: PT017
        return
    if name.program or not name.version:
        assert not name.version
        return
    requirement = f"{name.framework}{name.version}"
    assert re.match(r"[A-Za-z]", requirement)
    assert not re.search(r"\s|@|://", requirement)


@pytest.mark.parametrize("listed", ["torch,,jax", "torch,", ",torch", "torch, ,jax", ["torch", "", "jax"]])
def test_a_contestant_without_a_name_is_refused(listed: str | list[str]) -> None:
    with pytest.raises(InvalidRequest) as refused:
        Contestants(listed)
    assert refused.value.code == "E_CONTESTANT"


def test_a_mode_of_torch_compile_is_known_before_a_worker_starts() -> None:
    contestants = Contestants("torch:compile:mode=max")
    with pytest.raises(InvalidRequest, match="max-autotune"):
        require_known(contestants)
    assert require_known(Contestants("torch:compile:mode=max-autotune"))
