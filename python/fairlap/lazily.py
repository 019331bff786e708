"""Names of a package that are looked up where they live on first use, so that importing the package loads nothing."""

from __future__ import annotations

from types import ModuleType

TYPE_CHECKING = False  # importing typing would take most of the time that this saves
if TYPE_CHECKING:
    from collections.abc import Callable


def lookup(package: str, home: dict[str, str], on_first_use: tuple[str, ...] = ()) -> Callable[[str], object]:
    """Make a package's ``__getattr__``; ``home`` gives the module in which each name lives.

    ``on_first_use`` are modules of the package that are imported when one of their names is used.
    """

    def look_up(name: str) -> object:
        if name in on_first_use:
            return ModuleOnFirstUse(f"{package}.{name}")
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        import sys
        from importlib import import_module

        value: object = getattr(import_module(home[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return look_up


class ModuleOnFirstUse(ModuleType):
    """Stands for a module that is imported when one of its names is first looked up, and afterwards too.

    Names are never copied, so that one that a test replaces in the module is seen here.
    """

    def __getattr__(self, name: str) -> object:
        if name.startswith("__") and name != "__version__":  # what the import system and debuggers look for
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        from importlib import import_module

        value: object = getattr(import_module(self.__name__), name)
        return value

    def __setattr__(self, name: str, value: object) -> None:
        from importlib import import_module

        setattr(import_module(self.__name__), name, value)

    def __delattr__(self, name: str) -> None:
        from importlib import import_module

        delattr(import_module(self.__name__), name)
