"""A server of the S3 API (moto) in a process of its own on the loopback, and the front-end sync."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

import requests
from commands import Done

ROOT = Path(__file__).parents[2]
PYTHON = ROOT / ".cache" / "s3" / "bin" / "python"
_START_S = 60
SDK = {
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test",
    "AWS_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
}
"""What the AWS SDK finds in its environment."""


@dataclass(frozen=True, slots=True)
class S3Server:
    """The server; buckets are addressed by path."""

    url: str

    def make_bucket(self, name: str) -> None:
        """Make a bucket whose objects everybody may read."""
        read = {"Effect": "Allow", "Principal": "*", "Action": "s3:GetObject"}
        policy = {
            "Version": "2012-10-17",
            "Statement": [read | {"Resource": f"arn:aws:s3:::{name}/*"}],
        }
        for url, body in (
            (f"{self.url}/{name}", ""),
            (f"{self.url}/{name}?policy", json.dumps(policy)),
        ):
            requests.put(url, body, timeout=30).raise_for_status()

    def put(self, bucket: str, key: str, body: bytes) -> None:
        """Put an object as somebody else does."""
        requests.put(f"{self.url}/{bucket}/{key}", body, timeout=30).raise_for_status()

    def get(self, bucket: str, key: str) -> requests.Response:
        """Return what a browser gets."""
        return requests.get(f"{self.url}/{bucket}/{key}", timeout=30)

    def keys(self, bucket: str) -> set[str]:
        answer = requests.get(f"{self.url}/{bucket}?list-type=2&encoding-type=url", timeout=30)
        answer.raise_for_status()
        parts = answer.text.split("<Key>")[1:]
        return {unquote(part.partition("</Key>")[0]) for part in parts}


@contextmanager
def s3_server() -> Iterator[S3Server]:
    """Install moto if it is not there yet (scripts/s3.sh), and run it."""
    subprocess.run([ROOT / "scripts" / "s3.sh"], check=True, timeout=600)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    process = subprocess.Popen(
        [PYTHON, "-m", "moto.server", "-H", "127.0.0.1", "-p", port],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=os.environ | SDK,
    )
    try:
        server = S3Server(f"http://127.0.0.1:{port}")
        _await(server, process)
        yield server
    finally:
        process.terminate()
        process.wait(30)


def _await(server: S3Server, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + _START_S
    while True:
        try:
            requests.get(server.url, timeout=5)
        except (requests.ConnectionError, requests.Timeout):
            if process.poll() is not None or time.monotonic() > end:
                raise
            time.sleep(0.1)
        else:
            return


def sync_command(dist: Path, target: str, url: str, *options: str) -> list[str]:
    """Return the words of ``python -m environments.sync``."""
    arguments = [str(dist), target, "--endpoint-url", url, *options]
    return [str(PYTHON), "-m", "environments.sync", *arguments]


def sync(dist: Path, target: str, url: str, *options: str) -> Done:
    """Run the sync as a pipeline does, in a process of its own."""
    done = subprocess.run(
        sync_command(dist, target, url, *options),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env=os.environ | SDK,
    )
    return Done(done.returncode, done.stdout, done.stderr)
