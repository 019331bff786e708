"""The CUDA release in which each form of a driver function appeared, from the engine's and the fake driver's tables."""

import re
from pathlib import Path

CPP = Path(__file__).parents[2] / "cpp"


def of_the_engine() -> dict[str, int]:
    """Return the releases by exported name, from the table of functions that the engine looks up."""
    table = (CPP / "cuda/driver/driver.hpp").read_text()
    return {name: int(release) for name, release in re.findall(r"FORM\(\w+, (\w+), (\d+), (?:true|false)\)", table)}


def of_the_fake() -> dict[str, int]:
    """Return the releases by exported name, for the forms that the fake driver has."""
    return {name: int(release) for _, release, name in _rows(r"(?:SHARED|OWN)\((\w+), (\d+), (\w+)\)")}


def forms_of_the_fake() -> set[tuple[str, int]]:
    """Return base name and release of every form that the fake knows, including those it does not model."""
    modelled = {(base, int(release)) for base, release, _ in _rows(r"(?:SHARED|OWN)\((\w+), (\d+), (\w+)\)")}
    traps = {(base, int(release)) for base, release in _rows(r"NOT_MODELLED\((\w+), (\d+)\)")}
    return modelled | traps


def _rows(pattern: str) -> list[tuple[str, ...]]:
    text = (CPP / "fakes/cuda/symbols.cpp").read_text()
    table = text[text.index("all = {") : text.index("return all;")]
    return re.findall(pattern, table)
