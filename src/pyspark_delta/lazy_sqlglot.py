"""The SQL parser, imported when the first text is parsed: importing it takes longer than opening a table."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import sqlglot
    from sqlglot import errors as sqlglot_errors
    from sqlglot import exp

    sqlglot_tokens: Any

else:

    class _Lazy(ModuleType):
        """Stands for a module, which is imported when one of its names is used."""

        def __getattr__(self, name: str) -> Any:
            value = getattr(import_module(self.__name__), name)
            setattr(self, name, value)  # so that further uses cost what they cost in the module
            return value

    sqlglot = _Lazy("sqlglot")
    exp = _Lazy("sqlglot.expressions")
    sqlglot_errors = _Lazy("sqlglot.errors")
    sqlglot_tokens = _Lazy("sqlglot.tokens")

__all__ = ["exp", "sqlglot", "sqlglot_errors", "sqlglot_tokens"]
