"""
Take from this process what code of a pack must not have: files, network and other processes.

Landlock (Linux 5.13) leaves folders to read, and seccomp leaves the system calls that plain Python
needs: no sockets, processes, threads or signals, and no file opened to be written. Both need no
privileges, work in containers, and cannot be undone. Linux on x86_64 and aarch64 only; `missing`
says what this machine lacks, and without it the limits of ``child_process`` are all there is.
"""

from __future__ import annotations

import ctypes
import errno
import importlib.util
import os
import resource
import signal
import site
import struct
import sys
from collections.abc import Iterable
from pathlib import Path

_HOUSES = (
    *("orderkit", "compositions", "ground", "kubeschema"),
    *("softwaretemplates", "yamlfiles"),
)
"""The packages that code of a pack may import, besides what is installed."""
_ALLOWED = """
read 0 63, write 1 64, close 3 57, fstat 5 80, lseek 8 62, mmap 9 222, mprotect 10 226,
munmap 11 215, brk 12 214, rt_sigaction 13 134, rt_sigprocmask 14 135, rt_sigreturn 15 139,
pread64 17 67, readv 19 65, writev 20 66, sched_yield 24 124, mremap 25 216, madvise 28 233,
nanosleep 35 101, getpid 39 172, sendto 44 206, recvfrom 45 207, getsockname 51 204,
getsockopt 55 209, exit 60 93, uname 63 160, getcwd 79 17, gettimeofday 96 169, getrusage 98 165,
sysinfo 99 179, getuid 102 174, getgid 104 176, geteuid 107 175, getegid 108 177, getppid 110 173,
sigaltstack 131 132, gettid 186 178, futex 202 98, getdents64 217 61, clock_gettime 228 113,
clock_getres 229 114, clock_nanosleep 230 115, exit_group 231 94, newfstatat 262 79,
readlinkat 267 78, faccessat 269 48, getrandom 318 278, statx 332 291, faccessat2 439 439,
stat 4 79, lstat 6 79, access 21 48, readlink 89 78
"""
"""Name and numbers on x86_64 and aarch64; the last four have no number of their own there."""
_FORKING = "clone 56 220, wait4 61 260, kill 62 129, sendmsg 46 211, recvmsg 47 212, prctl 157 167"
_OPENAT = {"x86_64": 257, "aarch64": 56}
_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_X32 = 0x40000000
"""From this number on x86_64 has its calls a second time."""
_NEWER = 448
"""From this number on libraries probe, and go on without a call that does not exist."""
_WRITING = os.O_ACCMODE | os.O_CREAT | os.O_TRUNC

_PR_SET_PDEATHSIG, _PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS, _FILTER = 1, 22, 38, 2
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL, _ERROR = 0x7FFF0000, 0x80000000, 0x00050000
_NUMBER_AT, _ARCHITECTURE_AT, _THIRD_ARGUMENT_AT = 0, 4, 32

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
"""System calls of Landlock, the same on both architectures."""
_READ_FILE_AND_FOLDER = 0b1100
"""READ_FILE and READ_DIR of linux/landlock.h."""
_FILE_RIGHTS = {1: 13, 2: 14, 3: 15, 5: 16}
"""Number of rights over files by the version that brought the last of them."""
_NETWORK_SINCE, _SCOPES_SINCE = 4, 6
"""Versions of Landlock that know TCP, and signals with abstract sockets."""

_libc = ctypes.CDLL(None, use_errno=True)


def missing() -> list[str]:
    """Return the protections that this machine lacks, and what code of a pack can do without."""
    lacking = []
    if _landlock_version() < 1:
        lacking.append("Landlock: it can read the files of this user")
    if not _has_seccomp():
        lacking.append("seccomp: it can use the network and start processes")
    return lacking


def _has_seccomp() -> bool:
    # where filters are known, one that is not there is a bad address
    is_known = _prctl(_PR_SET_SECCOMP, _FILTER) == errno.EFAULT
    return is_known and os.uname().machine in _ARCHITECTURES


def confine(readable: Iterable[str], *, forks: bool = False) -> None:
    """
    Leave this process a few folders to read, memory and its open files, for ever.

    Call it while there is one thread. Children inherit it.

    Args:
        readable: Folders, besides those of Python and Orderkit.
        forks: It may fork, receive descriptors and end processes; its forks call `forbid_forks`.

    Raises:
        OSError: A protection that this machine has was refused.
    """
    if not forks:
        resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
    # a filter of a process without rights is taken only then (seccomp(2))
    _checked(_prctl(_PR_SET_NO_NEW_PRIVS, 1))
    if _landlock_version() >= 1:
        _leave_folders((*_installation(), *readable))
    if _has_seccomp():
        _leave_calls(_ALLOWED + (f", {_FORKING}" if forks else ""))


def forbid_forks() -> None:
    """Take from a fork of a confined process what only that process needs."""
    if _has_seccomp():
        _leave_calls(_ALLOWED)


def end_with_parent() -> None:
    """End when the thread that started this process ends."""
    _checked(_prctl(_PR_SET_PDEATHSIG, signal.SIGKILL))


def _installation() -> list[str]:
    """Return the folders of Python, its packages, Orderkit, libraries and time zones."""
    return [
        str(Path(os.__file__).parent),
        *(str(Path(found).parent) for house in _HOUSES for found in _folders_of(house)),
        *(f"{sys.base_prefix}/lib", *site.getsitepackages(), "/usr/share/zoneinfo"),
        *("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib"),
    ]


def _folders_of(package: str) -> list[str]:
    """Return where a package is, which a checkout has outside ``site-packages``."""
    spec = importlib.util.find_spec(package)
    return list(spec.submodule_search_locations or ()) if spec else []


def _leave_folders(folders: Iterable[str]) -> None:
    version = _landlock_version()
    rights = max(bits for since, bits in _FILE_RIGHTS.items() if since <= version)
    network = 0b11 if version >= _NETWORK_SINCE else 0
    scopes = 0b11 if version >= _SCOPES_SINCE else 0
    ruleset = struct.pack("=QQQ", (1 << rights) - 1, network, scopes)
    # a kernel refuses fields that it does not know
    size = 24 if scopes else 16 if network else 8
    rules = _checked_call(_CREATE_RULESET, ruleset, size, 0)
    for folder in {Path(folder).resolve() for folder in folders}:
        if folder.is_dir():
            place = os.open(folder, os.O_PATH | os.O_CLOEXEC)
            rule = struct.pack("=Qi", _READ_FILE_AND_FOLDER, place)
            _checked_call(_ADD_RULE, rules, 1, rule, 0)
            os.close(place)
    _checked_call(_RESTRICT_SELF, rules, 0)
    os.close(rules)


def _leave_calls(allowed: str) -> None:
    machine = os.uname().machine
    column = 1 if machine == "x86_64" else 2
    numbers = sorted({int(entry.split()[column]) for entry in allowed.split(",")})
    install_filter(
        [
            # the numbers are other calls on another architecture, which the same kernel may serve
            (_LOAD, 0, 0, _ARCHITECTURE_AT),
            (_EQUAL, 1, 0, _ARCHITECTURES[machine]),
            (_RETURN, 0, 0, _KILL),
            (_LOAD, 0, 0, _NUMBER_AT),
            *((_EQUAL, len(numbers) - at + 3, 0, number) for at, number in enumerate(numbers)),
            (_EQUAL, 4, 0, _OPENAT[machine]),
            (_AT_LEAST, 1, 0, _NEWER),
            (_RETURN, 0, 0, _ERROR | errno.EPERM),
            (_RETURN, 0, 0, _ERROR | errno.ENOSYS),
            (_RETURN, 0, 0, _ALLOW),
            (_LOAD, 0, 0, _THIRD_ARGUMENT_AT),
            (_ANY_BIT, 0, 1, _WRITING),
            (_RETURN, 0, 0, _ERROR | errno.EACCES),
            (_RETURN, 0, 0, _ALLOW),
        ]
    )


def forbid_calls(forbidden: str) -> None:
    """
    Take system calls from this process, for ever, and whatever a program that it runs could gain.

    Args:
        forbidden: Name and numbers on x86_64 and aarch64, as `_ALLOWED` has them.

    Raises:
        OSError: The kernel refuses it.
    """
    _checked(_prctl(_PR_SET_NO_NEW_PRIVS, 1))
    machine = os.uname().machine
    column = 1 if machine == "x86_64" else 2
    numbers = [int(entry.split()[column]) for entry in forbidden.split(",")]
    install_filter(
        [
            (_LOAD, 0, 0, _ARCHITECTURE_AT),
            (_EQUAL, 1, 0, _ARCHITECTURES[machine]),
            (_RETURN, 0, 0, _KILL),
            (_LOAD, 0, 0, _NUMBER_AT),
            *((_EQUAL, len(numbers) - at + 1, 0, number) for at, number in enumerate(numbers)),
            (_AT_LEAST, 1, 0, _X32),
            (_RETURN, 0, 0, _ALLOW),
            (_RETURN, 0, 0, _ERROR | errno.EPERM),
        ]
    )


def install_filter(program: list[tuple[int, int, int, int]]) -> None:
    """
    Have the kernel judge every further system call by a BPF program.

    Raises:
        OSError: The kernel refuses it.
    """
    code = b"".join(struct.pack("=HBBI", *instruction) for instruction in program)
    # keeps the program in memory while the kernel reads it
    held = ctypes.create_string_buffer(code, len(code))
    address = ctypes.addressof(held)
    _checked(_prctl(_PR_SET_SECCOMP, _FILTER, struct.pack("@HP", len(program), address)))


def _landlock_version() -> int:
    # 1: asks for the version of Landlock, and makes no ruleset
    return int(_libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), 1))


def _prctl(option: int, value: int, third: bytes | None = None) -> int:
    """Call prctl; return 0 or the number of the error."""
    done: int = _libc.prctl(option, ctypes.c_ulong(value), third, None, None)
    return ctypes.get_errno() if done else 0


def _checked(number: int) -> None:
    if number:
        raise OSError(number, os.strerror(number))


def _checked_call(number: int, *arguments: int | bytes) -> int:
    sized = (each if isinstance(each, bytes) else ctypes.c_long(each) for each in arguments)
    result: int = _libc.syscall(number, *sized)
    _checked(ctypes.get_errno() if result < 0 else 0)
    return result
