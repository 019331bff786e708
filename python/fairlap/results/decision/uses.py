"""What different uses care for: weights of columns, which add up to 1. They are opinions, printed with the answer."""

from __future__ import annotations

from typing import Literal

import msgspec

from fairlap.errors import InvalidRequest
from fairlap.suggestions import not_one_of


class Weight(msgspec.Struct, frozen=True):
    column: str
    weight: float
    better: Literal["lower", "higher"] = "lower"
    words: str = ""


LATENCY = Weight("latency_p50_ns", 0, words="median latency")
P99 = Weight("latency_p99_ns", 0, words="p99 latency")
THROUGHPUT = Weight("throughput_per_s", 0, "higher", "throughput")
COST = Weight("cost_per_1000_items", 0, words="cost")
ENERGY = Weight("energy_per_item_j", 0, words="energy")
MEMORY = Weight("peak_memory_bytes", 0, words="peak memory")
FIRST = Weight("time_to_first_inference_s", 0, words="time to the first answer")


class Use(msgspec.Struct, frozen=True):
    name: str
    about: str
    weights: tuple[Weight, ...]


def _weighing(*pairs: tuple[Weight, float]) -> tuple[Weight, ...]:
    return tuple(msgspec.structs.replace(weight, weight=share) for weight, share in pairs)


USES = {
    each.name: each
    for each in (
        Use(
            "edge",
            "a small device: little memory and energy, and answers in time",
            _weighing((MEMORY, 0.35), (ENERGY, 0.25), (P99, 0.25), (FIRST, 0.15)),
        ),
        Use(
            "cloud",
            "a rented server: money first, then what it serves",
            _weighing((COST, 0.4), (THROUGHPUT, 0.25), (P99, 0.25), (MEMORY, 0.1)),
        ),
        Use(
            "research",
            "trying things out: quick steps, and little waiting for the first one",
            _weighing((LATENCY, 0.45), (FIRST, 0.3), (MEMORY, 0.25)),
        ),
    )
}


def use_named(name: str) -> Use:
    if name in USES:
        return USES[name]
    raise InvalidRequest(not_one_of(name, USES), code="E_USE")
