"""
One bucket and a prefix in it, by the S3 API: what is there, one more object, some fewer.

boto3 signs, finds credentials, and repeats what a server refuses for a while (500, 503 SlowDown, a
cut connection) with growing pauses. What fails in the end is raised as `StoreError`.
Called by ``environments.sync``.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from environments.files import BuiltFile, printable

_SHA = "sha256"
"""The metadata of objects that we uploaded: ``x-amz-meta-sha256``."""
_DELETED_AT_ONCE = 1000
_WAYS_OUT = {
    "NoSuchBucket": "is the order Ready, and is this the bucket of its outputs?",
    "AccessDenied": "the caller needs s3:ListBucket, GetObject, PutObject and DeleteObject there",
    "InvalidAccessKeyId": "check AWS_ACCESS_KEY_ID, or the role of the pipeline",
    "SignatureDoesNotMatch": "check AWS_SECRET_ACCESS_KEY",
    "ExpiredToken": "get new credentials and run it again",
    "PermanentRedirect": "set AWS_REGION to the region of the bucket",
}


class StoreError(Exception):
    """The bucket does not do what it should; the message has the way out."""


@dataclass(frozen=True, slots=True)
class Stored:
    """An object as it is in the bucket."""

    sha256: str
    """As whoever uploaded it said; empty if that was not this tool."""
    content_type: str
    cache_control: str

    def has(self, file: BuiltFile) -> bool:
        """Return whether the object is this file, with its headers."""
        return (self.sha256, self.content_type, self.cache_control) == (
            file.sha256,
            file.content_type,
            file.cache_control,
        )


class Store:
    """
    The objects below a prefix. Safe for several threads.

    Raises:
        StoreError: From every method.
    """

    def __init__(self, bucket: str, prefix: str, *, endpoint_url: str | None, workers: int) -> None:
        self._bucket, self._prefix = bucket, prefix
        config = Config(
            connect_timeout=10,
            read_timeout=60,
            retries={"mode": "standard", "total_max_attempts": 8},
            max_pool_connections=workers,
            request_checksum_calculation="when_required",  # not every S3 API knows the others
            response_checksum_validation="when_required",
        )
        with self._explained("credentials"):
            self._s3: Any = boto3.session.Session().client(
                "s3", endpoint_url=endpoint_url, config=config
            )

    def sizes(self) -> dict[str, int]:
        """Return the size in bytes of each object, by key."""
        with self._explained("list"):
            pages = self._s3.get_paginator("list_objects_v2").paginate(
                Bucket=self._bucket, Prefix=self._prefix
            )
            return {
                entry["Key"]: entry["Size"] for page in pages for entry in page.get("Contents", ())
            }

    def stored(self, key: str) -> Stored | None:
        """Return an object's description, or None if it is gone by now."""
        try:
            with self._explained(key):
                answer = self._s3.head_object(Bucket=self._bucket, Key=key)
        except StoreError as error:
            if isinstance(error.__cause__, ClientError) and _code(error.__cause__) == "404":
                return None
            raise
        return Stored(
            answer["Metadata"].get(_SHA, ""),
            answer.get("ContentType", ""),
            answer.get("CacheControl", ""),
        )

    def put(self, file: BuiltFile) -> None:
        """Upload a file, all of it or nothing; the server compares it with its hash."""
        with self._explained(file.key), file.path.open("rb") as body:
            self._s3.put_object(
                Bucket=self._bucket,
                Key=file.key,
                Body=body,
                ContentLength=file.size_bytes,
                ContentType=file.content_type,
                CacheControl=file.cache_control,
                ChecksumSHA256=base64.b64encode(bytes.fromhex(file.sha256)).decode(),
                Metadata={_SHA: file.sha256},
            )

    def delete(self, keys: Sequence[str]) -> None:
        """Remove objects; those that are gone already count as removed."""
        for key in keys:
            if not key.isprintable():  # XML, in which several are named, has no control characters
                with self._explained(key):
                    self._s3.delete_object(Bucket=self._bucket, Key=key)
        nameable = [key for key in keys if key.isprintable()]
        for start in range(0, len(nameable), _DELETED_AT_ONCE):
            identifiers = [{"Key": key} for key in nameable[start : start + _DELETED_AT_ONCE]]
            with self._explained("delete"):
                answer = self._s3.delete_objects(
                    Bucket=self._bucket, Delete={"Objects": identifiers, "Quiet": True}
                )
            for error in answer.get("Errors", ()):
                raise StoreError(
                    f"{printable(error.get('Key'))} stays: {printable(error.get('Code'))}"
                )

    @contextmanager
    def _explained(self, subject: str) -> Iterator[None]:
        try:
            yield
        except ClientError as error:
            code = _code(error)
            way_out = _WAYS_OUT.get(code, "run it again: it goes on where it stopped")
            message = printable(error.response.get("Error", {}).get("Message", ""))[:300]
            raise StoreError(
                f"s3://{self._bucket}: {printable(subject)}: {code} {message}\n  {way_out}"
            ) from error
        except (BotoCoreError, OSError) as error:
            raise StoreError(
                f"s3://{self._bucket}: {printable(subject)}: {printable(error)[:300]}"
            ) from error


def _code(error: ClientError) -> str:
    return printable(error.response.get("Error", {}).get("Code", "unknown"))
