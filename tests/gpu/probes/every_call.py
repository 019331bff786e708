"""Every kernel of the engine, and every call that it makes, once or a few times: something for a checker to watch.

Times are not looked at. A checker that takes CUPTI for itself is no fault; records are left out then.
"""

from __future__ import annotations

from fairlap.engine import floor
from fairlap.engine.cuda.stream_calls import time_on_stream
from fairlap.errors import FairlapError, NotAvailable

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
    context.synchronize()
    spinner.close()
    context.close()


if __name__ == "__main__":
    main()
