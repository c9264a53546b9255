"""adaptiveMetadata-preview: a tree of manifests in place of checkpoints (a proposal to the protocol)."""

from __future__ import annotations

from pyspark_delta.protocol.feature import FeatureKind, TableFeature


class AdaptiveMetadata(TableFeature):
    name = "adaptiveMetadata-preview"
    kind = FeatureKind.READER_WRITER
    preview_names = ("adaptiveMetadata",)
    read_unsupported_reason = (
        "The list of its files is kept in a tree of manifests that is still being designed. Read it with the engine "
        "that wrote it."
    )
    write_unsupported_reason = read_unsupported_reason


FEATURE = AdaptiveMetadata()
