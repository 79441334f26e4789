"""
What an order's template reaches: a repository that is published, and the portal.

`publish` is the interpreter's ``publish:*``, with *ensure* semantics. Backstage's own action dies
on a second run ("409 Conflict", measured). Here a repository that already holds the same order is
the order; one that holds another order is a clear error. The XR is checked against the XRD before
the repository is even created.

`RegisteringPortal` registers orders in this process, and passes every other request on. The
template's steps ``http:backstage:request`` ask the portal's proxy for Orderkit's service: a POST to
``/proxy/orderkit/v1/orders``, and one that reads the YAML of the form if there is any, for
templates that write the order, which cannot parse (`answered_settings`). The steps run as they are
written; this portal only answers these two requests itself, with the status and the body that the
service would send, so that a step's outputs and errors are the same on both ways. Where the forge
does not let these credentials write the ledger, the request goes on to the service, which may have
the right.
"""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ground.errors import (
    AccessError,
    AlreadyOrderedError,
    ConflictError,
    InvalidInputError,
    OrderkitError,
)
from ground.names import CommitSha, OrderId, TeamName, blob_sha, check_label
from orderkit.core.kit.form_values import read_settings, yaml_roots
from orderkit.core.order import order_file
from orderkit.flows.order.registering import Registration, register
from orderkit.flows.order.registration_check import archived
from orderkit.flows.platform import Platform, published_kit
from orderkit.flows.template.actions.action_context import PublishRequest
from orderkit.ports.forge import FileChange, Forge, Operation, Repository, agent_notes
from orderkit.ports.portal import PortalResponse
from orderkit.ports.requesters import Requester

_HISTORY = 200


def operation(request: PublishRequest) -> Operation:
    """Name the write: the same files for the same repository are the same operation."""
    digest = hashlib.sha256(str(request.repo).encode())
    for path in sorted(request.files):
        mode = b"\0+x" if path in request.executable else b""
        digest.update(b"\0" + str(path).encode() + mode + b"\0" + request.files[path])
    return Operation(
        f"publish-{digest.hexdigest()[:20]}",
        request.requester,
        request.message,
        request.proof,
        agent_notes(request.agent),
    )


def publish(forge: Forge, request: PublishRequest, head: CommitSha | None = None) -> CommitSha:
    """
    Make sure the repository holds this order; return its head. Idempotent.

    Args:
        head: Of the repository, if it was read before and had one.

    Raises:
        AlreadyOrderedError: It holds something else, or was archived at its end.
        NotFoundError: The organisation does not exist.
        ConflictError: Others wrote in every round.
    """
    repository = forge.ensure_repo(
        request.repo, description=request.description, private=request.private, may_squash=False
    )
    if repository.archived:
        raise archived(request.repo)
    if not repository.empty:  # else the write finds out if somebody wrote meanwhile
        head = head or forge.head(request.repo)
    if head is None:
        return _first_commit(forge, request)
    return _same_order(forge, repository, request, head)


def _first_commit(forge: Forge, request: PublishRequest) -> CommitSha:
    try:
        return forge.write(request.repo, _new_files(request), operation(request)).commit
    except ConflictError:
        # Somebody placed an order of this name at the same moment: ours or another?
        head = forge.head(request.repo)
        repository = forge.repo(request.repo)
        if head is None or repository is None:
            raise
        return _same_order(forge, repository, request, head)


def _new_files(request: PublishRequest) -> list[FileChange]:
    return [
        FileChange(path, request.files[path], None, path in request.executable)
        for path in sorted(request.files)
    ]


def _same_order(
    forge: Forge, repository: Repository, request: PublishRequest, head: CommitSha
) -> CommitSha:
    revision = forge.read(request.repo, order_file.PATH, head)
    ours = request.files.get(order_file.PATH)
    if revision is None or ours is None:
        raise AlreadyOrderedError(
            f"{request.repo} exists and is not an order of ours",
            hint=f"look at {repository.web_url}, or order under another name",
        )
    old = order_file.parse(revision.data, name=f"{request.repo}/{order_file.PATH}")
    new = order_file.parse(ours, name=str(order_file.PATH))
    if not old.same_order(new):
        raise AlreadyOrderedError(
            f"{request.repo.name} was ordered by {old.requester} with other values: "
            f"{_differences(old, new)}",
            hint=_change_command(old, new) or f"see 'orderkit status {old.order}'",
        )
    return head


def _differences(old: order_file.OrderFile, new: order_file.OrderFile) -> str:
    keys = sorted({*old.ordered, *new.ordered})
    parts = [
        f"{key} was {old.ordered.get(key)!r}, asked for {new.ordered.get(key)!r}"
        for key in keys
        if old.ordered.get(key) != new.ordered.get(key)
    ]
    if old.kit != new.kit or old.team != new.team:
        parts.append(f"kit {old.kit} of team {old.team}")
    return "; ".join(parts)


def _change_command(old: order_file.OrderFile, new: order_file.OrderFile) -> str:
    """Return the command that changes the order; empty if another one was meant."""
    if (old.kit, old.team) != (new.kit, new.team):
        return ""
    edits = [
        f"{key}={value if isinstance(value, str) else json.dumps(value)}"
        for key, value in sorted(new.ordered.items())
        if old.ordered.get(key) != value
    ]
    return shlex.join(("orderkit", "change", old.order, *edits)) if edits else ""


def publish_files(forge: Forge, request: PublishRequest) -> CommitSha:
    """
    Make sure a repository was made from these files; return that commit. Idempotent.

    Raises:
        AlreadyOrderedError: It was made from something else.
    """
    repository = forge.ensure_repo(
        request.repo, description=request.description, private=request.private
    )
    if repository.archived:
        raise archived(request.repo)
    write = operation(request)
    branch = request.branch
    # not into another branch of what is there: it may be an order
    if repository.empty and forge.head(request.repo, branch) is None:
        return forge.write(request.repo, _new_files(request), write, branch=branch).commit
    for commit in forge.commits(request.repo, ref=branch, limit=_HISTORY):
        if commit.operation == write.id and _holds(forge, request, commit.id):
            return commit.id
    raise AlreadyOrderedError(
        f"{request.repo} exists and was not made from these files",
        hint=f"look at {repository.web_url}, or publish under another name; Backstage would "
        "fail with '409 Conflict'",
    )


def _holds(forge: Forge, request: PublishRequest, commit: CommitSha) -> bool:
    """Say whether a commit has exactly these files: anybody can write an operation's id."""
    tree = forge.tree(request.repo, commit)
    return dict(tree) == {
        path: blob_sha(data, tree.get(path, "")) for path, data in request.files.items()
    }


def answered_settings(platform: Platform, kit_name: str, text: object) -> dict[str, Any]:
    """
    Return what ``POST /v1/kits/{kit}/settings`` answers: the part of ``spec`` that a text sets.

    Raises:
        NotFoundError: The published pack has no such kit.
        InvalidInputError: The kit takes no YAML, or the text sets what it may not set.
    """
    kit = published_kit(platform, kit_name)
    roots = yaml_roots(kit)
    if not roots:
        raise InvalidInputError(
            "kit",
            kit_name,
            "has no yamlFields: its form takes no YAML",
            hint="write yamlFields into kit.yaml, then: orderkit kit generate",
        )
    return read_settings(kit, text, roots)


REGISTER_PATH = "/proxy/orderkit/v1/orders"
_SETTINGS_PATH = re.compile(r"/proxy/orderkit/v1/kits/(?P<kit>[a-z0-9-]{1,63})/settings")
_PROXY = "proxy/"
_FIELDS = ("order", "kit", "team")


@dataclass(frozen=True, slots=True)
class RegisteringPortal:
    """
    The platform's portal as the steps of one order see it.

    `authorization` goes along with requests to the portal's proxy that set none. `permit` raises
    unless the requester may order for the team. A `requester` without proof is a claim.
    """

    platform: Platform
    requester: Requester
    authorization: str = field(default="", repr=False)
    permit: Callable[[TeamName | None], None] = field(default=lambda _: None, repr=False)

    def request(
        self,
        method: str,
        path: str,
        *,
        headers: Mapping[str, str],
        body: bytes | None,
        timeout_s: float = 60.0,
    ) -> PortalResponse:
        """
        Register the order or read its YAML, or send any other request on.

        Raises:
            InvalidInputError: The YAML is refused.
        """
        settings = _SETTINGS_PATH.fullmatch(path) if method == "POST" else None
        if settings is not None:
            return self._read_settings(settings["kit"], body)
        registration = (
            self._registration(body) if (method, path) == ("POST", REGISTER_PATH) else None
        )
        if registration is not None:
            try:
                return self._registered(registration)
            except AccessError:
                if registration.agent:  # the service would take it for the person's own
                    raise
                # the ledger can be written by the service only: ask it
        names = {name.lower() for name in headers}
        proxied = path.lstrip("/").startswith(_PROXY)
        if self.authorization and proxied and "authorization" not in names:
            headers = {**headers, "Authorization": self.authorization}
        return self.platform.portal.request(
            method, path, headers=headers, body=body, timeout_s=timeout_s
        )

    def _registration(self, body: bytes | None) -> Registration | None:
        """Read what is asked for; None if it is anything but an order: the service says why."""
        try:
            fields = json.loads(body or b"")
        except ValueError:
            # the service says what is wrong with it
            return None
        if not isinstance(fields, dict) or not all(isinstance(fields.get(n), str) for n in _FIELDS):
            return None
        by = self.requester
        requester = by.ref if by.proof else str(fields.get("requester") or by.ref)
        team, order = TeamName(fields["team"]), OrderId(fields["order"])
        return Registration(order, fields["kit"], team, requester, by.proof, agent=by.agent)

    def _read_settings(self, kit: str, body: bytes | None) -> PortalResponse:
        try:
            fields = json.loads(body or b"{}")
        except ValueError:
            fields = None
        text = fields.get("text") if isinstance(fields, dict) else None
        return _answer(200, {"spec": answered_settings(self.platform, kit, text)})

    def _registered(self, registration: Registration) -> PortalResponse:
        try:
            for name in _FIELDS:  # as the service checks the body
                check_label(name, getattr(registration, name))
            self.permit(registration.team)
            registered = register(self.platform, registration)
        except AccessError:
            raise
        except OrderkitError as error:
            return _answer(
                error.http_status, {"error": {"message": str(error), "hint": error.hint}}
            )
        return _answer(201 if registered.changed else 200, registered.to_json())


def _answer(status: int, body: Mapping[str, Any]) -> PortalResponse:
    return PortalResponse(status, {"content-type": "application/json"}, json.dumps(body).encode())
