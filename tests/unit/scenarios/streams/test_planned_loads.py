"""A plan keeps what a load is, so that it asks the same when it runs, later or again; only how prompts begin is new."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from fairlap.errors import InvalidRequest
from fairlap.race.planning.plan import Plan
from fairlap.request.fields.streams import OF_FILE, Manners, Overload, StreamLoad
from fairlap.request.names import Contestants
from fairlap.scenarios.streams.asked import StreamsAsked, streams_asked
from fairlap.scenarios.streams.race.planned_load import asked_by, plan_of
from fairlap.scenarios.streams.workload.arrivals import Arrivals
from fairlap.scenarios.streams.workload.lengths import Lengths

SERVER = Contestants("http://127.0.0.1:8000/v1:model=m")
PROMPTS = '{"prompt": "a b c", "tokens": 3}\n{"prompt": "d e f", "tokens": 5}\n'
TRACE = (
    '{"timestamp": 0, "input_length": 5, "output_length": 7}\n{"timestamp": 9, "input_length": 6, "output_length": 2}\n'
)
CONVERSATION = '{"turns": ["Hi", "Why", "So"]}\n{"turns": ["Hi"]}\n'


def asked(folder: Path, text: str = PROMPTS, name: str = "prompts.jsonl", **how: Any) -> StreamsAsked:
    (folder / name).write_text(text)
    return streams_asked(folder / name, SERVER, **how)


def planned_again(given: StreamsAsked) -> StreamsAsked:
    """Through the bytes of a plan, as when it is stored."""
    plan = plan_of(given, tuple(SERVER), blocks=1, seed=1)
    return asked_by(msgspec.json.decode(msgspec.json.encode(plan), type=Plan))


SHAPES: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "bursts": (PROMPTS, {"tokens": 4, "rate": 5.0, "arrivals": Arrivals("gamma", 2.0)}, {"arrivals": "gamma:cv=2"}),
    "even": (PROMPTS, {"tokens": Lengths(2, 9), "rate": 5.0}, {"lengths": "2-9", "tokens": 5}),
    "of each line": (PROMPTS, {"rate": 5.0}, {"lengths": OF_FILE, "tokens": 4}),
    "users": (PROMPTS, {"tokens": 4, "concurrency": 3, "think": 0.5}, {"think_s": 0.5, "concurrency": 3}),
    "shared": (PROMPTS, {"tokens": 4, "rate": 5.0, "shared_prefix": 0.3}, {"shared_prefix": 0.3}),
    "overload": (
        PROMPTS,
        {"tokens": 4, "rate": 5.0, "overload": Overload(9.0, 1.0, 3.0, 0.2)},
        {"overload": Overload(9.0, 1.0, 3.0, 0.2)},
    ),
    "manners": (
        PROMPTS,
        {"tokens": 4, "rate": 5.0, "slow_clients": (0.1, 500.0), "abort": 0.05},
        {"manners": Manners(0.1, 500.0, 0.05)},
    ),
    "trace": (TRACE, {}, {"arrivals": "trace", "lengths": OF_FILE, "shared_prefix": None}),
    "lengths of a trace": (TRACE, {"concurrency": 2}, {"arrivals": "poisson", "lengths": OF_FILE}),
    "conversations": (CONVERSATION, {"tokens": 4, "rate": 5.0, "think": 1.0}, {"requests_in_a_session": 2.0}),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_a_plan_asks_the_same_again_of_prompts_that_are_new(shape: str, tmp_path: Path) -> None:
    text, how, kept = SHAPES[shape]
    first = asked(tmp_path, text, **how)
    again = planned_again(first)
    assert again.load == first.load
    assert {name: getattr(again.load, name) for name in kept} == kept
    assert (again.most_tokens, again.arrivals) == (first.most_tokens, first.arrivals)
    users = first.load.concurrency is not None
    drawn, drawn_again = (each.source.sessions(6, 1, think_s=each.load.think_s, users=users) for each in (first, again))
    for one, other in zip(drawn, drawn_again, strict=True):
        assert (one.number, one.tokens, one.thinks_ns, one.says) == (
            other.number,
            other.tokens,
            other.thinks_ns,
            other.says,
        )
        assert one.first != other.first
    assert np.array_equal(first.arrivals.due_ns(20, 5.0, 3), again.arrivals.due_ns(20, 5.0, 3))


def test_a_trace_that_changed_is_refused(tmp_path: Path) -> None:
    plan = plan_of(asked(tmp_path, TRACE, name="trace.jsonl"), tuple(SERVER), blocks=1, seed=1)
    (tmp_path / "trace.jsonl").write_text(TRACE.replace('"output_length": 7', '"output_length": 8'))
    with pytest.raises(InvalidRequest) as raised:
        asked_by(plan)
    assert raised.value.code == "E_PROMPTS"


def test_loads_of_another_shape_are_other_work(tmp_path: Path) -> None:
    loads = [asked(tmp_path, text, **how).load for text, how, _ in SHAPES.values()]
    assert len({msgspec.json.encode(each.identity) for each in loads}) == len(SHAPES)


def identities(tmp_path: Path, text: str, *trials: float) -> list[StreamLoad]:
    how = {} if text == TRACE else {"tokens": 4, "rate": 5.0}
    return [asked(tmp_path, text, name=f"{trial}.jsonl", trial=trial, **how).load.identity for trial in trials]


def test_how_long_is_part_of_the_work_where_it_is_how_much_of_a_trace(tmp_path: Path) -> None:
    plain, plain_longer = identities(tmp_path, PROMPTS, 1.0, 2.0)
    replayed, replayed_longer = identities(tmp_path, TRACE, 1.0, 2.0)
    assert plain == plain_longer
    assert replayed != replayed_longer


@pytest.mark.parametrize(
    ("shape", "shown"),
    [
        ("bursts", ["4", "gamma:cv=2", "5"]),
        ("even", ["2-9", "5"]),
        ("users", ["4", "3", "500.0 ms"]),
        ("shared", ["4", "5", "30 %"]),
        ("conversations", ["4", "5", "1.000 s"]),
    ],
)
def test_titles_have_each_number_of_a_load(shape: str, shown: list[str], tmp_path: Path) -> None:
    text, how, _ = SHAPES[shape]
    words = asked(tmp_path, text, **how).load.text.split(", ")
    assert all(any(number in each for each in words) for number in shown)
    assert len(words) == 2 + (shape not in ("even", "users"))
