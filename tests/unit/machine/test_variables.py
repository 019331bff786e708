"""Which environment variables are recorded with a run, and how much of their values."""

from __future__ import annotations

import msgspec
import pytest
from fairlap.machine.variables import NOT_KEPT, kept, variable_facts


def test_only_variables_that_affect_speed_are_recorded() -> None:
    given = {"OMP_NUM_THREADS": "2", "HOME": "/home/me", "AWS_SECRET_ACCESS_KEY": "x", "TF_VAR_password": "x"}
    assert variable_facts(given) == {"variable OMP_NUM_THREADS": "2"}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("NVIDIA_API_KEY", "nvapi-123"),
        ("ORT_ACCESS_TOKEN", "abc"),
        ("JAX_DB_PASSWORD", "abc"),
        ("MKL_LICENSE_FILE", "27000@host"),
        ("XLA_FLAGS", "--cache_token=abc"),
        ("TORCH_HUB_CREDENTIALS", "abc"),
        ("LD_PRELOAD", "x.so password: abc"),
    ],
)
def test_a_value_that_looks_like_a_secret_is_not_recorded(name: str, value: str) -> None:
    assert variable_facts({name: value}) == {f"variable {name}": NOT_KEPT}


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        ("https://me:pw@host/path", "https://host/path"),
        ("https://me:p/w@host/path", "https://host/path"),
        ("https://me:p#?w@host/path", "https://host/path"),
        ("s3://bucket/cache?sig=abc&x=1", "s3://bucket/cache"),
        ("--a=1,https://t@host/x#frag --b", "--a=1,https://host/x --b"),
        ("", "set, but empty"),
    ],
)
def test_addresses_lose_their_login_and_their_query(value: str, stored: str) -> None:
    assert kept("JAX_COMPILATION_CACHE_DIR", value) == stored


def test_bytes_that_are_not_valid_utf8_can_be_stored() -> None:
    facts = variable_facts({"OMP_\udcff": "1", "XLA_FLAGS": "a\udcfe", "LD_PRELOAD": ""})
    assert msgspec.json.decode(msgspec.json.encode(facts)) == facts
    assert facts["variable XLA_FLAGS"] == "a?"


def test_a_long_value_is_cut_with_its_length() -> None:
    value = kept("XLA_FLAGS", "a" * 5000)
    assert len(value) < 600
    assert "5000" in value
