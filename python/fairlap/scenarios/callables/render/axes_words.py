"""What the table and the chart of callables over axes both say."""

from __future__ import annotations

from fairlap import quantity_text
from fairlap.results.column_definitions.estimate import Estimate
from fairlap.scenarios.callables.axes.result import ComparisonOverAxes
from fairlap.scenarios.callables.result import CallableRow


def setting(result: ComparisonOverAxes) -> str:
    points = f"{quantity_text.count(len(result.points), 'point')}, {quantity_text.count(result.blocks, 'block')}"
    share = quantity_text.share(result.alpha)
    quantity = result.quantity.removesuffix("_ns")
    brackets = f"{f'Times are {quantity}. ' if quantity else ''}Brackets are intervals over blocks"
    return (
        f"{quantity_text.count(len(result.callables), 'callable')} at {points} in "
        f"{quantity_text.seconds(result.elapsed_s)}, seed {result.seed}. {brackets}; all verdicts share one error rate "
        f"of {share}."
    )


def how_to_read(result: ComparisonOverAxes) -> str:
    lines = "; dashed lines are fitted costs" if any(each.cost for each in result.costs) else ""
    bands = "; a grey band is where two curves cross" if result.crossings else ""
    return f"Points are medians with 95 % intervals over blocks{lines}{bands}. Both axes are logarithmic."


def estimate_of(row: CallableRow | None) -> Estimate | None:
    """Where blocks fall into modes, their median alone."""
    return None if row is None else Estimate.of(row.figure) or Estimate(row.median_ns)
