"""Who writes, as admission policies see it (``request.userInfo``). Rights are not checked."""

from __future__ import annotations

from dataclasses import dataclass

_PREFIX = "system:serviceaccount:"
_EVERYBODY = "system:authenticated"


@dataclass(frozen=True, slots=True)
class Account:
    """A user name with its groups."""

    name: str
    groups: tuple[str, ...] = (_EVERYBODY,)


def impersonated(name: str, groups: tuple[str, ...] = ()) -> Account:
    """Return the account that a request is for; a service account's groups follow its name."""
    parts = name.removeprefix(_PREFIX).split(":")
    if not groups and name.startswith(_PREFIX) and all(parts) and len(parts) == 2:  # noqa: PLR2004 - namespace and name
        groups = "system:serviceaccounts", f"system:serviceaccounts:{parts[0]}"
    return Account(name, tuple(dict.fromkeys((*groups, _EVERYBODY))))


ADMIN = Account("admin", ("system:masters", _EVERYBODY))
COLLECTOR = impersonated("system:serviceaccount:kube-system:generic-garbage-collector")
