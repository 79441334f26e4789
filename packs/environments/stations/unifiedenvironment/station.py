"""The stations of a unified environment, by the names in the Composition."""

from __future__ import annotations

from .backend import backend
from .database import database
from .foundation import foundation
from .frontends import frontends

stations = {
    "foundation": foundation,
    "database": database,
    "backend": backend,
    "frontends": frontends,
}
