"""The command that asks for a race of calls again."""

from __future__ import annotations

from fairlap.race.planning.plan import Plan
from fairlap.render.scenario_side import RenderSide, Words, require_command


class CallsShown(RenderSide):
    def words(self, plan: Plan) -> Words:
        """Give the conditions of the GPU, which all works share."""
        asked = {work.on_device for work in plan.works}
        require_command(len(asked) == 1)
        [conditions] = asked
        if conditions is None:
            return []
        cache = ["--cache", conditions.cache] if conditions.cache != "warm" else []
        return [*cache, *(["--regime", conditions.regime] if conditions.regime else [])]
