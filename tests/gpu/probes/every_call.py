"""Every kernel of the engine, and every call that it makes, once or a few times: something for a checker to watch.

Times are not looked at. A checker that takes CUPTI for itself is no fault; records are left out then.
"""

from __future__ import annotations

from collections.abc import Callable

from fairlap.engine import floor
from fairlap.engine.cuda.call_records import recorded_calls
from fairlap.engine.cuda.stream_calls import time_on_stream
from fairlap.errors import FairlapError, NotAvailable
from fairlap.machine.hardware.device_roofs import measured_on_device

from ..proof.driver import PrimaryContext, Spinner
from ..proof.json_lines import report

ASKED = (
    {"method": "device_span", "gate": "stream_wait"},
    {"method": "device_span", "gate": "spin"},
    {"method": "device_span", "cache": "flush"},
    {"method": "device_span", "graph": True},
    {"method": "context_span"},
    {"method": "host_issue"},
    {"method": "kernel_sum"},
)


def main() -> None:
    floors = floor()
    report(probe="floor", devices=len(floors["cuda"] or ()))
    context = PrimaryContext()
    spinner, stream = Spinner(), context.new_stream()
    for asked in ASKED:
        try:
            result = time_on_stream(
                lambda: spinner.spin_ns(stream, 20_000),
                stream=stream,
                samples=10,
                warmup=3,
                **asked,
            )
        except (NotAvailable, FairlapError) as refused:
            report(probe=str(asked), refused=str(refused))
            continue
        report(probe=str(asked), samples=result.samples, median_ns=result.median_ns)
    _roofs()
    _records(lambda: spinner.spin_ns(stream, 20_000))
    context.synchronize()
    spinner.close()
    context.close()


def _roofs() -> None:
    """Run a few trials of every kernel for this device."""
    found = measured_on_device("cuda:0", seconds=0.0)
    report(probe="roofs", measured=[*found.operations_per_s, *found.bytes_per_s], absent=list(found.absent))


def _records(call: Callable[[], None]) -> None:
    try:
        found = recorded_calls(call, 5, 0)
    except NotAvailable as refused:
        report(probe="records of calls", refused=str(refused))
        return
    report(probe="records of calls", activities=[len(each.activities) for each in found])


if __name__ == "__main__":
    main()
