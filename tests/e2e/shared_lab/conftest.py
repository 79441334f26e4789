"""
One bootstrapped lab for all modules here, each with teams of its own.

They run on one worker (``tests/workers.py``), one after the other.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import labplatform
import pytest
from labplatform import ServedLab, bootstrapped, with_portal_and_service

from orderkit.cli.connecting import connect, load_settings


@pytest.fixture(scope="package")
def served_lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedLab]:
    """The reference pack, no teams, and the portal and service that orders and ends need."""
    with contextlib.ExitStack() as undo:
        lab = undo.enter_context(labplatform.serving(tmp_path_factory.mktemp("lab"), teams=()))
        with bootstrapped(lab):
            pass
        file = with_portal_and_service(lab, undo)
        yield ServedLab(lab, connect(load_settings(str(file))), file)
