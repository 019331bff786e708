"""A plan as it is kept: without the secrets in its commands, so that it cannot be run again where it had any."""

from __future__ import annotations

import msgspec

from fairlap.errors import InvalidRequest
from fairlap.race.planning.plan import Plan
from fairlap.secrets import HIDDEN, json_without_secrets


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
