"""A plugin of mypy that knows the columns of rows, which scenarios add when they are loaded.

Rows have a ``__getattr__`` for type checkers alone, so without this plugin no mistyped column would be an error.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from mypy.errorcodes import ATTR_DEFINED
from mypy.plugin import AttributeContext, Plugin
from mypy.types import Type

sys.path.append(str(Path(__file__).parents[1] / "python"))  # mypy removes the first place afterwards

ROW = "fairlap.results.column_definitions.scenarios._OfScenarios"
LINE = "fairlap.history.across.lines._Measured"


def columns_of(kind: str) -> frozenset[str]:
    """Load the scenarios for it, as a run does."""
    from fairlap.history.across.lines import Line
    from fairlap.results.row import Row

    return frozenset({ROW: Row, LINE: Line}[kind].__struct_fields__)


class ColumnNames(Plugin):
    def get_attribute_hook(self, fullname: str) -> Callable[[AttributeContext], Type] | None:
        """Mypy asks for every name that ``__getattr__`` would give; the others are checked as usual."""
        kind, _, name = fullname.rpartition(".")
        if kind not in (ROW, LINE) or name in columns_of(kind):
            return None

        def fail(context: AttributeContext) -> Type:
            context.api.fail(f'a row has no column "{name}"', context.context, code=ATTR_DEFINED)
            return context.default_attr_type

        return fail


def plugin(version: str) -> type[Plugin]:
    return ColumnNames
