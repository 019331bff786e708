"""A load on the tests' own server that streams, without a race."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from fairlap.request.names import Contestants
from fairlap.scenarios.streams.asked import StreamsAsked, streams_asked
from fairlap.scenarios.streams.contestant import Contestant
from fairlap.scenarios.streams.equal_work.examination import examine
from fairlap.scenarios.streams.issue import Served
from stream_server import StreamingServer, Truth

TOKENS = 11
PROMPTS = 50
SEED = 1


def prompts_in(folder: Path) -> Path:
    path = folder / "prompts.jsonl"
    path.write_text("".join(f'{{"prompt": "number {place}"}}\n' for place in range(PROMPTS)))
    return path


def by_prompt(truths: Iterable[Truth]) -> dict[str, Truth]:
    """Return what the server wrote down, by the prompt without what made it new."""
    return {each.prompt.partition(" ")[2]: each for each in truths}


def examined(server: StreamingServer, folder: Path, **more: Any) -> tuple[StreamsAsked, Contestant]:
    asked = streams_asked(prompts_in(folder), Contestants(server.at()), tokens=TOKENS, **more)
    contestant = Contestant(asked.servers[0])
    contestant.examined = examine(asked.servers[0], asked.certificates.context(), asked.examples()[:1], TOKENS)
    assert contestant.examined.why_not is None
    return asked, contestant


def loaded(
    server: StreamingServer, folder: Path, due_ns: npt.NDArray[np.float64], connections: int, **more: Any
) -> Served:
    asked, contestant = examined(server, folder, **more)
    try:
        return contestant.load(asked, due_ns, connections, SEED)
    finally:
        contestant.close()
