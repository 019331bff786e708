"""Names of a package that are looked up where they live on first use, so that importing the package loads nothing."""

from __future__ import annotations

TYPE_CHECKING = False  # importing typing would take most of the time that this saves
if TYPE_CHECKING:
    from collections.abc import Callable


def lookup(package: str, home: dict[str, str]) -> Callable[[str], object]:
    """Make a package's ``__getattr__``; ``home`` gives the module in which each name lives."""

    def look_up(name: str) -> object:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        import sys
        from importlib import import_module

        value: object = getattr(import_module(home[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return look_up
