"""
Start a program of a stranger where it can do no harm, and reach the one port that it serves.

The program gets namespaces of its own (user, mounts, processes, network, IPC), the folder of its
image as a read-only root, an empty ``/tmp`` in memory, four devices and the loopback. It has no
rights, cannot make namespaces, and the kernel limits its memory, processes and files. The process
of this module is its init: it waits for the port, carries connections from a socket of the owner to
it, and ends with the owner or with the program. Needs no privileges, but a kernel that permits user
namespaces; without them nothing is started.

Linux on x86_64 and aarch64 only.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import json
import os
import resource
import socket
import struct
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from orderkit.adapters.processes import confinement

PORT = 9443
"""Where functions serve."""
PROXY_PORT = 3128
"""Where a program with a network finds its proxy."""
READY = b"r"
UNCONFINED = "this machine cannot confine it"
MEMORY_BYTES, PROCESSES, FILES, FILE_BYTES = 1 << 30, 256, 1024, 64 << 20
_TMPFS = "size=64m,nr_inodes=10000,mode=1777"
_NOBODY, _INSIDE = 65534, 65532
_DEVICES = ("null", "zero", "random", "urandom")
_NEW = 0x00020000 | 0x08000000 | 0x10000000 | 0x20000000 | 0x40000000 | 0x04000000
"""Mounts, IPC, users, processes, network, host name."""
_NOSUID, _NODEV, _NOEXEC, _READ_ONLY, _REMOUNT, _BIND = 2, 4, 8, 1, 32, 4096
_RECURSIVE, _PRIVATE, _DETACH = 16384, 1 << 18, 2
"""Of sys/mount.h, as the line above."""
_KEPT_FLAGS = {2: 2, 4: 4, 8: 8, 1024: 1024, 2048: 2048, 4096: 1 << 21}
"""Mount flags by those of statvfs: a user namespace may not take them off."""
_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
_SET_DUMPABLE = 4
"""Of linux/prctl.h."""
_FORBIDDEN = """
ptrace 101 117, process_vm_readv 310 270, process_vm_writev 311 271, mount 165 40, umount2 166 39,
pivot_root 155 41, unshare 272 97, setns 308 268, keyctl 250 219, add_key 248 217,
request_key 249 218, bpf 321 280, perf_event_open 298 241, userfaultfd 323 282,
io_uring_setup 425 425, open_by_handle_at 304 265, init_module 175 105, kexec_load 246 104
"""
_LO_UP = struct.pack("16sH14x", b"lo", 0x41)
_SIOCSIFFLAGS = 0x8914
"""Of linux/sockios.h."""
_POLL_S = 0.02
_CHUNK = 1 << 16

_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True, slots=True)
class ProgramStart:
    """What to run: the configuration of its image."""

    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    folder: str = "/"
    """Its working directory."""
    network: Sequence[str] = ()
    """Hosts with ports that a person of this machine granted (`functions.granted_network`)."""


def main(arguments: list[str]) -> None:
    """
    Confine this process and run the program; the owner has given the numbers of its files.

    The fourth, if the program has a network, is the socket that its connections are passed to.
    """
    control, listener, root, outside, text = arguments
    start = ProgramStart(**json.loads(text))
    confinement.end_with_parent()
    # where memory runs out, the kernel ends the program first, and not its owner
    with suppress(OSError):
        _write("/proc/self/oom_score_adj", "1000")
    os.fchdir(int(root))  # follows into the new mounts, even where a path to it would be barred
    with _telling():
        _enter_namespaces()
    # a process enters its new process namespace by its children only (unshare(2))
    child = os.fork()
    if child:
        # the owner sees the end of the program by the end of these
        for file in filter(None, (control, outside)):
            os.close(int(file))
        status = os.waitpid(child, 0)[1]
        os._exit(os.waitstatus_to_exitcode(status) & 0xFF)
    # a fork does not inherit it (prctl(2))
    confinement.end_with_parent()
    with _telling():
        _change_root()
        _loopback_up()
    proxy = _proxy() if outside else None
    program = _started(start)
    threading.Thread(target=_end_with, args=(program,), daemon=True).start()
    if proxy is not None:
        passed = (proxy, socket.socket(fileno=int(outside)))
        threading.Thread(target=_pass_out, args=passed, daemon=True).start()
    _carry(socket.socket(fileno=int(listener)), socket.socket(fileno=int(control)))


@contextmanager
def _telling() -> Iterator[None]:
    """End this process where a protection is refused: nothing runs without it."""
    try:
        yield
    except OSError as error:
        os.write(2, f"{UNCONFINED}: {error.strerror}\n".encode())
        os._exit(126)


def _enter_namespaces() -> None:
    user = os.geteuid()
    if user == 0:  # the owner of /proc/sys could change the machine
        user = _NOBODY
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
        # whoever changes the user cannot write to its own /proc otherwise (proc(5))
        _libc.prctl(_SET_DUMPABLE, 1, 0, 0, 0)
        # the change of the user took it away (prctl(2))
        confinement.end_with_parent()
    group = os.getegid()
    _checked(_libc.unshare(_NEW), "making namespaces")
    # without rights, only then the kernel takes a gid_map (user_namespaces(7))
    _write("/proc/self/setgroups", "deny")
    _write("/proc/self/uid_map", f"{_INSIDE} {user} 1")
    _write("/proc/self/gid_map", f"{_INSIDE} {group} 1")
    for kind in ("user", "mnt", "pid", "net", "ipc", "uts", "cgroup"):
        with suppress(OSError):  # seccomp forbids it too
            # counted are those of below; ours are there
            if kind != "pid":
                _write(f"/proc/sys/user/max_{kind}_namespaces", "0")


def _change_root() -> None:
    flags = sum(to for at, to in _KEPT_FLAGS.items() if os.statvfs(".").f_flag & at)
    _mount("", "/", "", _RECURSIVE | _PRIVATE)
    _mount("tmpfs", "/tmp", "tmpfs", _NOSUID | _NODEV)  # noqa: S108 - nobody else sees it
    new = "/tmp/root"  # noqa: S108
    Path(new).mkdir()
    _mount(".", new, "", _BIND)
    # a bind mount is made read-only by a second call only (mount(2))
    _mount("", new, "", _BIND | _REMOUNT | _READ_ONLY | _NOSUID | _NODEV | flags)
    _mount("tmpfs", f"{new}/tmp", "tmpfs", _NOSUID | _NODEV, _TMPFS)  # noqa: S108
    _mount("tmpfs", f"{new}/dev", "tmpfs", _NOSUID | _NOEXEC, "size=64k,mode=755")
    for name in _DEVICES:
        os.close(os.open(f"{new}/dev/{name}", os.O_CREAT | os.O_WRONLY))
        _mount(f"/dev/{name}", f"{new}/dev/{name}", "", _BIND)
    with suppress(OSError):  # some containers refuse it, and few programs read it
        _mount("proc", f"{new}/proc", "proc", _NOSUID | _NODEV | _NOEXEC)
    os.chdir(new)
    number = _PIVOT_ROOT[os.uname().machine]
    # the old root then lies on the new one, and is taken off (pivot_root(2))
    _checked(_libc.syscall(ctypes.c_long(number), b".", b"."), "changing the root")
    _checked(_libc.umount2(b".", _DETACH), "leaving the old root")
    os.chdir("/")


def _loopback_up() -> None:
    # a new network namespace has its loopback down
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, _LO_UP)


def _started(start: ProgramStart) -> int:
    """Start the program with nothing of ours; return its process."""
    program = os.fork()
    if program:
        return program
    try:
        os.setsid()
        os.closerange(3, os.sysconf("SC_OPEN_MAX"))
        for kind, bound in (
            (resource.RLIMIT_CORE, 0),
            (resource.RLIMIT_DATA, MEMORY_BYTES),
            (resource.RLIMIT_NPROC, PROCESSES),
            (resource.RLIMIT_NOFILE, FILES),
            (resource.RLIMIT_FSIZE, FILE_BYTES),
        ):
            # without rights a hard limit can only be lowered
            hard = resource.getrlimit(kind)[1]
            lower = bound if hard == resource.RLIM_INFINITY else min(bound, hard)
            resource.setrlimit(kind, (lower, lower))
        confinement.forbid_calls(_FORBIDDEN)
        os.chdir(start.folder)
        os.execvpe(  # noqa: S606 - that is what all this is for
            start.command[0], list(start.command), dict(start.environment)
        )
    except OSError as error:
        os.write(2, f"{start.command[0]}: {error}\n".encode())
    os._exit(127)


def _end_with(program: int) -> None:
    """Bury what has ended; end with the program."""
    while True:
        process, status = os.wait()
        if process == program:
            os._exit(os.waitstatus_to_exitcode(status) & 0xFF)


def _proxy() -> socket.socket:
    listener = socket.socket()
    listener.bind((b"127.0.0.1", PROXY_PORT))
    listener.listen()
    return listener


def _pass_out(proxy: socket.socket, outside: socket.socket) -> None:
    """Give the program's connections to the owner, who has a network and knows what is granted."""
    with suppress(OSError):
        while True:
            near, _ = proxy.accept()
            with near:
                socket.send_fds(outside, [b"c"], [near.fileno()])


def _carry(listener: socket.socket, control: socket.socket) -> None:
    """Carry the owner's connections to the program's port, once there is one."""
    while True:
        with suppress(OSError):
            _connected().close()
            break
        time.sleep(_POLL_S)
    control.sendall(READY)
    listener.setblocking(True)  # noqa: FBT003 - the standard library's own parameter
    while True:
        near, _ = listener.accept()
        with suppress(OSError):
            far = _connected()
            for ends in ((near, far), (far, near)):
                threading.Thread(target=pump, args=ends, daemon=True).start()
            continue
        near.close()


def _connected() -> socket.socket:
    # bytes: a text would be encoded by a module that is not on this root
    end = socket.socket()
    try:
        end.connect((b"127.0.0.1", PORT))
    except OSError:
        end.close()
        raise
    return end


def pump(source: socket.socket, target: socket.socket) -> None:
    """Carry what a socket reads to another, until one ends."""
    with suppress(OSError):
        while data := source.recv(_CHUNK):
            target.sendall(data)
    for end in (source, target):
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


def _mount(source: str, target: str, kind: str, flags: int, options: str = "") -> None:
    texts = (text.encode() or None for text in (source, target, kind))
    done = _libc.mount(*texts, ctypes.c_ulong(flags), options.encode() or None)
    _checked(done, f"mounting {target}")


def _write(path: str, text: str) -> None:
    file = os.open(path, os.O_WRONLY)
    try:
        os.write(file, text.encode())
    finally:
        os.close(file)


def _checked(result: int, what: str) -> None:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number or errno.EPERM, f"{what}: {os.strerror(number)}")
