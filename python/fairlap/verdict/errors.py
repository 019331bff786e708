"""What is wrong with the figures that came in, each kind under its own name.

A verdict on bad input would look like any other verdict, so bad input never gets that far.
"""

from fairlap.errors import WrongRequest


class BadInput(WrongRequest):
    """The base of every error the verdict raises about the figures or options it was given."""


class UnequalBlocks(BadInput):
    """The contestants do not have one figure each in every block."""


class NotFinite(BadInput):
    """A figure is NaN or infinite."""


class NotPositive(BadInput):
    """A figure is zero or negative, so it has no logarithm and no ratio."""


class OneSample(BadInput):
    """A process gave fewer than two samples, which say nothing about their own spread."""


class OneBlock(BadInput):
    """There are fewer than two blocks, so nothing was repeated."""


class OneContestant(BadInput):
    """There are fewer than two contestants, or two share a name, so there is no pair to compare."""


class BadOption(BadInput):
    """A level, margin or other option lies outside the range in which it means something."""


def require_between(name: str, value: float, low: float, high: float) -> None:
    """Refuse an option outside the open range from low to high."""
    if not low < value < high:
        raise BadOption(f"{name} is {value}, but it must lie between {low:g} and {high:g}")
