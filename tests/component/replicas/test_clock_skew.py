"""An order's life in two replicas: the clock of one is 30 s ahead of all others."""

from __future__ import annotations

import shutil
import subprocess
import time
from email.utils import parsedate_to_datetime
from pathlib import Path

import pytest
from replicas import Client, Replicas, ServedPlatform, until
from servedprocess import served_process
from tests.component.replicas.conftest import AddTeam

AHEAD_S = 30
SHIM = f"""\
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/time.h>
#include <time.h>

int clock_gettime(clockid_t id, struct timespec *now) {{
  static int (*real)(clockid_t, struct timespec *);
  if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
  int failed = real(id, now);
  if (!failed && id == CLOCK_REALTIME) now->tv_sec += {AHEAD_S};
  return failed;
}}
int gettimeofday(struct timeval *restrict now, void *restrict zone) {{
  struct timespec found;
  clock_gettime(CLOCK_REALTIME, &found);
  now->tv_sec = found.tv_sec;
  now->tv_usec = found.tv_nsec / 1000;
  return 0;
}}
time_t time(time_t *at) {{
  struct timespec found;
  clock_gettime(CLOCK_REALTIME, &found);
  return at ? (*at = found.tv_sec) : found.tv_sec;
}}
"""
WITHIN_S = 60.0


@pytest.fixture
def clock_ahead(tmp_path: Path) -> str:
    """Make a library that changes a process's time of day, and not its monotonic clock."""
    source, library = tmp_path / "ahead.c", tmp_path / "ahead.so"
    source.write_text(SHIM)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True, timeout=60)
    return str(library)


def ahead_s(client: Client) -> float:
    """Return by how much a replica's clock is ahead of ours."""
    date = parsedate_to_datetime(client.ask("GET", "/healthz").headers["Date"])
    return date.timestamp() - time.time()


def is_ended(client: Client, team: str) -> bool:
    order = f"garage-{team}"
    answer = client.ask("POST", f"/v1/orders/{order}/end", confirm=order)
    return answer.ok and answer.json()["state"] == "ended"


@pytest.mark.soak
@pytest.mark.skipif(not shutil.which("cc"), reason="needs a C compiler, to turn a clock")
def test_an_order_lives_through_replicas_whose_clocks_differ(
    platform: ServedPlatform, replicas: Replicas, add: AddTeam, clock_ahead: str, tmp_path: Path
) -> None:
    team = add("skewed")
    here = replicas.start()
    with served_process(platform.file, tmp_path, LD_PRELOAD=clock_ahead) as found:
        ahead = Client(found.url, replicas.secret)
        assert AHEAD_S - 3 < ahead_s(ahead) - ahead_s(here) < AHEAD_S + 3

        assert ahead.place(team).status_code == 201
        assert here.place(team).status_code == 200
        for number, client in enumerate((here, ahead, here, ahead)):
            done = client.change(team, f"stage{2 + number % 2}", f"skewed-{number}")
            assert done.status_code == 201, done.text
        commits = platform.commits(team)
        for client in (here, ahead):
            until(lambda client=client: is_ended(client, team), "it ends", WITHIN_S)

    assert commits == 5
    assert here.end() == 0
