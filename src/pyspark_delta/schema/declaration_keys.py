"""The keys in the metadata of fields under which Delta declares what SQL writes beside a column."""

from __future__ import annotations

COMMENT = "comment"
CURRENT_DEFAULT = "CURRENT_DEFAULT"
EXISTS_DEFAULT = "EXISTS_DEFAULT"
GENERATION_EXPRESSION = "delta.generationExpression"

IDENTITY_START = "delta.identity.start"
IDENTITY_STEP = "delta.identity.step"
IDENTITY_MARK = "delta.identity.highWaterMark"
IDENTITY_ALLOW_EXPLICIT_INSERT = "delta.identity.allowExplicitInsert"
