"""A built front end reaches its bucket whole, whatever happens on the way: on a real S3 API."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from faultproxy import Decision, Falsehood, Fault, FaultProxy, Listed, Plan, open_proxy
from s3server import SDK, S3Server, sync, sync_command

_numbers = itertools.count(1)
FIRST = {
    "index.html": "<script src=assets/index-BtZ3kq1F.js></script>",
    "assets/index-BtZ3kq1F.js": "import('./chunk-4XKQ2RTB.js')",
    "assets/chunk-4XKQ2RTB.js": "1",
    "about/index.html": "about",
    "remoteEntry.js": "entry",
    "logo.svg": "<svg/>",
}
SECOND = {**FIRST, "index.html": "<script src=assets/index-C9aK2xQ7.js></script>"}
SECOND["assets/index-C9aK2xQ7.js"] = SECOND.pop("assets/index-BtZ3kq1F.js")
SLOW_DOWN = Falsehood(
    503,
    b"<Error><Code>SlowDown</Code><Message>Reduce your rate</Message></Error>",
    "application/xml",
)
BROKEN = Falsehood(500, b"<Error><Code>InternalError</Code></Error>", "application/xml")
DENIED = Falsehood(403, b"<Error><Code>AccessDenied</Code></Error>", "application/xml")


@dataclass
class Site:
    """A bucket of its own behind a proxy, and a folder to build into."""

    s3: S3Server
    proxy: FaultProxy
    dist: Path
    bucket: str

    def build(self, files: dict[str, str]) -> None:
        for path in sorted(self.dist.rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
        for key, text in files.items():
            (self.dist / key).parent.mkdir(parents=True, exist_ok=True)
            (self.dist / key).write_text(text)

    @property
    def served(self) -> dict[str, str]:
        return {key: self.s3.get(self.bucket, key).text for key in self.s3.keys(self.bucket)}

    def writes(self) -> list[str]:
        """Return the keys that were put or the word "delete", in order, and forget them."""
        lines = [line.split()[1:3] for line in self.proxy.log if line.split()[1] in {"PUT", "POST"}]
        self.proxy.log.clear()
        return [
            path.split("?")[0].removeprefix(f"/{self.bucket}/") if verb == "PUT" else "delete"
            for verb, path in lines
        ]

    def sync(self, *options: str) -> int:
        done = sync(self.dist, f"s3://{self.bucket}", self.proxy.url, *options)
        self.out, self.err = done.out, done.err
        return done.code

    out: str = ""
    err: str = ""


@pytest.fixture
def site(s3: S3Server, tmp_path: Path) -> object:
    bucket = f"acme-mfe-shop-{next(_numbers)}"
    s3.make_bucket(bucket)
    (tmp_path / "dist").mkdir()
    with open_proxy(s3.url) as proxy:
        site = Site(s3, proxy, tmp_path / "dist", bucket)
        site.build(FIRST)
        yield site


def test_the_page_is_served_with_its_headers(site: Site) -> None:
    assert site.sync() == 0, site.err

    assert site.served == FIRST
    page, script = (
        site.s3.get(site.bucket, key) for key in ("index.html", "assets/index-BtZ3kq1F.js")
    )
    assert page.headers["Content-Type"] == "text/html; charset=utf-8"
    assert page.headers["Cache-Control"] == "no-cache"
    assert script.headers["Content-Type"] == "text/javascript; charset=utf-8"
    assert script.headers["Cache-Control"] == "public, max-age=31536000, immutable"
    assert "6/6 index.html (46 B)" in site.err
    assert f"s3://{site.bucket}/: 6 uploaded, 0 unchanged, 0 deleted" in site.out


def test_each_file_comes_after_what_it_refers_to_and_the_page_last(site: Site) -> None:
    site.sync()

    written = site.writes()
    assert set(written[:2]) == {"assets/index-BtZ3kq1F.js", "assets/chunk-4XKQ2RTB.js"}
    assert set(written[2:4]) == {"logo.svg", "remoteEntry.js"}
    assert written[4:] == ["about/index.html", "index.html"]


def test_only_what_changed_is_sent_and_what_is_obsolete_goes_after_it(site: Site) -> None:
    site.sync()
    site.writes()
    assert site.sync() == 0
    assert site.writes() == []

    site.build(SECOND)
    assert site.sync() == 0, site.err

    assert site.writes() == ["assets/index-C9aK2xQ7.js", "index.html", "delete"]
    assert site.served == SECOND


def test_a_file_of_the_same_size_and_other_content_is_sent(site: Site) -> None:
    site.sync()
    site.writes()
    site.build(FIRST | {"logo.svg": "<gvs/>"})

    assert site.sync() == 0

    assert site.writes() == ["logo.svg"]


def test_a_dry_run_writes_nothing_and_names_everything(site: Site) -> None:
    site.sync()
    site.writes()
    site.build(SECOND)

    assert site.sync("--dry-run") == 0

    assert site.writes() == []
    assert "+ index.html  text/html; charset=utf-8  no-cache" in site.out
    assert "- assets/index-BtZ3kq1F.js" in site.out
    assert "2 would be uploaded, 4 unchanged, 1 would be deleted" in site.out


def test_objects_of_others_stay_until_somebody_says_otherwise(site: Site) -> None:
    site.s3.put(site.bucket, "reports/2026.csv", b"1,2")

    assert site.sync() == 0
    assert "1 that this tool did not upload stay, such as reports/2026.csv" in site.out
    assert "reports/2026.csv" in site.s3.keys(site.bucket)

    assert site.sync("--delete-foreign") == 0
    assert site.s3.keys(site.bucket) == set(FIRST)


def test_a_prefix_is_the_whole_world_of_a_sync(site: Site) -> None:
    site.sync()
    site.build({"index.html": "checkout"})

    done = sync(site.dist, f"s3://{site.bucket}/checkout", site.proxy.url, "--delete-foreign")

    assert done.code == 0, done.err
    assert site.served == FIRST | {"checkout/index.html": "checkout"}


@pytest.mark.parametrize(
    ("verb", "faults"),
    [
        ("PUT", [Decision(Fault.DROP_BEFORE), Decision(Fault.DROP_AFTER)]),
        ("PUT", [Decision(Fault.CUT_AFTER)]),
        ("PUT", [Decision(Fault.REFUSE_BEFORE, BROKEN), Decision(Fault.REFUSE_AFTER, BROKEN)]),
        ("PUT", [Decision(Fault.REFUSE_BEFORE, SLOW_DOWN)] * 3),
        *((verb, [Decision(Fault.DROP_AFTER), Decision(Fault.REFUSE_BEFORE, SLOW_DOWN)])
          for verb in ("GET", "HEAD", "POST")),
    ],
)  # fmt: skip
def test_what_fails_for_a_while_is_repeated(site: Site, faults: list[Decision], verb: str) -> None:
    site.sync()
    site.build(SECOND)

    with site.proxy.using(Listed(list(faults), lambda method, _: method == verb)):
        assert site.sync() == 0, site.err

    assert site.served == SECOND
    assert sum(site.proxy.hits.values()) > 0


def test_a_failure_in_the_middle_leaves_the_old_page_whole_and_the_next_run_goes_on(
    site: Site,
) -> None:
    site.sync()
    site.build(SECOND)
    site.writes()

    refusal = Listed(
        [Decision(Fault.REFUSE_BEFORE, DENIED)],
        lambda verb, path: verb == "PUT" and "index.html" in path,
    )
    with site.proxy.using(refusal):
        assert site.sync() == 5

    assert "AccessDenied" in site.err
    assert "s3:ListBucket, GetObject, PutObject" in site.err
    assert "1 of 2 files were uploaded, and nothing was deleted: run it again" in site.err
    assert {key: site.served[key] for key in FIRST} == FIRST
    site.writes()
    assert site.sync() == 0
    assert site.writes() == ["index.html", "delete"]
    assert site.served == SECOND


def test_obsolete_files_that_cannot_be_deleted_are_deleted_by_the_next_run(site: Site) -> None:
    site.sync()
    site.build(SECOND)

    with site.proxy.using(
        Listed([Decision(Fault.REFUSE_BEFORE, DENIED)], lambda v, _: v == "POST")
    ):
        assert site.sync() == 5

    assert "2 of 2 files were uploaded, and not everything obsolete was deleted" in site.err
    assert site.sync() == 0
    assert site.served == SECOND


@dataclass
class Killing(Plan):
    """Kill the sync when it puts its n-th file, before the server sees that one or after."""

    fault: Fault
    puts_until: int
    pid: list[int] = field(default_factory=list)

    def decide(self, method: str, path: str) -> Decision:
        del path
        self.puts_until -= method == "PUT"
        return Decision(self.fault if self.puts_until == 0 and method == "PUT" else Fault.PASS)

    def hook(self) -> None:
        os.kill(self.pid[0], signal.SIGKILL)


@pytest.mark.parametrize("fault", [Fault.HOOK_BEFORE, Fault.HOOK_AFTER])
@pytest.mark.parametrize("puts_until", [1, 2])
def test_killed_at_any_file_the_same_command_goes_on(
    site: Site, fault: Fault, puts_until: int
) -> None:
    site.sync()
    site.build(SECOND)
    plan = Killing(fault, puts_until)

    with site.proxy.using(plan):
        command = sync_command(site.dist, f"s3://{site.bucket}", site.proxy.url)
        with subprocess.Popen(command, env=os.environ | SDK, stderr=subprocess.DEVNULL) as process:
            plan.pid.append(process.pid)
        assert process.returncode == -signal.SIGKILL

    served = site.served
    page = served["index.html"]
    assert page.split("src=")[1].split(">")[0] in served, (
        "the page names a script that is not there"
    )
    assert set(FIRST) <= set(served)
    assert site.sync() == 0, site.err
    assert site.served == SECOND


def test_a_bucket_that_does_not_exist_is_named_with_the_way_out(site: Site) -> None:
    done = sync(site.dist, "s3://acme-mfe-nobody", site.proxy.url)

    assert done.code == 1
    assert "s3://acme-mfe-nobody: list: NoSuchBucket" in done.err
    assert "is the order Ready" in done.err
    assert "Traceback" not in done.err


def test_no_credentials_are_a_sentence(site: Site) -> None:
    command = sync_command(site.dist, f"s3://{site.bucket}", site.proxy.url)
    bare = {key: text for key, text in os.environ.items() if not key.startswith("AWS_")}
    done = subprocess.run(
        command,
        env=bare | {"AWS_EC2_METADATA_DISABLED": "true", "HOME": str(site.dist)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    assert done.returncode == 1
    assert "Unable to locate credentials" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_hostile_name_reaches_the_bucket_and_never_a_terminal(site: Site) -> None:
    name = "a b+c&d=\x1b[31m<i>.js"
    site.build({"index.html": "x", name: "y"})

    assert site.sync() == 0, site.err

    assert "\x1b" not in site.out + site.err
    site.build({"index.html": "x"})
    assert site.sync() == 0
    assert site.s3.keys(site.bucket) == {"index.html"}


def test_more_files_than_one_page_of_a_listing_come_and_go(site: Site) -> None:
    site.build(FIRST | {f"many/{n}.txt": str(n) for n in range(1100)})
    assert site.sync() == 0
    site.writes()

    site.build(FIRST)
    assert site.sync() == 0

    assert site.writes() == ["delete", "delete"]
    assert site.served == FIRST
