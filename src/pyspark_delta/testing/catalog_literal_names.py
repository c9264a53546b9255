"""More of the catalog contract: names are used literally or refused, whatever characters they have."""

from __future__ import annotations

from pyspark_delta.errors import InvalidProposalError
from pyspark_delta.storage import normalize_location
from pyspark_delta.storage.paths import parent
from pyspark_delta.testing.catalog_tables import CatalogSetup, commit_versions, create_table, fresh, raises

LITERAL_NAMES = (
    "'; DROP TABLE dl_table; --",
    "x' OR '1'='1",
    'say "hi"',
    "`x`",
    "a.b.c",
    "../../etc/passwd",
    "a/b\\c",
    "a%b",
    "a_b",
    "a b",
    "%",
    "_",
    ":name",
    "%(name)s",
    "{name}",
    "?",
    "null",
    "\u00fcber",
    "\u4e2d\u6587",
    "\U0001f600",
    "n" * 80,
)
REFUSED_NAMES = ("", "  ", "a\0b", "a\nb", "\x7f", "\ud800", "n" * 256, "\u4e2d" * 86, "n" * 10_000_000)


class LiteralNames:
    """For catalogs that use names literally, whatever characters they contain."""

    def test_names_are_taken_literally(self, setup: CatalogSetup) -> None:
        catalog = setup.make()
        tables = {}
        for name in LITERAL_NAMES:
            tables[name] = create_table(setup, catalog, name)
            commit_versions(setup, catalog, tables[name], 1, 1)
            assert parent(normalize_location(tables[name].location)) == parent(tables[LITERAL_NAMES[0]].location)
        for name, table in tables.items():
            found = setup.make().load_table(setup.name(name))
            assert (found.table_id, found.name.name) == (table.table_id, name)
        assert catalog.list_tables(setup.catalog, setup.schema) == sorted(table.name for table in tables.values())
        for name in LITERAL_NAMES:
            catalog.drop_table(setup.name(name))
        assert catalog.list_tables(setup.catalog, setup.schema) == []

    def test_schemas_are_taken_literally(self, setup: CatalogSetup) -> None:
        catalog = setup.make()
        for name in LITERAL_NAMES:
            catalog.create_schema(setup.catalog, name)
            assert catalog.list_tables(setup.catalog, name) == []
        assert catalog.list_schemas(setup.catalog) == sorted([setup.schema, *LITERAL_NAMES])

    def test_text_that_is_no_name_is_refused(self, setup: CatalogSetup) -> None:
        catalog, table = fresh(setup)
        for name in REFUSED_NAMES:
            with raises(InvalidProposalError) as caught:
                catalog.create_staging_table(setup.name(name))
            assert len(str(caught[0])) < 500
            for call in (catalog.load_table, catalog.drop_table):
                with raises(InvalidProposalError):
                    call(setup.name(name))
            with raises(InvalidProposalError):
                catalog.create_schema(setup.catalog, name)
            with raises(InvalidProposalError):
                catalog.list_tables(setup.catalog, name)
            with raises(InvalidProposalError):
                catalog.list_schemas(name)
            with raises(InvalidProposalError):
                catalog.rename_table(table.name, setup.name(name))
        assert catalog.list_tables(setup.catalog, setup.schema) == [table.name]
