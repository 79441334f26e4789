"""
One lab for these modules, in this order: first empty, then bootstrapped, then upgraded.

They run on one worker (``tests/workers.py``), one after the other.
"""

from __future__ import annotations

from collections.abc import Iterator

import labplatform
import pytest
from labplatform import LabPlatform


@pytest.fixture(scope="package")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabPlatform]:
    with labplatform.serving(tmp_path_factory.mktemp("lab")) as found:
        yield found
