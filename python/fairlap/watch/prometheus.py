"""The readings as Prometheus metrics, served over HTTP.

What is absent has no sample; ``fairlap_absent_info`` has the reason.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from fairlap.errors import InvalidRequest, NotAvailable
from fairlap.machine.serving.listening import NOT_ENCRYPTED, TOKEN, Listening
from fairlap.version import __version__
from fairlap.watch.metrics import PREFIX
from fairlap.watch.metrics_server import MetricsServer
from fairlap.watch.readings import ReadingsNow
from fairlap.watch.series import Series

THIS_MACHINE_ONLY = "127.0.0.1"


def address_in(text: str) -> tuple[str, int]:
    """Host and port of ``PORT`` or ``HOST:PORT``. Port 0 is any free port; the default host is local."""
    host, colon, number = text.rpartition(":")
    in_brackets = host.startswith("[") and host.endswith("]")
    bare = host[1:-1] if in_brackets else host
    valid_host = (
        bool(bare) == bool(colon)
        and (":" in bare) == in_brackets
        and not any(character.isspace() for character in bare)
    )
    if not valid_host or not re.fullmatch(r"[0-9]{1,5}", number) or int(number) > 65535:
        raise InvalidRequest(
            f"invalid address {text!r}; expected a port such as 9555, or HOST:PORT such as 0.0.0.0:9555"
        )
    return bare or THIS_MACHINE_ONLY, int(number)


SOURCE_PRESENT = f"{PREFIX}source_present"
ABSENT = f"{PREFIX}absent_info"
BUILD = f"{PREFIX}build_info"
_NANOSECONDS_PER_SECOND = 1e9
SAMPLER_COUNTS = {
    "rounds": ("sampler_rounds", "Rounds of reading sensors.", 1.0),
    "missed": ("sampler_missed_rounds", "Rounds that could not begin in time.", 1.0),
    "overflowed_readings": ("sampler_dropped_readings", "Readings dropped because the buffer was full.", 1.0),
    "cpu_ns": ("sampler_cpu_seconds", "Processor time of the sampling thread.", 1 / _NANOSECONDS_PER_SECOND),
}


def prometheus_client() -> Any:
    try:
        import prometheus_client
        import prometheus_client.core
    except ImportError as error:
        raise NotAvailable(
            f"--serve needs prometheus-client ({error}); install it with: pip install 'fairlap[watch]'"
        ) from None
    return prometheus_client


class Families:
    """The collector of prometheus_client: every scrape gets the interval that ended last."""

    def __init__(self, readings: ReadingsNow) -> None:
        self._readings = readings
        self._core = prometheus_client().core

    def describe(self) -> list[Any]:
        return []  # they may differ from scrape to scrape

    def collect(self) -> Iterator[Any]:
        with self._readings.locked():
            return iter([*self._measured(), *self._presence(), *self._own()])

    def _measured(self) -> Iterator[Any]:
        by_name: dict[str, list[Series]] = defaultdict(list)
        for series in self._readings.series:
            by_name[series.metric.name].append(series)
        for name, of_name in by_name.items():
            metric, keys = of_name[0].metric, sorted(of_name[0].labels)
            family = self._family(metric.counter)(PREFIX + name, metric.help, labels=keys)
            for series in of_name:
                if not series.absent and series.value is not None:
                    family.add_metric([series.labels[key] for key in keys], series.value)
            if family.samples:
                yield family

    def _presence(self) -> Iterator[Any]:
        gauge = self._core.GaugeMetricFamily
        present = gauge(SOURCE_PRESENT, "1 while the source is present, 0 while it is absent.", labels=["source"])
        for name, why in self._readings.sources.items():
            present.add_metric([name], 0.0 if why else 1.0)
        yield present
        absent = gauge(ABSENT, "Always 1; the labels name what is absent and the reason.", labels=["what", "reason"])
        for absence in self._readings.absences():
            absent.add_metric([absence.what, absence.why], 1.0)
        yield absent

    def _own(self) -> Iterator[Any]:
        counts = self._readings.sampler.counts
        for count, (name, help_text, scale) in SAMPLER_COUNTS.items():
            yield self._core.CounterMetricFamily(PREFIX + name, help_text, value=counts[count] * scale)
        build = self._core.GaugeMetricFamily(BUILD, "Always 1; the version of fairlap.", labels=["version"])
        build.add_metric([__version__], 1.0)
        yield build

    def _family(self, counter: bool) -> Any:
        return self._core.CounterMetricFamily if counter else self._core.GaugeMetricFamily


class Server:
    """Serves from construction until the end of the ``with`` block, on a separate thread."""

    def __init__(self, readings: ReadingsNow, host: str, port: int) -> None:
        client = prometheus_client()
        registry = client.CollectorRegistry()
        registry.register(Families(readings))
        listening = Listening(host, port, options="--serve [HOST:]PORT")
        self._server = MetricsServer(client.make_wsgi_app(registry), listening, (host,))
        self.url = f"http://{listening.address}/metrics"
        self.notes = [f"serving Prometheus metrics at {self.url}; press Ctrl-C to stop"]
        if listening.drawn_token:
            self.notes.append(f"scrapes need the bearer token {listening.drawn_token}; {TOKEN} sets one that stays")
        elif listening.asks_for_given_token:
            self.notes.append(f"scrapes need the bearer token in {TOKEN}")
        if not listening.is_loopback:
            self.notes.append(NOT_ENCRYPTED)

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.close()
