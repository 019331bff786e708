"""Simulated machines: the noise that processes meet one after the other on one time line.

A generator draws the log noise of every process slot of many experiments at once, shaped (trials, slots). The
experiment then draws the order of the contestants inside each block, as the protocol does. Everything
hostile happens along the time line, so consecutive processes share it and comparisons that do not
interleave are misled by it.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
TimeLine = Callable[[np.random.Generator, int, int], Floats]

# Within-block log ratios then spread by about 2 %, as measured under controlled conditions.
PROCESS_SPREAD = 0.02 / np.sqrt(2)
TICKS_PER_CALL = 50


def independent(rng: np.random.Generator, trials: int, slots: int) -> Floats:
    noise: Floats = rng.normal(0, PROCESS_SPREAD, (trials, slots))
    return noise


def _autoregressive(coefficient: float) -> TimeLine:
    def line(rng: np.random.Generator, trials: int, slots: int) -> Floats:
        noise = independent(rng, trials, slots)
        innovation = np.sqrt(1 - coefficient**2)
        for slot in range(1, slots):
            noise[:, slot] = coefficient * noise[:, slot - 1] + innovation * noise[:, slot]
        return noise

    return line


def _drift(total: float) -> TimeLine:
    def line(rng: np.random.Generator, trials: int, slots: int) -> Floats:
        return independent(rng, trials, slots) + float(np.log1p(total)) * np.linspace(0, 1, slots)

    return line


def steps(rng: np.random.Generator, trials: int, slots: int) -> Floats:
    """Three times in a run, on average, the machine changes its speed by some 5 %."""
    jumps = (rng.random((trials, slots)) < 3 / slots) * rng.normal(0, 0.05, (trials, slots))
    return independent(rng, trials, slots) + np.cumsum(jumps, axis=1)


def bimodal(rng: np.random.Generator, trials: int, slots: int) -> Floats:
    """One process in five takes twice as long."""
    slow = rng.random((trials, slots)) < 0.2
    return independent(rng, trials, slots) + float(np.log(2.0)) * slow


def heavy_tailed(rng: np.random.Generator, trials: int, slots: int) -> Floats:
    noise: Floats = 0.01 * rng.standard_t(2.1, (trials, slots))
    return noise


def pareto(rng: np.random.Generator, trials: int, slots: int) -> Floats:
    noise: Floats = 0.01 * rng.pareto(1.5, (trials, slots))
    return noise


def steal_bursts(rng: np.random.Generator, trials: int, slots: int) -> Floats:
    """Let a neighbour take the processor in bursts that last three processes on average."""
    noise = independent(rng, trials, slots)
    stolen = np.zeros(trials, dtype=bool)
    for slot in range(slots):
        stolen = np.where(stolen, rng.random(trials) < 2 / 3, rng.random(trials) < 0.05)
        noise[:, slot] += stolen * rng.exponential(0.1, trials)
    return noise


TIME_LINES: dict[str, TimeLine] = {
    "independent": independent,
    "autoregressive .5": _autoregressive(0.5),
    "autoregressive .95": _autoregressive(0.95),
    "drift +5 %": _drift(0.05),
    "drift -5 %": _drift(-0.05),
    "steps": steps,
    "bimodal 20 %": bimodal,
    "t with 2.1 df": heavy_tailed,
    "Pareto 1.5": pareto,
    "quantised clock": independent,
    "steal bursts": steal_bursts,
}


def run_blocks(
    name: str, rng: np.random.Generator, trials: int, blocks: int, log_effects: list[float] | Floats
) -> Floats:
    """Log figures shaped (trials, blocks, contestants), each block in its own random order."""
    contestants = len(log_effects)
    noise = TIME_LINES[name](rng, trials, blocks * contestants).reshape(trials, blocks, contestants)
    order = rng.permuted(np.broadcast_to(np.arange(contestants), noise.shape), axis=-1)
    figures = np.take_along_axis(noise, order, axis=-1) + np.asarray(log_effects)
    return read_by_clock(name, figures)


def read_by_clock(name: str, log_figures: Floats) -> Floats:
    """Round to the ticks of a coarse clock, where the generator has one."""
    if name != "quantised clock":
        return log_figures
    rounded: Floats = np.log(np.maximum(np.round(np.exp(log_figures) * TICKS_PER_CALL), 1) / TICKS_PER_CALL)
    return rounded
