"""
Git over HTTP: the smart protocol, served by the real ``git`` in stateless mode.

Answers of upload-pack are streamed. Hooks, dumb HTTP and LFS are not served. A push without
the right ends at once with 403; Gitea lets it come as far as its pre-receive hook.

A push is held back until the rules of the branches it wants to move were asked (`check_push`).
Gitea does this in a hook that git runs between receiving objects and moving references. Here the
list of references at the head of the request is read first; a refused push is answered in git's own
words for a declined hook, and nothing of it stays in the repository. That a protected branch is not
rewritten is git's own check (``receive.denyNonFastForwards``).
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import subprocess
import tempfile
import zlib
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import IO

from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from ground.errors import shorten
from orderkit_standins.forge import git_read, protections
from orderkit_standins.forge.accounts import Account, Actor
from orderkit_standins.forge.api.access import Access, Right, require_scope
from orderkit_standins.forge.api.branch_updates import BranchRules, BranchUpdates
from orderkit_standins.forge.api.calls import ApiError
from orderkit_standins.forge.api.webhook_events import NO_COMMIT
from orderkit_standins.forge.git_program import GitProgram
from orderkit_standins.forge.repositories import Repositories, Repository

_BAND_MAX = 60_000
"""A packet of `side-band-64k` has at most 65,520 bytes."""


@dataclass(frozen=True, slots=True)
class Command:
    """One ref update that a push asks for."""

    old: str
    new: str
    ref: str


def read_commands(spool: IO[bytes]) -> list[Command]:
    """Return the ref updates at the head of a receive-pack request; malformed ones end the list."""
    spool.seek(0)
    commands: list[Command] = []
    while True:
        head = spool.read(4)
        try:
            length = int(head, 16)
        except ValueError:
            return commands
        if length <= len(head):
            return commands
        words = spool.read(length - len(head)).split(b"\0")[0].decode(errors="replace").split()
        match words:
            case [old, new, ref]:
                commands.append(Command(old, new, ref))


@dataclass(frozen=True, slots=True)
class PushVerdict:
    """What a push asks for, whether a rule is about it, and why it is refused as a whole."""

    commands: Sequence[Command]
    protected: bool
    reason: str


def check_push(
    rules: BranchRules, repo: Repository, account: Account, spool: IO[bytes]
) -> PushVerdict:
    """Ask the rules of the branches that a push wants to move."""
    commands, reasons = read_commands(spool), []
    doer = rules.doer(repo, account)
    for command in commands:
        branch = command.ref.removeprefix(git_read.HEADS)
        rule = rules.rule(repo, branch) if branch != command.ref else None
        if rule is not None:
            deletes = command.new == NO_COMMIT
            reasons.append(protections.refuse_push(rule, doer, branch, deletes=deletes))
            if rule.settings.require_signed_commits:
                reasons.append("Commits must have verified signatures.")
    return PushVerdict(commands, bool(reasons), next(filter(None, reasons), ""))


def declined(spool: IO[bytes], commands: Sequence[Command], reason: str) -> bytes:
    """Return git's answer to a push that a hook declined, every reference of it."""
    spool.seek(4)
    first = spool.read(_BAND_MAX).partition(b"\n")[0]
    capabilities = first.partition(b"\0")[2]
    report = packet(b"unpack ok\n") + b"".join(
        packet(f"ng {command.ref} pre-receive hook declined\n".encode()) for command in commands
    )
    report += b"0000"
    if b"side-band-64k" not in capabilities:
        return report if b"report-status" in capabilities else b""
    message = packet(b"\x02" + f"error: \nerror: {reason}\nerror: \n".encode())
    bands = b"".join(
        packet(b"\x01" + report[at : at + _BAND_MAX]) for at in range(0, len(report), _BAND_MAX)
    )
    return message + bands + b"0000"


def packet(line: bytes) -> bytes:
    """Return a line as git's protocol frames it."""
    return f"{len(line) + 4:04x}".encode() + line


log = logging.getLogger(__name__)

FETCH_MAX_BYTES = 16 * 1024 * 1024
"""What a client may say it wants and has, unpacked: 300,000 commits."""
PUSH_MAX_BYTES = 256 * 1024 * 1024
FREE_MIN_BYTES = 512 * 1024 * 1024
"""Requests are refused when the folder for temporary files has less left."""
IN_MEMORY_BYTES = 4 * 1024 * 1024
CHUNK_BYTES = 64 * 1024
PROCESS_TIMEOUT_S = 600
SERVICES = ("git-upload-pack", "git-receive-pack")
ARCHIVED = "This repo is archived. You can view files and clone it, but cannot push."
_PROTOCOL = re.compile(r"version=\d+(:[a-z0-9=-]+)*\Z")
_CONFIG = {
    "safe.directory": "*",
    "uploadpack.allowFilter": "true",
    "uploadpack.allowAnySHA1InWant": "true",
    "receive.autogc": "false",
    "receive.denyDeletes": "false",
    "core.bigFileThreshold": "16m",  # larger files are unpacked in pieces, not in memory
    "receive.fsckObjects": "true",
    "receive.hideRefs": "refs/pull",
    "gc.auto": "0",
}
_NO_CACHE = {"Cache-Control": "no-cache, max-age=0, must-revalidate", "Pragma": "no-cache"}


@dataclass(frozen=True, slots=True)
class SmartHttp:
    """The three URLs of git smart HTTP for every repository of a forge."""

    access: Access
    repositories: Repositories
    updates: BranchUpdates
    rules: BranchRules
    git: GitProgram

    def routes(self) -> list[Route]:
        """Return the routes."""
        repo = "/{owner}/{repo}"
        return [
            Route(f"{repo}/info/refs", self.advertise, methods=["GET"]),
            Route(f"{repo}/git-upload-pack", self.upload_pack, methods=["POST"]),
            Route(f"{repo}/git-receive-pack", self.receive_pack, methods=["POST"]),
        ]

    async def advertise(self, request: Request) -> Response:
        """GET /{owner}/{repo}/info/refs?service=…: what there is to fetch or push to."""
        service = request.query_params.get("service", "")
        return await run_in_threadpool(self._advertise, request, service)

    def _advertise(self, request: Request, service: str) -> Response:
        if service not in SERVICES:
            return _refusal(403, "please upgrade your git client to use smart HTTP")
        try:
            repo, _ = self._admit(request, service)
        except ApiError as refusal:
            return _refusal(refusal.status, refusal.message, refusal.headers)
        result = self.git.run(
            *_command(service, repo, "--advertise-refs"),
            config=_CONFIG,
            environment=_protocol(request),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            timeout=PROCESS_TIMEOUT_S,
        )
        if result.returncode:
            log.error("%s failed: %s", service, shorten(result.stderr.decode(errors="replace")))
            return _refusal(500, "git failed")
        body = result.stdout
        # as git http-backend: version 2 has no such line
        if "version=2" not in request.headers.get("git-protocol", ""):
            body = packet(f"# service={service}\n".encode()) + b"0000" + body
        return Response(body, 200, _NO_CACHE, f"application/x-{service}-advertisement")

    async def upload_pack(self, request: Request) -> Response:
        """POST /{owner}/{repo}/git-upload-pack: clone and fetch, streamed."""
        return await self._serve(request, "git-upload-pack")

    async def receive_pack(self, request: Request) -> Response:
        """POST /{owner}/{repo}/git-receive-pack: push."""
        return await self._serve(request, "git-receive-pack")

    async def _serve(self, request: Request, service: str) -> Response:
        try:
            repo, actor = await run_in_threadpool(self._admit, request, service)
            pushes = service == "git-receive-pack"
            # before git is started: a client that stalls holds no process
            spool = await _spool(request, PUSH_MAX_BYTES if pushes else FETCH_MAX_BYTES)
        except ApiError as refusal:
            return _refusal(refusal.status, refusal.message, refusal.headers)
        except ClientDisconnect:
            return Response(status_code=400)
        if service == "git-upload-pack":
            process = self._start(request, service, repo, spool)
            return StreamingResponse(_output(process, spool), 200, _NO_CACHE, _result(service))
        with spool:
            if actor.account is None:
                raise RuntimeError("a push was admitted without a user")
            return await run_in_threadpool(self._receive, request, repo, spool, actor.account)

    def _receive(
        self, request: Request, repo: Repository, spool: IO[bytes], account: Account
    ) -> Response:
        service = "git-receive-pack"
        verdict = check_push(self.rules, repo, account, spool)
        if verdict.reason:
            body = declined(spool, verdict.commands, verdict.reason)
            return Response(body, 200, _NO_CACHE, _result(service))
        before = git_read.targets(repo.path, [command.ref for command in verdict.commands])
        rewrites = {"receive.denyNonFastForwards": str(verdict.protected).lower()}
        process = self._start(request, service, repo, spool, rewrites)
        output, _ = process.communicate(timeout=PROCESS_TIMEOUT_S)
        self._announce(repo, account, before)
        return Response(output, 200, _NO_CACHE, _result(service))

    def _start(
        self,
        request: Request,
        service: str,
        repo: Repository,
        spool: IO[bytes],
        config: Mapping[str, str] = MappingProxyType({}),
    ) -> subprocess.Popen[bytes]:
        spool.seek(0)
        # Python's seek stays in its buffer; git reads the file itself, from where that ended.
        os.lseek(spool.fileno(), 0, os.SEEK_SET)
        return self.git.start(
            *_command(service, repo),
            config={**_CONFIG, **config},
            environment=_protocol(request),
            stdin=spool.fileno(),
        )

    def _announce(self, repo: Repository, by: Account, before: Mapping[str, str]) -> None:
        after = git_read.targets(repo.path, before)
        repo = self.repositories.adopt_first_branch(repo)
        for ref, old in before.items():
            if after[ref] != old and ref.startswith(git_read.HEADS):
                branch = ref.removeprefix(git_read.HEADS)
                self.updates.branch_moved(repo, branch, after[ref], by=by, before=old)

    def _admit(self, request: Request, service: str) -> tuple[Repository, Actor]:
        writes = service == "git-receive-pack"
        try:
            actor = self.access.authenticate(request)
        except ApiError as refusal:
            raise _unauthorized(refusal.message) from refusal
        require_scope(actor, "repository", write=writes)
        owner = str(request.path_params["owner"])
        name = str(request.path_params["repo"]).removesuffix(".git")
        if self.access.accounts.find(owner) is None:
            raise ApiError(404, "Not found.")
        repo = self.repositories.find(owner, name)
        if repo is None:
            self.access.redirect_if_renamed(request, actor, owner, name)
        right = self.access.right_on(actor, repo) if repo else Right.NONE
        if actor.account is None and (writes or right < Right.READ):
            raise _unauthorized("Unauthorized")
        if repo is None or right < Right.READ:
            raise ApiError(404, "Repository not found")
        if writes and right < Right.WRITE:
            raise ApiError(403, "User permission denied for writing.")
        if writes and repo.archived:
            raise ApiError(403, ARCHIVED)
        return repo, actor


def _unauthorized(message: str) -> ApiError:
    return ApiError(401, message, headers={"WWW-Authenticate": 'Basic realm="Gitea (Basic Auth)"'})


def _command(service: str, repo: Repository, *options: str) -> list[str]:
    return [service.removeprefix("git-"), "--stateless-rpc", *options, str(repo.path)]


def _result(service: str) -> str:
    return f"application/x-{service}-result"


def _refusal(status: int, text: str, headers: Mapping[str, str] | None = None) -> Response:
    return PlainTextResponse(f"{text}\n", status, headers)


def _protocol(request: Request) -> dict[str, str]:
    protocol = request.headers.get("git-protocol", "")
    return {"GIT_PROTOCOL": protocol} if _PROTOCOL.match(protocol) else {}


async def _spool(request: Request, max_bytes: int) -> IO[bytes]:
    """
    Return the body, unpacked, in memory or on disk.

    Raises:
        ApiError: 413 too large; 400 broken gzip; 415 another encoding; 507 no room for it.
    """
    encoding = request.headers.get("content-encoding", "identity")
    if encoding not in ("identity", "gzip", "x-gzip"):
        raise ApiError(415, f"content encoding {encoding} is not supported")
    spool = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY_BYTES)  # noqa: SIM115  the caller closes it
    sink = _Sink(spool, max_bytes, zipped=encoding != "identity")
    try:
        async for chunk in request.stream():
            if chunk:
                await run_in_threadpool(sink.write, chunk)
    except BaseException:
        spool.close()
        raise
    return spool


class _Sink:
    """Writes a body, unpacking it on the way, and refuses to exceed its cap."""

    def __init__(self, out: IO[bytes], max_bytes: int, *, zipped: bool) -> None:
        self._out, self._max_bytes, self._size = out, max_bytes, 0
        self._unzip = zlib.decompressobj(zlib.MAX_WBITS | 16) if zipped else None

    def write(self, chunk: bytes) -> None:
        if self._unzip is None:
            self._append(chunk)
            return
        try:
            while chunk:
                # a chunk at a time: a small body may unpack to any size
                self._append(self._unzip.decompress(chunk, CHUNK_BYTES))
                chunk = self._unzip.unconsumed_tail
        except zlib.error as error:
            raise ApiError(400, "the body is not gzip") from error

    def _append(self, data: bytes) -> None:
        self._size += len(data)
        if self._size > self._max_bytes:
            raise ApiError(413, f"request too large: more than {self._max_bytes} bytes")
        if shutil.disk_usage(tempfile.gettempdir()).free < FREE_MIN_BYTES:
            raise ApiError(507, f"less than {FREE_MIN_BYTES} bytes are free for temporary files")
        self._out.write(data)


async def _output(process: subprocess.Popen[bytes], spool: IO[bytes]) -> AsyncIterator[bytes]:
    """Yield what git says; end git when the client is gone."""
    stdout = process.stdout
    if stdout is None:
        raise RuntimeError("git was started without a pipe")
    try:
        while chunk := await run_in_threadpool(os.read, stdout.fileno(), CHUNK_BYTES):
            yield chunk
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        stdout.close()
        spool.close()
