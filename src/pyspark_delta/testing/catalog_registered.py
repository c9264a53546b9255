"""The catalog contract, continued: registered tables, which the catalog names but does not manage."""

from __future__ import annotations

import uuid
from dataclasses import replace

from pyspark_delta.actions.model import DomainMetadata, Protocol
from pyspark_delta.catalog.contract import Capability, MetadataChange, TableInfo
from pyspark_delta.catalog.log_tail import published_path
from pyspark_delta.errors import CatalogError, CatalogNameExistsError, InvalidProposalError, TableReplacedError
from pyspark_delta.storage import normalize_location
from pyspark_delta.storage.paths import join, parent
from pyspark_delta.testing.catalog_tables import CatalogSetup, commit_content, fresh, new_table, propose, raises


class Registering:
    """For catalogs that can name tables that no catalog manages."""

    capability = Capability.REGISTER

    def test_c482_a_registered_table_is_not_managed(self, setup: CatalogSetup) -> None:
        catalog, location = setup.make(), self.path_table(setup)
        made = catalog.register_table(setup.name("r"), location)
        found = setup.make().load_table(setup.name("r"))
        assert found == made
        assert (found.location, found.catalog_managed, found.tail) == (location, False, None)
        assert catalog.list_tables(setup.catalog, setup.schema) == [setup.name("r")]
        with raises(InvalidProposalError):
            catalog.ratify(found, propose(setup, catalog, found, 1))
        with raises(CatalogNameExistsError):
            catalog.register_table(setup.name("R"), self.path_table(setup))
        with raises(CatalogNameExistsError):
            catalog.create_staging_table(setup.name("r"))

    def test_a_registered_table_loses_nothing_but_its_name(self, setup: CatalogSetup) -> None:
        catalog, location = setup.make(), self.path_table(setup)
        catalog.register_table(setup.name("r"), location)
        catalog.rename_table(setup.name("r"), setup.name("s"))
        catalog.drop_table(setup.name("s"))
        assert catalog.list_tables(setup.catalog, setup.schema) == []
        assert catalog.dropped_tables(2**62) == []
        path = published_path(location, 0)
        assert setup.store(path).read(path)
        assert catalog.register_table(setup.name("s"), location).location == location

    def test_only_tables_are_registered_and_none_of_those_that_are_managed(self, setup: CatalogSetup) -> None:
        catalog, table = fresh(setup)
        nothing = join(parent(self.path_table(setup)), "nothing")
        for location in (nothing, "", "\0", "unknown://x/y", table.location):
            with raises(CatalogError):
                catalog.register_table(setup.name("r"), location)
        assert catalog.list_tables(setup.catalog, setup.schema) == [table.name]

    def path_table(self, setup: CatalogSetup) -> str:
        return path_table(setup)


class MirroredTables:
    """For catalogs that keep a copy of the metadata of registered tables."""

    capability = Capability.MIRROR

    def test_a_registered_table_is_shown_as_it_was_described(self, setup: CatalogSetup) -> None:
        table, properties = self._registered(setup)
        assert not table.catalog_managed
        assert table.properties == properties

    def test_later_changes_are_shown_and_older_ones_change_nothing(self, setup: CatalogSetup) -> None:
        table, properties = self._registered(setup)
        catalog, metadata = setup.make(), new_table(setup.make().create_staging_table(setup.name("x"))).metadata
        clustering = DomainMetadata(domain="delta.clustering", configuration='{"clusteringColumns":[["id"]]}')
        for version, added in ((2, {"mine": "1"}), (1, {"mine": "0"}), (2, {"mine": "0"}), (3, {})):
            changed = replace(metadata, configuration={**properties, **added})
            change = MetadataChange(metadata=changed, domains=(clustering,) if version == 3 else ())
            catalog.report_change(table, version, 5000 + version, change)
            newest = {**properties, "mine": "1"} if version < 3 else properties
            assert setup.make().load_table(table.name).properties == newest
        assert setup.make().load_table(table.name).tail is None

    def test_changes_of_other_tables_are_refused(self, setup: CatalogSetup) -> None:
        table, _ = self._registered(setup)
        catalog, managed = fresh(setup, "managed")
        change = MetadataChange(metadata=new_table(catalog.create_staging_table(setup.name("x"))).metadata)
        with raises(InvalidProposalError):
            catalog.report_change(managed, 1, 5000, change)
        catalog.drop_table(table.name)
        with raises(TableReplacedError):
            catalog.report_change(table, 1, 5000, change)

    def _registered(self, setup: CatalogSetup) -> tuple[TableInfo, dict[str, str]]:
        """Return a registered table, and the properties that it was described with."""
        catalog = setup.make()
        new = new_table(catalog.create_staging_table(setup.name("r")))
        properties = {"owner": "ada", "delta.appendOnly": "true"}
        metadata, protocol = (
            replace(new.metadata, configuration=properties),
            Protocol(min_reader_version=1, min_writer_version=2),
        )
        described = replace(new, metadata=metadata, protocol=protocol)
        return catalog.register_table(setup.name("r"), path_table(setup), described), properties


def path_table(setup: CatalogSetup) -> str:
    """Return the location of a new table beside those that the catalog manages."""
    staging = setup.make().create_staging_table(setup.name("only_for_its_location"))
    location = join(parent(normalize_location(staging.location)), f"path-{uuid.uuid4().hex}")
    path = published_path(location, 0)
    setup.store(path).write(path, commit_content(0, "first", new_table(staging).metadata))
    return location
