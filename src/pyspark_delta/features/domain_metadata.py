"""domainMetadata: named configurations that features and users store in the log (Domain Metadata; C198-C210).

A commit does not change the domains that it does not name.
"""

from __future__ import annotations

from pyspark_delta.protocol.draft import CommitDraft
from pyspark_delta.protocol.feature import TableFeature
from pyspark_delta.protocol.removal import Removal


class DomainMetadata(TableFeature):
    name = "domainMetadata"
    removal = Removal(all_domains=True)

    def can_rebase(self, draft: CommitDraft) -> bool:
        return True


FEATURE = DomainMetadata()
