"""``fairlap watch``: the readings of this machine's sensors, live."""

from __future__ import annotations

from functools import partial

import click
from click.core import ParameterSource

from fairlap.cli.help import Command
from fairlap.cli.options.values import DURATION

_INTERVALS_S = click.FloatRange(0.1, 60.0)  # which lets nan pass


@click.command(
    "watch",
    cls=Command,
    examples="""
fairlap watch
    Watch this machine until Ctrl-C.
""",
)
@click.option("--interval", default=1.0, show_default=True, type=_INTERVALS_S, help="Seconds between readings.")
@click.option("--seconds", type=DURATION, help="End after DURATION, in whole intervals.  [default: at Ctrl-C]")
@click.option("--once", is_flag=True, help="Print one interval as a table and end.")
@click.option("--json", "as_json", is_flag=True, help="Print one line of JSON for each interval.")
@click.option("--serve", metavar="[HOST:]PORT", help="Serve Prometheus metrics, by default to this machine only.")
@click.option("--dashboard", is_flag=True, help="Print a Grafana dashboard for these metrics.")
@click.option("--root", hidden=True, default="", help="Folder that replaces / for /proc and /sys.")
def command(
    interval: float,
    seconds: float | None,
    once: bool,
    as_json: bool,
    serve: str | None,
    dashboard: bool,
    root: str,
) -> None:
    """Show power, clocks, memory, throttling, steal and pressure of this machine, live.

    In a terminal, a display of the last minute; elsewhere, one line for each interval. A reading that is absent is
    shown with the reason, never as 0.

    Exit status: 130 after Ctrl-C, 143 after SIGTERM, 129 after a closed terminal, 1 when output cannot be written.
    """
    _refuse_together(once=once, seconds=seconds is not None)
    _refuse_together(serve=serve is not None, once=once)
    _refuse_together(serve=serve is not None, json=as_json)
    if dashboard:
        _refuse_together(dashboard=True, interval=_was_given("interval"))
        _refuse_together(dashboard=True, seconds=seconds is not None)
        _refuse_together(dashboard=True, once=once)
        _refuse_together(dashboard=True, json=as_json)
        _refuse_together(dashboard=True, serve=serve is not None)
        from fairlap.watch.dashboard import dashboard_json

        click.echo(dashboard_json())
        return
    from fairlap.engine.arguments import positive_number
    from fairlap.watch.prometheus import address_in
    from fairlap.watch.run import (
        Show,
        ended_in_order,
        is_terminal,
        print_json,
        print_lines,
        print_table,
        serve_metrics,
        show_live,
        watch,
    )

    interval_s = positive_number("--interval", interval)
    intervals = 1 if once else _intervals(interval_s, seconds)
    show: Show
    if serve is not None:
        show = partial(serve_metrics, address=address_in(serve))
    elif as_json:
        show = print_json
    elif once:
        show = print_table
    else:
        show = show_live if is_terminal() else print_lines
    with ended_in_order():
        watch(interval_s, intervals, root, show)


def _was_given(option: str) -> bool:
    return click.get_current_context().get_parameter_source(option) is not ParameterSource.DEFAULT


def _refuse_together(**chosen: bool) -> None:
    chosen_options = [f"--{name}" for name, on in chosen.items() if on]
    if len(chosen_options) > 1:
        raise click.UsageError(f"{' and '.join(chosen_options)} cannot be combined")


def _intervals(interval_s: float, seconds: float | None) -> int | None:
    """None is without end."""
    return None if seconds is None else max(round(seconds / interval_s), 1)
