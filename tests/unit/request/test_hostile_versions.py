"""The version of a contestant reaches pip as one argument that begins with its package, or is refused."""

from __future__ import annotations

import re

import pytest
from fairlap.errors import InvalidRequest
from fairlap.request.names import contestant_named

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
