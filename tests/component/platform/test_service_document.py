"""The service against its own OpenAPI document: generated requests, and what is committed."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import requests
import schemathesis
from chances import Chances
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import positive_data_acceptance

from orderkit.cli.connecting import SECRET_HEADER, service_options
from orderkit.web.event_stream import StreamBounds
from orderkit.web.service import service_app
from orderkit.web.serving import HttpServer, bind
from orderkit_standins.serve_platform import Running

ROOT = Path(__file__).parents[3]
COPY = ROOT / "docs" / "openapi.json"
EXAMPLES = 12


@pytest.fixture(scope="module")
def address(platform: Running) -> Iterator[str]:
    """The service without the limit on requests, and with streams that end."""
    usual = service_options(platform.settings, audit=None)
    short = StreamBounds(life_s=0.05)
    options = replace(usual, requests_per_minute=1_000_000, streams=short)
    server = HttpServer(service_app(platform.platform, options), bind("service", 0))
    server.start()
    yield server.url
    server.stop()


@pytest.fixture
def api(address: str) -> Any:
    return schemathesis.openapi.from_url(f"{address}/openapi.json")


OPERATIONS = [
    (method, path)
    for path, found in json.loads(COPY.read_text())["paths"].items()
    for method in found
    if method != "parameters"
]


@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: str(mode.value))
@pytest.mark.parametrize("place", OPERATIONS, ids=" ".join)
def test_every_answer_is_as_the_document_says(
    place: tuple[str, str], mode: GenerationMode, api: Any, platform: Running, chances: Chances
) -> None:
    """Statuses, media types, schemas, refused bad data, no accepted call without a proof."""
    method, path = place
    file = platform.settings.service.token_file
    assert file is not None
    headers = {SECRET_HEADER: Path(file).read_text().strip()}

    # An order that is there takes only names of its kit's outputs, and only its own id to end
    # it: no schema has them.
    of_one_order = path.endswith(("/outputs", "/end")) and method == "post"
    free = [positive_data_acceptance] if of_one_order else []

    @given(case=api[path][method].as_strategy(generation_mode=mode))
    @settings(
        max_examples=chances.count(EXAMPLES, 1000),
        deadline=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def answered(case: Any) -> None:
        case.call_and_validate(headers=headers, timeout=60, excluded_checks=free)

    try:
        answered()
    except Unsatisfiable:
        pytest.skip("nothing of it can be made wrong")


def test_the_committed_copy_is_what_the_service_answers(address: str) -> None:
    shown = requests.get(f"{address}/openapi.json", timeout=60).json()

    assert json.loads(COPY.read_text()) == shown


def test_a_copy_that_is_out_of_date_is_noticed() -> None:
    done = subprocess.run(
        [sys.executable, "scripts/service_docs.py", "--check"], cwd=ROOT, check=False
    )

    assert done.returncode == 0
