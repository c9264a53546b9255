"""Reconciliation against a naive model: random commits, with random checkpoints, compactions and checksums."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.lengths import length

from pyspark_delta.snapshot import Snapshot, validate_checksum
from pyspark_delta.testing.table_builder import TableBuilder, add, deletion_vector, metadata, protocol, remove

PATHS = ["a", "b", "p=1/c", "x%20y", "x y", "caf%C3%A9", "café", "e%2525", "e%25", "/abs/f", "file:/abs/f", "s3://b/k"]
HEAD = [protocol(3, 7, ["deletionVectors", "v2Checkpoint", "domainMetadata"]), metadata()]


class Model:
    """The state by the letter of the protocol: dictionaries, one action after the other."""

    def __init__(self) -> None:
        self.adds: dict[Any, Any] = {}
        self.removes: dict[Any, Any] = {}
        self.transactions: dict[str, int] = {}
        self.domains: dict[str, Any] = {}

    @staticmethod
    def key(fields: dict[str, Any]) -> tuple[str, str | None]:
        path = unquote(fields["path"]).removeprefix("file:")
        vector = fields.get("deletionVector")
        return path, vector and f"{vector['storageType']}{vector['pathOrInlineDv']}@{vector.get('offset')}"

    def apply(self, actions: list[Any]) -> None:
        for action in actions:
            if "remove" in action:
                self.adds.pop(self.key(action["remove"]), None)
                self.removes[self.key(action["remove"])] = action
        for action in actions:
            match action:
                case {"add": fields}:
                    self.adds[self.key(fields)] = action
                    self.removes.pop(self.key(fields), None)
                case {"txn": fields}:
                    self.transactions[fields["appId"]] = fields["version"]
                case {"domainMetadata": fields}:
                    self.domains[fields["domain"]] = action

    def actions(self, *, tombstone_domains: bool = False) -> list[Any]:
        domains = [d for d in self.domains.values() if tombstone_domains or not d["domainMetadata"]["removed"]]
        transactions = [{"txn": {"appId": a, "version": v}} for a, v in self.transactions.items()]
        return [*transactions, *domains, *self.adds.values(), *self.removes.values()]


@st.composite
def commits(draw: st.DrawFn) -> list[list[Any]]:
    """Some commits, each with at most one action for a key of any kind."""
    found = []
    for version in range(draw(st.integers(1, 8))):
        actions: list[Any] = []
        seen: set[Any] = set()
        for _ in range(draw(st.integers(0, 6))):
            fields: dict[str, Any] = {}
            vector = draw(st.sampled_from([None, None, "v", "w"]))
            if vector is not None:
                fields["deletionVector"] = deletion_vector(vector, draw(st.sampled_from([1, None])))
            path = draw(st.sampled_from(PATHS))
            key = Model.key({"path": path, **fields})
            if key not in seen:
                seen.add(key)
                adding = draw(st.booleans())
                actions.append(add(path, size=version + 1, **fields) if adding else remove(path, **fields))
        applications = draw(st.dictionaries(st.sampled_from("rst"), st.integers(-5, 5), max_size=2))
        actions += [{"txn": {"appId": app, "version": number}} for app, number in applications.items()]
        for domain in draw(st.sets(st.sampled_from("de"), max_size=2)):
            value = {"domain": domain, "configuration": str(version), "removed": draw(st.booleans())}
            actions.append({"domainMetadata": value})
        found.append(draw(st.permutations(actions)))
    return found


KINDS = ["classic", "multi-part", "json 0", "json 2", "parquet 0", "parquet 3", "classic-v2 2"]


def write_checkpoint(table: TableBuilder, version: int, kind: str, actions: list[Any]) -> None:
    """A checkpoint of one of the kinds."""
    everything = [*HEAD, *actions]
    if kind == "classic":
        table.classic_checkpoint(version, everything, row_group_size=3)
    elif kind == "multi-part":
        table.multi_part_checkpoint(version, everything, 2)
    else:
        form, sidecars = kind.split()
        table.v2_checkpoint(version, everything, form=form.removesuffix("-v2"), sidecars=int(sidecars))


def check(snapshot: Snapshot, model: Model) -> None:
    """The snapshot has the model's state."""
    wire = {"storage_type": "storageType", "path_or_inline_dv": "pathOrInlineDv", "offset": "offset"}

    def keys(rows: list[Any]) -> list[Any]:
        return sorted(
            (
                row["path"],
                str(row["deletion_vector"] and {w: row["deletion_vector"][n] for n, w in wire.items()}),
                row.get("size"),
            )
            for row in rows
        )

    def expected(actions: Any, kind: str) -> list[Any]:
        rows = [action[kind] for action in actions]
        return sorted(
            (
                row["path"],
                str(row.get("deletionVector") and {w: row["deletionVector"].get(w) for w in wire.values()}),
                row.get("size"),
            )
            for row in rows
        )

    files = snapshot.files(("path", "size", "deletion_vector")).to_pylist()
    renamed = [{**r, "deletion_vector": r["deletion_vector"]} for r in files]
    assert keys(renamed) == expected(model.adds.values(), "add")
    gone = snapshot.tombstones(("path", "size", "deletion_vector")).to_pylist()
    assert keys(gone) == expected(model.removes.values(), "remove")
    assert {a: t.version for a, t in snapshot.transactions().items()} == model.transactions
    live = {n: d for n, d in model.domains.items() if not d["domainMetadata"]["removed"]}
    assert {n: d.configuration for n, d in snapshot.domains().items()} == {
        n: d["domainMetadata"]["configuration"] for n, d in live.items()
    }
    assert snapshot.num_files() == len(model.adds)
    assert snapshot.size_in_bytes() == sum(a["add"]["size"] for a in model.adds.values())


@settings(max_examples=length(30, 200), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data(), log=commits())
def test_c211_c215_reconciliation_equals_the_model(data: st.DataObject, log: list[list[Any]]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        table = TableBuilder(Path(directory) / "table")
        states = [Model()]
        for version, actions in enumerate(log):
            table.commit(version, [*(HEAD if version == 0 else []), *actions])
            states.append(Model())
            for earlier in log[: version + 1]:
                states[-1].apply(earlier)
        last = len(log) - 1
        for version in data.draw(st.sets(st.integers(0, last), max_size=2)):
            kind = data.draw(st.sampled_from(KINDS))
            write_checkpoint(table, version, kind, states[version + 1].actions())
        if last > 0 and data.draw(st.booleans()):
            start = data.draw(st.integers(0, last - 1))
            end = data.draw(st.integers(start + 1, last))
            part = Model()
            for actions in log[start : end + 1]:
                part.apply(actions)
            head = HEAD if start == 0 else []
            table.compaction(start, end, [*head, *part.actions(tombstone_domains=True)])
        first = data.draw(st.integers(0, last))
        earlier = Snapshot.load(table.location, version=first)
        for _ in range(data.draw(st.integers(0, 2))):
            check(earlier, states[first + 1])
        check(Snapshot.load(table.location), states[-1])
        updated = earlier.update()
        assert updated.version == last
        check(updated, states[-1])
        check(updated, states[-1])
        validate_checksum(updated)
