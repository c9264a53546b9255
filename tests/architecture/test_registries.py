"""Every collection that a module keeps and changes is known, with its reason in `docs/developers/decisions.md`."""

from __future__ import annotations

import ast
from pathlib import Path

import pyspark_delta

PACKAGE = Path(pyspark_delta.__file__).parent
KNOWN = {
    "catalog/connections._connections",
    "catalog/connections._listeners",
    "snapshot/cache._snapshots",
    "spark/conf/batches._of_sessions",
    "spark/conf/sessions._answers",
    "spark/conf/sessions.enabled",
    "spark/conf/temporary._changes",
    "spark/frames/catalyst/error_relay._failures",
    "spark/frames/catalyst/error_relay._read",
    "spark/session/enable._wrapped",
    "spark/sql/connect/names._namespaces",
    "spark/sql/session._installed",
    "spark/sql/session._working",
    "spark/sql/transactions._transactions",
    "storage/__init__._interceptors",
    "storage/credentials._sources",
    "storage/memory.MemoryStore._stores",
    "table/source_errors._read",
    "transaction/post_commit._cleaned",
}
COLLECTIONS = {
    "OrderedDict",
    "WeakKeyDictionary",
    "WeakSet",
    "WeakValueDictionary",
    "defaultdict",
    "deque",
    "dict",
    "list",
    "set",
}


def _registries(body: list[ast.stmt], prefix: str) -> set[str]:
    """The names that begin as an empty collection, in a module and its classes."""
    found = set()
    for node in body:
        if isinstance(node, ast.ClassDef):
            found |= _registries(node.body, f"{prefix}.{node.name}")
        elif isinstance(node, ast.Assign | ast.AnnAssign) and _is_empty_collection(node.value):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            found.add(f"{prefix}.{ast.unparse(target)}")
    return found


def _is_empty_collection(value: ast.expr | None) -> bool:
    if isinstance(value, ast.Dict | ast.List):
        return not (value.keys if isinstance(value, ast.Dict) else value.elts)
    if not isinstance(value, ast.Call):
        return False
    name = ast.unparse(value.func).rpartition(".")[2]
    return name == "LruCache" or (name in COLLECTIONS and not value.args)


def test_what_modules_keep_is_known() -> None:
    found: set[str] = set()
    for path in PACKAGE.rglob("*.py"):
        module = path.relative_to(PACKAGE).with_suffix("").as_posix()
        found |= _registries(ast.parse(path.read_text()).body, module)
    assert found == KNOWN
