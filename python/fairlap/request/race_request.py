"""A race as a user asks for it: on the command line or in a TOML file.

``python -m fairlap.request.race_request`` writes the JSON schema of such files.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec

from fairlap.errors import FairlapError
from fairlap.machine.atomic_files import write_output
from fairlap.request.work import Conditions, Mode, Precision

MOST_BLOCKS = 10_000  # of each kind of conditions and each work
_BLOCKS = 12
_BLOCKS_UNLESS_ENDED = 60  # when something else ends the race
_Each = TypeVar("_Each")
_Some = Annotated[list[_Each], msgspec.Meta(min_length=1)]
_AtLeast0 = Annotated[int, msgspec.Meta(ge=0)]
_AtLeast1 = Annotated[int, msgspec.Meta(ge=1)]


def _about(meaning: str, **limits: Any) -> msgspec.Meta:
    return msgspec.Meta(description=meaning, **limits)


class Outputs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Files that the race ends with. A relative path starts at the folder that fairlap is called in."""

    json: Annotated[str, _about("Everything, as JSON.")] = ""
    csv: Annotated[str, _about("The rows, as comma-separated values.")] = ""
    md: Annotated[str, _about("The rows, as Markdown for a pull request's comment.")] = ""
    html: Annotated[str, _about("A report, as one page that needs no network.")] = ""


class RaceRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A race as a person writes it down. Every combination of model, mode, precision and batch is raced."""

    models: Annotated[_Some[str], _about("Which models race; `fairlap list models`.")]
    contestants: Annotated[_Some[str], _about('Who races, such as "torch:compile" or "jax==0.4.30".')]
    batch: Annotated[int | _Some[int] | None, _about("Items in one call; the model's own unless given.")] = None
    mode: Annotated[Mode | _Some[Mode], _about("Inference, or the loss and its gradients.")] = "infer"
    precision: Annotated[Precision | _Some[Precision], _about("What everyone computes in.")] = "fp32"
    device: Annotated[str, msgspec.Meta(description="cpu, cuda or cuda:N.", pattern=r"^(cpu|cuda(:\d{1,2})?)$")] = "cpu"
    data: Annotated[
        str | None, _about('What the calls are fed: "synthetic", or a .npy file or folder; nothing unless given.')
    ] = None
    threads: Annotated[_AtLeast1 | None, _about("For every contestant; all cores unless given.")] = None
    blocks: Annotated[
        Annotated[int, msgspec.Meta(ge=1, le=MOST_BLOCKS)] | None,
        _about("Fresh processes for every contestant; 12 unless given, 60 with a target or a budget."),
    ] = None
    target: Annotated[float | str | None, _about('End when every interval is as narrow: 0.01 or "1%".')] = None
    budget: Annotated[float | str | None, _about('End before this is over: seconds, or "10m".')] = None
    conditions: Annotated[Conditions, _about("Controlled, with as-found processes beside; or as found.")] = "controlled"
    seconds: Annotated[float, _about("Measured in each process.", gt=0)] = 0.5
    seed: Annotated[_AtLeast0 | None, _about("Draws orders and processes; drawn unless given.")] = None
    memory_limit_bytes: Annotated[_AtLeast1 | None, _about("Address space that a worker may take.")] = None
    min_memory: Annotated[
        bool, _about("Look for the smallest memory in which each contestant still runs, when the blocks have run.")
    ] = False
    baseline: Annotated[str, _about("Whom the others are held against in the rows; the fastest unless given.")] = ""
    price: Annotated[str, _about('What an hour costs, "1.212/h", or a name in the table of prices.')] = ""
    outputs: Annotated[Outputs, _about("Files that the race ends with.")] = Outputs()


FILE = Path("docs/reference/request.schema.json")


def schema_text() -> str:
    return msgspec.json.format(msgspec.json.encode(msgspec.json.schema(RaceRequest)), indent=2).decode() + "\n"


if __name__ == "__main__":
    try:
        write_output(FILE, schema_text().encode())
    except FairlapError as error:
        sys.exit(f"{error}; run it from the top of the repository")
