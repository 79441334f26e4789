"""One server of the S3 API for all tests of the front-end sync."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from s3server import S3Server, s3_server


@pytest.fixture(scope="session")
def s3() -> Iterator[S3Server]:
    with s3_server() as server:
        yield server
