"""What tests of variants share."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="module")
def decode(golden: Path) -> Callable[[bytes, bytes], Any]:
    """A decoder of the variant encoding that is not ours."""
    spec = importlib.util.spec_from_file_location("golden_digest_for_variants", golden / "digest.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    decoder: Callable[[bytes, bytes], Any] = module.decode_variant
    return decoder
