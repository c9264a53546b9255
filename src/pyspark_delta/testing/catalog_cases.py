"""The catalog contract, continued: a class for each optional capability of a catalog; see `CatalogContract`."""

from __future__ import annotations

import uuid
from dataclasses import replace

from pyspark_delta.actions.model import DomainMetadata, Metadata
from pyspark_delta.catalog.cleaning import remove_left_behind
from pyspark_delta.catalog.contract import Capability, CommitKind, MetadataChange, Proposal, StagedFile
from pyspark_delta.catalog.log_tail import published_path
from pyspark_delta.errors import (
    CatalogError,
    FileNotFoundInStoreError,
    InvalidProposalError,
    RatificationConflictError,
    StaleMetadataError,
    TableReplacedError,
    TooManyUnpublishedError,
)
from pyspark_delta.storage import normalize_location
from pyspark_delta.storage.paths import join
from pyspark_delta.testing.catalog_tables import (
    SCHEMA,
    START,
    CatalogSetup,
    commit_content,
    commit_versions,
    create_table,
    fresh,
    propose,
    publish,
    raises,
    stage,
    stage_table,
    write_first_commit,
)


class StagedCommits:
    """For catalogs that ratify staged commits."""

    capability = Capability.STAGED

    def test_c455_c470_the_tail_says_where_a_staged_commit_is(self, setup: CatalogSetup) -> None:
        catalog, table = fresh(setup)
        (proposal,) = commit_versions(setup, catalog, table, 1, 1)
        (commit,) = setup.make().log_tail(table).commits
        assert proposal.file is not None
        assert (commit.version, commit.kind, commit.timestamp) == (1, CommitKind.STAGED, START + 1)
        assert (commit.file_name, commit.size) == (proposal.file.name, proposal.file.size)
        assert commit.modification_time == proposal.file.modification_time

    def test_c446_a_staged_file_is_of_one_version(self, setup: CatalogSetup) -> None:
        catalog, table = fresh(setup)
        commit_versions(setup, catalog, table, 1, 1)
        proposal = propose(setup, catalog, table, 2)
        other = stage(setup, table, 1, commit_content(1, str(uuid.uuid4())))
        with raises(CatalogError):
            catalog.ratify(table, replace(proposal, file=other))
        assert setup.make().log_tail(table).latest_version == 1

    def test_c453_a_staged_file_must_be_there_and_whole(self, setup: CatalogSetup) -> None:
        catalog, table = fresh(setup)
        proposal = propose(setup, catalog, table, 1)
        assert proposal.file is not None
        missing = StagedFile(f"{1:020d}.{uuid.uuid4()}.json", proposal.file.size, proposal.file.modification_time)
        for file in (missing, replace(proposal.file, size=proposal.file.size + 1), replace(proposal.file, size=0)):
            with raises(InvalidProposalError):
                catalog.ratify(table, replace(proposal, file=file))
        assert setup.make().log_tail(table).latest_version == 0

    def test_c445_a_file_name_leads_nowhere_else(self, setup: CatalogSetup) -> None:
        catalog, table = fresh(setup)
        proposal = propose(setup, catalog, table, 1)
        assert proposal.file is not None
        good = proposal.file.name
        for name in (
            "",
            ".",
            "..",
            f"../{good}",
            f"../../_delta_log/_staged_commits/{good}",
            f"./{good}",
            f"/{good}",
            f"x/{good}",
            f"{good}/",
            f"{good}\0",
            f"{good}\n",
            good.replace(".json", ".parquet"),
            f"{1:020d}.json",
            f"{1:020d}.{'x' * 36}.json",
            f"..\\{good}",
            f"%2e%2e%2f{good}",
            "a" * 100_000,
            "'; DROP TABLE dl_commit; --",
        ):
            with raises(InvalidProposalError):
                catalog.ratify(table, replace(proposal, file=replace(proposal.file, name=name)))
        assert setup.make().log_tail(table).latest_version == 0

    def test_c474_a_table_has_a_limit_of_unpublished_commits(self, setup: CatalogSetup) -> None:
        catalog, table = fresh(setup)
        limit = setup.max_unpublished
        commit_versions(setup, catalog, table, 1, limit)
        further = propose(setup, catalog, table, limit + 1)
        with raises(TooManyUnpublishedError):
            catalog.ratify(table, further)
        tail = setup.make().log_tail(table)
        assert [commit.version for commit in tail.commits] == list(range(1, limit + 1))
        publish(setup, table, tail.commits[0])
        catalog.report_published(table, 1)
        assert not catalog.ratify(table, further).replayed
        for commit in tail.commits[1:]:
            publish(setup, table, commit)
        last = replace(propose(setup, catalog, table, limit + 2), published_version=limit)
        assert not catalog.ratify(table, last).replayed  # the error contains the new log tail
        found = setup.make().log_tail(table)
        assert [commit.version for commit in found.commits] == [limit + 1, limit + 2]

    def test_c473_a_commit_is_published_only_when_its_file_is_there(self, setup: CatalogSetup) -> None:
        catalog, table = fresh(setup)
        commit_versions(setup, catalog, table, 1, 3)
        first, _, third = catalog.log_tail(table).commits
        publish(setup, table, first)
        publish(setup, table, third)
        for version in (2, 3):
            with raises(InvalidProposalError):
                catalog.report_published(table, version)
        with raises(InvalidProposalError):
            catalog.ratify(table, replace(propose(setup, catalog, table, 4), published_version=3))
        tail = setup.make().log_tail(table)
        assert (tail.latest_version, [commit.version for commit in tail.commits]) == (3, [1, 2, 3])

    def test_c453_a_replay_is_known_when_its_staged_file_is_gone(self, setup: CatalogSetup) -> None:
        catalog, table = fresh(setup)
        (proposal,) = commit_versions(setup, catalog, table, 1, 1)
        publish(setup, table, catalog.log_tail(table).commits[0])
        catalog.report_published(table, 1)
        assert proposal.file is not None
        location = normalize_location(table.location)
        setup.store(location).delete([join(location, "_delta_log", "_staged_commits", proposal.file.name)])
        assert setup.make().ratify(table, proposal).replayed


class InlineCommits:
    """For catalogs that ratify inline commits."""

    capability = Capability.INLINE

    def test_c454_c470_the_catalog_keeps_an_inline_commit_until_it_is_published(self, setup: CatalogSetup) -> None:
        catalog, table = fresh(setup)
        proposal = self.propose(1)
        catalog.ratify(table, proposal)
        tail = setup.make().log_tail(table)
        (commit,) = tail.commits
        assert (commit.kind, commit.content, commit.file_name) == (CommitKind.INLINE, proposal.content, None)
        assert commit.transaction_id == proposal.transaction_id
        assert setup.make().load_table(table.name).tail == tail
        publish(setup, table, commit)
        catalog.report_published(table, 1)
        assert setup.make().log_tail(table).commits == ()
        replay = setup.make().ratify(table, proposal)
        assert replay.replayed
        assert replay.commit.kind is CommitKind.PUBLISHED
        with raises(RatificationConflictError):
            catalog.ratify(table, self.propose(1))

    def test_c444_staged_and_inline_commits_mix(self, setup: CatalogSetup) -> None:
        catalog, table = fresh(setup)
        catalog.ratify(table, self.propose(1))
        commit_versions(setup, catalog, table, 2, 2)
        catalog.ratify(table, self.propose(3))
        kinds = [commit.kind for commit in setup.make().log_tail(table).commits]
        assert kinds == [CommitKind.INLINE, CommitKind.STAGED, CommitKind.INLINE]

    def test_c454_an_inline_commit_is_small(self, setup: CatalogSetup) -> None:
        catalog, table = fresh(setup)
        largest = replace(self.propose(1), content=b"x" * 65536)
        with raises(InvalidProposalError):
            catalog.ratify(table, replace(largest, content=b"x" * 65537))
        staged = propose(setup, catalog, table, 1)
        with raises(InvalidProposalError):
            catalog.ratify(table, replace(staged, content=b"both"))
        catalog.ratify(table, largest)
        assert setup.make().log_tail(table).commits[0].content == largest.content

    @staticmethod
    def propose(version: int) -> Proposal:
        """Return an inline proposal."""
        identity = str(uuid.uuid4())
        content = commit_content(version, identity)
        return Proposal(version=version, timestamp=START + version, transaction_id=identity, content=content)


class PublishedCommits:
    """For catalogs that ratify by put-if-absent of the published file."""

    capability = Capability.PUT_IF_ABSENT

    def test_c456_c457_a_commit_is_published_by_being_ratified(self, setup: CatalogSetup) -> None:
        catalog, table = fresh(setup)
        proposal = propose(setup, catalog, table, 1)
        commit = catalog.ratify(table, proposal).commit
        assert commit.kind is CommitKind.PUBLISHED
        path = published_path(table.location, 1)
        assert setup.store(path).read(path) == proposal.content
        tail = setup.make().log_tail(table)
        assert (tail.latest_version, tail.commits, tail.published_version) == (1, (), 1)

    def test_c456_the_content_is_asked_for(self, setup: CatalogSetup) -> None:
        catalog, table = fresh(setup)
        proposal = propose(setup, catalog, table, 1)
        file = stage(setup, table, 1, proposal.content or b"")
        with raises(InvalidProposalError):
            catalog.ratify(table, replace(proposal, content=None, file=file))
        assert setup.make().log_tail(table).latest_version == 0

    def test_c469_the_latest_version_has_no_gap_before_it(self, setup: CatalogSetup) -> None:
        catalog, table = fresh(setup)
        commit_versions(setup, catalog, table, 1, 2)
        stray = published_path(table.location, 4)
        setup.store(stray).write(stray, commit_content(4, "stray"))
        assert setup.make().log_tail(table).latest_version == 2
        commit_versions(setup, catalog, table, 3, 3)
        assert setup.make().log_tail(table).latest_version == 4

    def test_c080_the_hint_alone_proves_nothing(self, setup: CatalogSetup) -> None:
        catalog, table = fresh(setup)
        commit_versions(setup, catalog, table, 1, 3)
        hint = join(table.location, "_delta_log", "_last_checkpoint")
        for content in (b'{"version":2,"size":1}', b'{"version":100,"size":1}', b"broken"):
            setup.store(hint).write(hint, content)
            assert setup.make().log_tail(table).latest_version == 3


class SoftDrops:
    """For catalogs that keep the files of dropped tables until they are purged."""

    capability = Capability.SOFT_DROP

    def test_c481_dropped_tables_are_known_until_they_are_purged(self, setup: CatalogSetup) -> None:
        catalog = setup.make()
        first, second = create_table(setup, catalog, "first"), create_table(setup, catalog, "second")
        commit_versions(setup, catalog, first, 1, 1)
        catalog.drop_table(first.name)
        catalog.drop_table(second.name)
        dropped = setup.make().dropped_tables(2**62)
        assert {(table.table_id, table.name, table.location) for table in dropped} == {
            (table.table_id, table.name, table.location) for table in (first, second)
        }
        assert [table.dropped_at for table in dropped] == sorted(table.dropped_at for table in dropped)
        assert catalog.dropped_tables(dropped[0].dropped_at) == []
        path = published_path(first.location, 0)
        assert setup.store(path).read(path)
        for _ in range(2):
            catalog.forget_dropped(first.table_id)
            assert [table.table_id for table in setup.make().dropped_tables(2**62)] == [second.table_id]

    def test_a_table_with_a_name_is_not_forgotten(self, setup: CatalogSetup) -> None:
        catalog, table = fresh(setup)
        with raises(InvalidProposalError):
            catalog.forget_dropped(table.table_id)
        assert catalog.load_table(table.name) == table

    def test_a_dropped_table_is_not_created_again(self, setup: CatalogSetup) -> None:
        catalog = setup.make()
        staging, new = stage_table(setup, catalog, setup.name("t"))
        catalog.create_table(staging, new)
        catalog.drop_table(staging.name)
        with raises(CatalogError):
            catalog.create_table(staging, new)
        assert catalog.list_tables(setup.catalog, setup.schema) == []


class RememberedStaging:
    """For catalogs that store staging tables until they are created or removed."""

    def test_c481_what_was_left_behind_is_known(self, setup: CatalogSetup) -> None:
        catalog = setup.make()
        staged = [catalog.create_staging_table(setup.name(name)) for name in ("a", "b")]
        found = setup.make().left_behind(2**62)
        assert {(one.table_id, one.name, one.location) for one in found} == {
            (one.table_id, one.name, one.location) for one in staged
        }
        assert [one.created_at for one in found] == sorted(one.created_at for one in found)
        assert catalog.left_behind(found[0].created_at) == []
        assert catalog.left_behind(0) == []

    def test_c481_what_was_left_behind_is_removed_and_gets_no_name(self, setup: CatalogSetup) -> None:
        catalog = setup.make()
        made = create_table(setup, catalog, "made")
        staging, new = stage_table(setup, catalog, setup.name("t"))
        path = published_path(normalize_location(staging.location), 0)
        assert remove_left_behind(catalog, 0) == []
        assert setup.store(path).read(path)
        assert [one.location for one in remove_left_behind(setup.make(), 2**62)] == [staging.location]
        with raises(FileNotFoundInStoreError):
            setup.store(path).status(path)
        write_first_commit(setup, staging, new)  # by a creator that is not aware of it
        with raises(CatalogError):
            setup.make().create_table(staging, new)
        assert catalog.list_tables(setup.catalog, setup.schema) == [made.name]
        assert remove_left_behind(catalog, 2**62) == []
        assert catalog.dropped_tables(2**62) == []

    def test_c481_who_comes_too_late_is_told_so(self, setup: CatalogSetup) -> None:
        catalog = setup.make()
        staging, new = stage_table(setup, catalog, setup.name("t"))
        assert setup.make().drop_staging_table(staging.table_id)
        assert not catalog.drop_staging_table(staging.table_id)
        with raises(TableReplacedError):
            catalog.create_table(staging, new)
        assert [table.location for table in catalog.dropped_tables(2**62)] == [staging.location]


class KeptMetadata:
    """For catalogs that keep a copy of protocol, metadata and domains."""

    def test_c461_an_etag_changes_with_the_metadata(self, setup: CatalogSetup) -> None:
        catalog, table = fresh(setup)
        staging_properties = dict(table.properties)
        assert staging_properties["delta.enableInCommitTimestamps"] == "true"
        catalog.ratify(table, propose(setup, catalog, table, 1))
        assert setup.make().load_table(table.name).etag == table.etag
        changed = {**staging_properties, "delta.appendOnly": "true"}
        metadata = Metadata(id=str(uuid.uuid4()), schema_string=SCHEMA, configuration=changed)
        proposal = replace(propose(setup, catalog, table, 2), change=MetadataChange(metadata=metadata))
        with raises(StaleMetadataError):
            catalog.ratify(table, replace(proposal, expected_etag="another"))
        assert setup.make().log_tail(table).latest_version == 1
        catalog.ratify(table, replace(proposal, expected_etag=table.etag))
        found = setup.make().load_table(table.name)
        assert found.etag != table.etag
        assert found.properties == changed
        assert setup.make().ratify(table, replace(proposal, expected_etag=table.etag)).replayed
        assert setup.make().load_table(table.name).etag == found.etag
        with raises(StaleMetadataError):
            catalog.ratify(table, replace(propose(setup, catalog, table, 3), expected_etag=table.etag))
        domain = DomainMetadata(domain="delta.clustering", configuration="{}")
        catalog.ratify(table, replace(propose(setup, catalog, table, 3), change=MetadataChange(domains=(domain,))))
        assert setup.make().load_table(table.name).etag != found.etag
