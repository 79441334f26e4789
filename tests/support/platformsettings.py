"""Other settings of a platform, for tests."""

from __future__ import annotations

from typing import Any

from ground.shapes import changed
from orderkit.core.platform.installation import Installation
from orderkit.core.platform.settings import PlatformSettings


def settings_with(
    settings: PlatformSettings, installation: Installation | None = None, **changes: Any
) -> PlatformSettings:
    """Return `settings` with changed fields: ``service__url`` is a field of the section service."""
    if installation is not None:
        settings = settings.on(installation)
    for name, value in changes.items():
        section, _, field = name.partition("__")
        part = changed(getattr(settings, section), **{field: value}) if field else value
        settings = changed(settings, **{section: part})
    return settings
