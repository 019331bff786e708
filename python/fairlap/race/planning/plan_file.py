"""A plan as a file: saved without secrets, and checked when it is read."""

from __future__ import annotations

import codecs
from pathlib import Path

import msgspec

from fairlap.errors import InvalidRequest
from fairlap.json_errors import NOT_THE_DOCUMENT
from fairlap.machine.files.regular_file import content_of
from fairlap.models.modes import MODES
from fairlap.race.planning.plan import MOST_PADDING_BYTES, PLAN_FORMAT, Plan
from fairlap.request.fields.source import with_paths
from fairlap.secrets import HIDDEN, json_without_secrets


# A plan as it is kept: without the secrets in its commands, so that it cannot be run again where it had any.
def plan_to_keep(plan: Plan) -> Plan:
    """For stores, files and pages. The plan that is raced has everything."""
    encoded = msgspec.json.encode(plan)
    hidden = json_without_secrets(encoded)
    return plan if hidden == encoded else msgspec.json.decode(hidden, type=Plan)


def require_complete(plan: Plan) -> None:
    """Refuse a kept plan whose commands have lost a secret."""
    for name in plan.contestants:
        if any(HIDDEN in value for _, value in name.options) or HIDDEN in name.program:
            raise InvalidRequest(
                f"the secret in {name.text!r} was not stored; race again with it in an environment variable that "
                "--pass-env names",
                code="E_SECRET",
            )


def save_plan(plan: Plan, path: Path) -> None:
    path.write_bytes(msgspec.json.format(json_without_secrets(msgspec.json.encode(plan)), indent=2))


def load_plan(path: Path) -> Plan:
    """Read a saved plan; errors name the place in the file."""
    try:
        plan = checked_plan(msgspec.json.decode(content_of(path).removeprefix(codecs.BOM_UTF8), type=Plan))
    except OSError as error:
        raise InvalidRequest(f"the plan {path} cannot be read: {error.strerror}") from None
    except NOT_THE_DOCUMENT as error:
        raise InvalidRequest(f"{path} is not a plan: {error}") from None
    if plan.format != PLAN_FORMAT:
        raise InvalidRequest(f"{path} has plan format {plan.format}; this fairlap reads {PLAN_FORMAT}")
    if any((work.training is not None) != MODES[work.mode].trains for work in plan.works):
        raise InvalidRequest(f"{path}: works in mode train have an optimizer, and others have none")
    return with_paths_from(plan, path.absolute().parent)


def checked_plan(plan: Plan) -> Plan:
    """Refuse one from a file whose parts do not fit each other. Raises msgspec.ValidationError."""
    for block in plan.blocks:
        if not 0 <= block.work < len(plan.works) or sorted(block.order) != list(range(len(plan.contestants))):
            raise msgspec.ValidationError(f"block {block.number} does not run every contestant once")
        if not 0 <= block.padding_bytes <= MOST_PADDING_BYTES:
            what = f"block {block.number} has {block.padding_bytes} bytes of padding"
            raise msgspec.ValidationError(f"{what}, and not 0 to {MOST_PADDING_BYTES}")
    return plan


def with_paths_from(plan: Plan, folder: Path) -> Plan:
    """Relative paths of users' models, as recipes have them, are relative to this folder."""
    works = tuple(
        work
        if work.source is None
        else msgspec.structs.replace(work, source=with_paths(work.source, lambda path: str(folder / path)))
        for work in plan.works
    )
    return msgspec.structs.replace(plan, works=works)
