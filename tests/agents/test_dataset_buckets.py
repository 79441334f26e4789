"""Listings through fsspec: what counts as a CSV, and what is not a listing."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import fsspec
import pytest

from ground.errors import InvalidInputError, RemoteError, UnreachableError
from whisperops.buckets import FsspecBucket, checked_root, source_of


def test_a_folder_is_listed_with_what_lies_below_it(tmp_path: Path) -> None:
    for name, text in {
        "a.csv": "1,2\n",
        "b.CSV": "x",
        "notes.txt": "x",
        "deep/er/c d.csv": "",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    found = FsspecBucket(f"file://{tmp_path}/").blobs()

    assert [(blob.path, blob.size_bytes) for blob in found] == [
        ("a.csv", 4),
        ("deep/er/c d.csv", 0),
    ]
    assert all(blob.version for blob in found)


def test_a_version_changes_with_the_content(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("1")
    bucket = FsspecBucket(f"file://{tmp_path}")
    before = bucket.blobs()
    path.write_text("2")
    os.utime(path, (1, 1))

    assert bucket.blobs() != before


def test_a_sparse_file_of_five_terabytes_is_listed_without_being_read(tmp_path: Path) -> None:
    with (tmp_path / "huge.csv").open("wb") as stream:
        try:
            stream.truncate(5 * 10**12)
        except OSError:
            pytest.skip("this file system has no files of 5 TB")

    (blob,) = FsspecBucket(f"file://{tmp_path}").blobs()

    assert blob.size_bytes == 5 * 10**12


def test_a_folder_that_is_gone_is_an_error_and_no_empty_listing(tmp_path: Path) -> None:
    bucket = FsspecBucket(f"file://{tmp_path}/data")
    with pytest.raises(RemoteError, match="data"):
        bucket.blobs()
    (tmp_path / "data").mkdir()

    assert bucket.blobs() == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_folder_that_may_not_be_read_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0)

    with pytest.raises(UnreachableError, match="Permission"):
        FsspecBucket(f"file://{tmp_path}").blobs()


def test_an_object_store_is_listed_like_a_folder() -> None:
    files = fsspec.filesystem("memory")
    files.pipe("/shop-bucket/2024/a.csv", b"1,2,3")
    files.pipe("/shop-bucket-2/b.csv", b"1")

    found = FsspecBucket("memory://shop-bucket").blobs()

    assert [(blob.path, blob.size_bytes) for blob in found] == [("2024/a.csv", 5)]


def test_a_store_that_hangs_is_not_waited_for_and_not_asked_twice(tmp_path: Path) -> None:
    bucket: Any = FsspecBucket(f"file://{tmp_path}", timeout_s=0.05)
    free = threading.Event()

    class Hanging:
        def invalidate_cache(self) -> None:
            free.wait(20)

        def find(self, *_: object, **__: object) -> dict[str, Any]:
            return {}

        def exists(self, _: str) -> bool:
            return True

    bucket._files = Hanging()  # noqa: SLF001  a store of which nobody knows why it hangs
    with pytest.raises(UnreachableError, match=r"within 0\.05 s"):
        bucket.blobs()
    with pytest.raises(UnreachableError, match="still waits"):
        bucket.blobs()
    free.set()
    bucket._listing_thread.join(20)  # noqa: SLF001
    bucket._timeout_s = 20  # noqa: SLF001

    assert bucket.blobs() == []


@pytest.mark.parametrize(
    ("url", "why"),
    [
        pytest.param("https://host/x", "begins with none of", id="a scheme that is not listed"),
        pytest.param("datasets", "begins with none of", id="no scheme"),
        pytest.param("gs://", "names no bucket", id="no bucket"),
        pytest.param("gs://user:secret@bucket", "no user", id="a secret"),
    ],
)
def test_an_address_that_is_no_bucket_is_refused(url: str, why: str) -> None:
    with pytest.raises(InvalidInputError, match=why) as refused:
        checked_root(url)

    assert "secret" not in str(refused.value)


def test_a_store_whose_package_is_missing_says_which(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("fsspec")
    monkeypatch.setitem(__import__("sys").modules, "gcsfs", None)

    with pytest.raises(InvalidInputError, match="gcsfs"):
        FsspecBucket("gs://bucket")


def test_a_source_is_named_after_its_bucket() -> None:
    assert source_of("gs://whisperops-datasets/CSV files/") == "whisperops-datasets-csv-files"
