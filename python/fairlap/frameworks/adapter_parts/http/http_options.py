"""How a server is called: ``tensors=json``, ``timeout=5s``, and by gRPC ``model=NAME``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fairlap.errors import InvalidRequest
from fairlap.request.units import Seconds

TENSORS, TIMEOUT, MODEL = "tensors", "timeout", "model"
BINARY, JSON = "binary", "json"
_TIMEOUT_S = 60.0


@dataclass(frozen=True)
class HttpOptions:
    tensors: str = ""  # binary or json; empty for binary where the server offers it
    timeout_s: float = _TIMEOUT_S  # of a call
    model: str = ""  # by gRPC; by HTTP it is part of the address


def http_options_in(options: Mapping[str, str]) -> HttpOptions:
    """Raise InvalidRequest for an invalid value. Other options are ignored."""
    tensors = options.get(TENSORS, "")
    if tensors not in ("", BINARY, JSON):
        raise InvalidRequest(f"{TENSORS} must be {BINARY} or {JSON} (got {tensors})")
    return HttpOptions(tensors, float(Seconds(options.get(TIMEOUT, str(_TIMEOUT_S)))), options.get(MODEL, ""))


def without_http_options(options: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in options.items() if name not in (TENSORS, TIMEOUT)}
