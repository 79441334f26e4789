"""
platform.yaml as the installed service reads it, and the files that settings name.

The Pods read the same settings as the person who bootstraps. Each file that a setting names becomes
an entry of one Secret, under the setting's own name, such as ``forge.tokenFile``. Settings and
Secret lie in one folder, so the paths are names. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath
from typing import Any, TypeVar

import msgspec

from ground.shapes import changed
from orderkit.core.platform.settings import PlatformSettings

KUBECONFIG = PurePath("kubeconfig")
T = TypeVar("T")


def mounted_settings(settings: PlatformSettings) -> tuple[PlatformSettings, dict[str, PurePath]]:
    """
    Return the settings as the Pods read them, and the files of their Secret by entry.

    What only a bootstrap reads is left out.
    """
    forge = changed(settings.forge, read_token_file=None, team_token_folder=None, argocd_app=None)
    files: dict[str, PurePath] = {}
    inside = changed(
        settings,
        forge=forge,
        service=changed(settings.service, install=None),
        cluster=changed(settings.cluster, kubeconfig=KUBECONFIG, context=""),
    )
    return _mounted(inside, (), files), files


def named_files(settings: PlatformSettings) -> dict[str, PurePath]:
    """Return the files that settings name, by the names of the settings."""
    files: dict[str, PurePath] = {}
    _mounted(settings, (), files)
    return files


def _mounted(value: T, name: tuple[str, ...], files: dict[str, PurePath]) -> T:
    """Replace each path by the name of its setting, and note the file."""
    made: Any = value
    if isinstance(value, PurePath) and value != KUBECONFIG:
        key = ".".join(name)
        files[key] = value
        made = PurePath(key)
    elif isinstance(value, msgspec.Struct):
        parts = {
            each.name: _mounted(getattr(value, each.name), (*name, each.encode_name), files)
            for each in msgspec.structs.fields(value)
        }
        made = changed(value, **parts)
    elif isinstance(value, Mapping):
        made = {k: _mounted(part, (*name, str(k)), files) for k, part in value.items()}
    elif isinstance(value, tuple):
        made = tuple(_mounted(part, (*name, str(i)), files) for i, part in enumerate(value))
    return made  # type: ignore[no-any-return]  # of the value's own type
