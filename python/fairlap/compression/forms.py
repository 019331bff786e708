"""The forms by their names, and what is known of each file that was written."""

from __future__ import annotations

import re

import msgspec

from fairlap.errors import InvalidRequest
from fairlap.printed_document import PrintedDocument
from fairlap.suggestions import did_you_mean

CODE = "E_COMPRESSION"
NAMED = {
    "int8-dynamic": "weights in int8, of seven bits; activations are quantized in every call",
    "int8-static": "weights in int8, of seven bits, and activations in uint8, by ranges of the inputs given",
    "fp8": "weights in fp8 (E4M3), by channel, and activations in fp8, by ranges of the inputs given",
    "int4": "weights of matrix products in int4, in blocks of 32; products are in float",
    "sparse-2:4": "of each four weights that are added up, the two smallest are 0",
}
RANGED = ("int8-static", "fp8")
"""Forms that take ranges from inputs."""

SPARSE = "sparse-90%"  # an example of any share
_SPARSE = re.compile(r"sparse-(?P<percent>\d{1,2}(\.\d+)?)%")
_OF_FOUR = "sparse-2:4"


class Form(msgspec.Struct, frozen=True):
    name: str
    zeros: float | None = None  # the share of zeros, of a form with any

    @property
    def file_suffix(self) -> str:
        return self.name.replace(":", "of").replace("%", "")


class WrittenForm(msgspec.Struct, frozen=True):
    form: str
    file: str
    sha256: str
    bytes: int
    changed: int  # weights of products that have the form, or products that read such ones
    unchanged: int  # others, as of layers whose sizes do not fit
    zero_weights: float  # the share of zeros among all weights in float


class Compression(PrintedDocument, frozen=True, kw_only=True, tag="fairlap.compression/1"):
    source: str
    source_bytes: int
    forms: list[WrittenForm]


def forms_in(text: str) -> list[Form]:
    """Read ``int4,sparse-50%``."""
    names = [name.strip() for name in text.split(",")]
    if twice := next((name for name in names if names.count(name) > 1), ""):
        raise InvalidRequest(f"{twice} is given twice", code=CODE)
    return [_form(name) for name in names]


def _form(name: str) -> Form:
    if name == _OF_FOUR:
        return Form(name, 0.5)
    if name in NAMED:
        return Form(name)
    if (found := _SPARSE.fullmatch(name)) and float(found["percent"]) > 0:
        return Form(name, float(found["percent"]) / 100)
    if name.startswith("sparse-") and name.endswith("%"):
        raise InvalidRequest(f"{name}: a share of zeros is above 0% and below 100%, such as {SPARSE}", code=CODE)
    meant = did_you_mean(name, (*NAMED, SPARSE)) or f"they are {', '.join(NAMED)}, and {SPARSE} for any share"
    raise InvalidRequest(f"no form named {name!r}; {meant}", code=CODE)
