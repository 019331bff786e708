"""What a server counts of its prefix cache for Prometheus, where its answers do not say it.

The counters are vLLM's and SGLang's, in tokens since the server's start, and of all its clients.
"""

from __future__ import annotations

import http.client
import re
from dataclasses import dataclass

from fairlap.scenarios.streams.servers import StreamServer

_PATH, _WITHIN_S, _MOST_BYTES, _OK = "/metrics", 2.0, 4 << 20, 200
_SERIES = re.compile(r"^(?P<name>[\w:]+)(?:\{.*\})?\s+(?P<value>[\d.eE+-]+)(?:\s+\d+)?\s*$")
_COUNTERS = (  # tokens of prompts, and those of them that were cached
    ("vllm:prefix_cache_queries_total", "vllm:prefix_cache_hits_total"),
    ("vllm:gpu_prefix_cache_queries_total", "vllm:gpu_prefix_cache_hits_total"),
    ("sglang:prompt_tokens_total", "sglang:cached_tokens_total"),
)


@dataclass(frozen=True)
class CacheCounters:
    prompt_tokens: float
    cached_tokens: float

    def since(self, before: CacheCounters) -> CacheCounters | None:
        """None where nothing was counted meanwhile, or the server restarted."""
        prompts, cached = self.prompt_tokens - before.prompt_tokens, self.cached_tokens - before.cached_tokens
        return CacheCounters(prompts, cached) if prompts > 0 and 0 <= cached <= prompts else None


def cache_counters(server: StreamServer) -> CacheCounters | None:
    """None of a server that has none, or that is not asked by plain HTTP."""
    address = server.address
    if address is None or address.scheme != "http":
        return None
    connection = http.client.HTTPConnection(address.hosts[0], address.port, timeout=_WITHIN_S)
    try:
        connection.request("GET", _PATH, headers={"Host": address.text})
        response = connection.getresponse()
        return counters_in(response.read(_MOST_BYTES)) if response.status == _OK else None
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()


def counters_in(text: bytes) -> CacheCounters | None:
    """Add up the series of each counter."""
    sums: dict[str, float] = {}
    for line in text.decode("utf-8", "replace").splitlines():
        if (found := _SERIES.match(line)) is None:
            continue
        try:
            sums[found["name"]] = sums.get(found["name"], 0.0) + float(found["value"])
        except ValueError:
            continue
    both = next((names for names in _COUNTERS if names[0] in sums), None)
    return None if both is None else CacheCounters(sums[both[0]], sums.get(both[1], 0.0))
