"""The catalog contract as a test suite: classes for pytest that the tests of every catalog inherit.

`CatalogContract` is for every catalog; `catalog_cases` has one more class for each optional capability:

class TestMyCatalog(CatalogContract, StagedCommits):
    @pytest.fixture
    def setup(self): return CatalogSetup(make=...)
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from pyspark_delta.catalog.contract import LogTail, Ratification, TableInfo, TableName
from pyspark_delta.errors import (
    CatalogError,
    CatalogNameExistsError,
    CatalogNameNotFoundError,
    InvalidProposalError,
    RatificationConflictError,
    TableReplacedError,
)
from pyspark_delta.storage import normalize_location
from pyspark_delta.testing.catalog_tables import (
    START,
    CatalogSetup,
    commit_versions,
    create_table,
    new_table,
    propose,
    publish,
    raises,
    stage_table,
)


class CatalogContract:
    """The contract of every catalog."""

    def test_its_capabilities_are_those_that_are_tested(self, setup: CatalogSetup) -> None:
        tested = {kind.__dict__["capability"] for kind in type(self).__mro__ if "capability" in kind.__dict__}
        assert setup.make().capabilities == tested

    # -------------------------------------------------------------------------------------------------- schemas
    def test_schemas_are_made_listed_and_dropped(self, setup: CatalogSetup) -> None:
        catalog = setup.make()
        catalog.create_schema(setup.catalog, "another")
        assert setup.make().list_schemas(setup.catalog) == ["another", setup.schema]
        with raises(CatalogNameExistsError):
            catalog.create_schema(setup.catalog, "another")
        catalog.drop_schema(setup.catalog, "another")
        assert setup.make().list_schemas(setup.catalog) == [setup.schema]
        with raises(CatalogNameNotFoundError):
            catalog.drop_schema(setup.catalog, "another")
        with raises(CatalogNameNotFoundError):
            catalog.list_tables(setup.catalog, "another")
        with raises(CatalogNameNotFoundError):
            catalog.create_staging_table(TableName(setup.catalog, "another", "t"))
        catalog.create_schema(setup.catalog, "another")
        assert setup.make().list_tables(setup.catalog, "another") == []

    def test_a_schema_with_tables_is_not_dropped(self, setup: CatalogSetup) -> None:
        catalog = setup.make()
        table = create_table(setup, catalog)
        with raises(InvalidProposalError):
            catalog.drop_schema(setup.catalog, setup.schema)
        assert catalog.load_table(table.name).table_id == table.table_id

    # ------------------------------------------------------------------------------------------------- creating
    def test_c481_c482_a_table_is_made_at_a_location_and_then_named(self, setup: CatalogSetup) -> None:
        catalog, name = setup.make(), setup.name("t")
        staging, new = stage_table(setup, catalog, name)
        with raises(CatalogNameNotFoundError):
            catalog.load_table(name)
        made = catalog.create_table(staging, new)
        found = setup.make().load_table(name)
        assert found == made
        assert (found.table_id, found.name) == (staging.table_id, name)
        assert normalize_location(found.location) == normalize_location(staging.location)
        assert found.catalog_managed
        assert found.tail is not None
        assert (found.tail.latest_version, found.tail.commits) == (0, ())
        assert setup.make().list_tables(setup.catalog, setup.schema) == [name]

    def test_c481_creating_again_is_answered_as_the_first_time(self, setup: CatalogSetup) -> None:
        catalog = setup.make()
        staging, new = stage_table(setup, catalog, setup.name("t"))
        made = catalog.create_table(staging, new)
        assert setup.make().create_table(staging, new) == made
        commit_versions(setup, catalog, made, 1, 1)
        assert setup.make().create_table(staging, new).table_id == made.table_id
        assert setup.make().log_tail(made).latest_version == 1

    def test_c481_a_table_with_a_name_is_not_left_behind(self, setup: CatalogSetup) -> None:
        catalog = setup.make()
        table = create_table(setup, catalog)
        assert table.table_id not in {one.table_id for one in catalog.left_behind(2**62)}
        assert not catalog.drop_staging_table(table.table_id)
        assert setup.make().load_table(table.name) == table

    def test_of_several_that_create_a_name_one_does(self, setup: CatalogSetup) -> None:
        staged = [stage_table(setup, setup.make(), setup.name("t")) for _ in range(5)]
        assert len({staging.table_id for staging, _ in staged}) == 5
        assert len({staging.location for staging, _ in staged}) == 5
        with ThreadPoolExecutor(5) as pool:
            outcomes = list(pool.map(lambda pair: _outcome(lambda: setup.make().create_table(*pair)), staged))
        (made,) = [outcome for outcome in outcomes if isinstance(outcome, TableInfo)]
        assert [type(outcome) for outcome in outcomes].count(CatalogNameExistsError) == 4
        assert setup.make().load_table(setup.name("t")) == made
        with raises(CatalogNameExistsError):
            setup.make().create_staging_table(setup.name("t"))

    def test_c481_a_table_without_its_first_version_gets_no_name(self, setup: CatalogSetup) -> None:
        catalog = setup.make()
        staging = catalog.create_staging_table(setup.name("t"))
        with raises(CatalogError):
            catalog.create_table(staging, new_table(staging))
        assert catalog.list_tables(setup.catalog, setup.schema) == []

    def test_c449_c450_a_table_that_is_not_managed_gets_no_name(self, setup: CatalogSetup) -> None:
        catalog = setup.make()
        staging, new = stage_table(setup, catalog, setup.name("t"))
        features = frozenset({"inCommitTimestamp"})
        for wrong in (
            replace(new, protocol=replace(new.protocol, reader_features=frozenset(), writer_features=features)),
            replace(new, metadata=replace(new.metadata, configuration={})),
        ):
            with raises(CatalogError):
                catalog.create_table(staging, wrong)
        assert catalog.list_tables(setup.catalog, setup.schema) == []

    # ---------------------------------------------------------------------------------------------------- names
    def test_names_are_compared_without_case_and_kept_as_they_were(self, setup: CatalogSetup) -> None:
        catalog = setup.make()
        table = create_table(setup, catalog, "Orders")
        other = TableName(setup.catalog.upper(), setup.schema.upper(), "oRDERS")
        assert catalog.load_table(other).table_id == table.table_id
        assert catalog.list_tables(setup.catalog, setup.schema) == [setup.name("Orders")]
        with raises(CatalogNameExistsError):
            catalog.create_staging_table(other)
        with raises(CatalogNameNotFoundError):
            catalog.load_table(setup.name("Order"))

    def test_tables_are_listed_by_name(self, setup: CatalogSetup) -> None:
        catalog = setup.make()
        catalog.create_schema(setup.catalog, "another")
        for name in ("c", "a", "b"):
            create_table(setup, catalog, name)
        assert catalog.list_tables(setup.catalog, setup.schema) == [setup.name(name) for name in "abc"]
        assert catalog.list_tables(setup.catalog, "another") == []

    def test_a_renamed_table_is_the_same_table(self, setup: CatalogSetup) -> None:
        catalog = setup.make()
        table = create_table(setup, catalog, "old")
        catalog.rename_table(table.name, setup.name("new"))
        renamed = setup.make().load_table(setup.name("new"))
        assert renamed == replace(table, name=setup.name("new"), etag=renamed.etag)
        with raises(CatalogNameNotFoundError):
            setup.make().load_table(table.name)
        catalog.ratify(table, propose(setup, catalog, table, 1))  # opened under the old name
        assert setup.make().log_tail(renamed).latest_version == 1
        assert catalog.list_tables(setup.catalog, setup.schema) == [setup.name("new")]
        successor = create_table(setup, catalog, "old")
        assert successor.table_id != table.table_id
        with raises(CatalogNameExistsError):
            catalog.rename_table(renamed.name, successor.name)
        with raises(CatalogNameNotFoundError):
            catalog.rename_table(setup.name("nothing"), setup.name("something"))
        with raises(CatalogError):
            catalog.rename_table(renamed.name, TableName("elsewhere", setup.schema, "new"))
        assert setup.make().load_table(setup.name("new")).table_id == table.table_id

    def test_a_name_that_was_given_up_can_be_given_again(self, setup: CatalogSetup) -> None:
        catalog = setup.make()
        ids = []
        for _ in range(3):
            table = create_table(setup, catalog, "there")
            catalog.rename_table(table.name, setup.name("back"))
            catalog.rename_table(setup.name("back"), table.name)
            assert catalog.load_table(table.name).table_id == table.table_id
            catalog.drop_table(table.name)
            ids.append(table.table_id)
        assert len(set(ids)) == 3
        assert catalog.list_tables(setup.catalog, setup.schema) == []

    def test_c481_a_dropped_table_takes_no_commit_and_shows_none(self, setup: CatalogSetup) -> None:
        catalog = setup.make()
        table = create_table(setup, catalog)
        proposal = propose(setup, catalog, table, 1)
        catalog.drop_table(table.name)
        with raises(CatalogNameNotFoundError):
            catalog.load_table(table.name)
        with raises(CatalogNameNotFoundError):
            catalog.drop_table(table.name)
        successor = create_table(setup, catalog)
        assert successor.table_id != table.table_id
        assert successor.location != table.location
        for other in (catalog, setup.make()):
            with raises(TableReplacedError):
                other.ratify(table, proposal)
            with raises(TableReplacedError):
                other.log_tail(table)
        assert setup.make().log_tail(successor).latest_version == 0

    # -------------------------------------------------------------------------------------------------- commits
    def test_c469_versions_follow_one_another(self, setup: CatalogSetup) -> None:
        catalog = setup.make()
        table = create_table(setup, catalog)
        for version in (0, 2, 3, 2**62):
            with raises(CatalogError):
                catalog.ratify(table, propose(setup, catalog, table, version))
        assert setup.make().log_tail(table).latest_version == 0
        commit_versions(setup, catalog, table, 1, 2)
        assert setup.make().log_tail(table).latest_version == 2
        with raises(CatalogError):
            catalog.ratify(table, propose(setup, catalog, table, 4))
        assert setup.make().log_tail(table).latest_version == 2

    def test_c469_c471_a_version_is_ratified_once_and_the_loser_is_told_the_tail(self, setup: CatalogSetup) -> None:
        catalog = setup.make()
        table = create_table(setup, catalog)
        won = commit_versions(setup, catalog, table, 1, 2)
        for version in (1, 2):
            with raises(RatificationConflictError) as caught:
                setup.make().ratify(table, propose(setup, catalog, table, version))
            assert caught[0].version == version
            tail = caught[0].tail
            assert tail is None or tail == catalog.log_tail(table)
        assert setup.make().log_tail(table).latest_version == 2
        for proposal in won:
            assert setup.make().ratify(table, proposal).replayed

    def test_c469_the_same_proposal_again_changes_nothing(self, setup: CatalogSetup) -> None:
        catalog = setup.make()
        table = create_table(setup, catalog)
        proposal = propose(setup, catalog, table, 1)
        first = catalog.ratify(table, proposal)
        assert not first.replayed
        assert (first.commit.version, first.commit.timestamp) == (1, START + 1)
        again = setup.make().ratify(table, proposal)
        assert again.replayed
        assert again.commit.version == 1
        assert setup.make().log_tail(table).latest_version == 1
        commit_versions(setup, catalog, table, 2, 3)
        assert setup.make().ratify(table, proposal).replayed
        assert setup.make().log_tail(table).latest_version == 3

    def test_c469_a_commit_that_is_published_is_still_known(self, setup: CatalogSetup) -> None:
        catalog = setup.make()
        table = create_table(setup, catalog)
        proposals = [propose(setup, catalog, table, version) for version in (1, 2)]
        for proposal in proposals:
            publish(setup, table, catalog.ratify(table, proposal).commit)
        catalog.report_published(table, 2)
        for proposal in proposals:
            assert setup.make().ratify(table, proposal).replayed
            with raises(RatificationConflictError):
                catalog.ratify(table, propose(setup, catalog, table, proposal.version))

    def test_c469_of_several_at_once_exactly_one_is_ratified(self, setup: CatalogSetup) -> None:
        catalogs = [setup.make() for _ in range(6)]
        table = create_table(setup, catalogs[0])
        for version in range(1, 6):
            pairs = [(catalog, propose(setup, catalog, table, version)) for catalog in catalogs]
            with ThreadPoolExecutor(6) as pool:
                outcomes = list(pool.map(lambda pair: _outcome(lambda: pair[0].ratify(table, pair[1])), pairs))
            (won,) = [outcome for outcome in outcomes if isinstance(outcome, Ratification)]
            assert [type(outcome) for outcome in outcomes].count(RatificationConflictError) == 5
            assert setup.make().log_tail(table).latest_version == won.commit.version == version

    def test_c450_in_commit_timestamps_grow(self, setup: CatalogSetup) -> None:
        catalog = setup.make()
        table = create_table(setup, catalog)
        publish(setup, table, catalog.ratify(table, propose(setup, catalog, table, 1)).commit)
        for timestamp in (START + 1, START):
            with raises(InvalidProposalError):
                catalog.ratify(table, propose(setup, catalog, table, 2, timestamp=timestamp))
        assert setup.make().log_tail(table).latest_version == 1
        catalog.ratify(table, propose(setup, catalog, table, 2, timestamp=START + 2))

    def test_a_proposal_that_makes_no_sense_changes_nothing(self, setup: CatalogSetup) -> None:
        catalog = setup.make()
        table = create_table(setup, catalog)
        good = propose(setup, catalog, table, 1)
        for wrong in (
            replace(good, file=None, content=None),
            replace(good, version=-1),
            replace(good, version=2**63),
            replace(good, timestamp=-1),
            replace(good, published_version=1),
            replace(good, published_version=7),
        ):
            with raises(InvalidProposalError):
                catalog.ratify(table, wrong)
        assert setup.make().log_tail(table).latest_version == 0
        assert not catalog.ratify(table, good).replayed

    def test_c472_c462_a_name_is_resolved_with_the_tail(self, setup: CatalogSetup) -> None:
        catalog = setup.make()
        table = create_table(setup, catalog)
        commit_versions(setup, catalog, table, 1, 3)
        for other in (catalog, setup.make()):
            found = other.load_table(table.name)
            assert found.tail == other.log_tail(table)
            assert found.tail is not None
            assert found.tail.latest_version == 3
            _check_tail(found.tail)

    def test_c483_a_range_of_the_tail(self, setup: CatalogSetup) -> None:
        catalog = setup.make()
        table = create_table(setup, catalog)
        commit_versions(setup, catalog, table, 1, 5)
        whole = {commit.version: commit for commit in catalog.log_tail(table).commits}
        for start, end in (
            (None, None),
            (2, None),
            (None, 3),
            (2, 4),
            (5, 5),
            (6, None),
            (0, 0),
            (4, 2),
            (2**70, None),
        ):
            tail = catalog.log_tail(table, start, end)
            asked = [v for v in whole if (start is None or v >= start) and (end is None or v <= end)]
            assert [commit.version for commit in tail.commits] == asked
            assert tail.latest_version == 5

    def test_c474_published_commits_leave_the_tail(self, setup: CatalogSetup) -> None:
        catalog = setup.make()
        table = create_table(setup, catalog)
        for proposal in [propose(setup, catalog, table, version) for version in (1, 2, 3)]:
            publish(setup, table, catalog.ratify(table, proposal).commit)
        for version in (2, 1, 2, 3, 3, 0):
            catalog.report_published(table, version)
            tail = setup.make().log_tail(table)
            assert tail.latest_version == 3
            assert tail.published_version in (None, 2, 3)
            _check_tail(tail)
        assert setup.make().log_tail(table).commits == ()

    def test_what_is_not_ratified_is_not_published(self, setup: CatalogSetup) -> None:
        catalog = setup.make()
        table = create_table(setup, catalog)
        commit_versions(setup, catalog, table, 1, 1)
        before = catalog.log_tail(table)
        for version in (2, 2**62):
            with raises(CatalogError):
                catalog.report_published(table, version)
        assert setup.make().log_tail(table) == before

    def test_two_tables_do_not_meet(self, setup: CatalogSetup) -> None:
        catalog = setup.make()
        first, second = create_table(setup, catalog, "first"), create_table(setup, catalog, "second")
        commit_versions(setup, catalog, first, 1, 2)
        commit_versions(setup, catalog, second, 1, 1)
        assert setup.make().log_tail(first).latest_version == 2
        assert setup.make().log_tail(second).latest_version == 1
        catalog.drop_table(first.name)
        assert setup.make().log_tail(second).latest_version == 1


def _check_tail(tail: LogTail) -> None:
    versions = [commit.version for commit in tail.commits]
    assert versions == list(range(tail.latest_version - len(versions) + 1, tail.latest_version + 1))


def _outcome(call: Callable[[], object]) -> object:
    try:
        return call()
    except CatalogError as error:
        return error
