"""The API server takes the policy of every kit of the corpus: it compiles each expression."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.conformance.policies.apiserver import ApiServer

from orderkit.adapters.folders.pack_folder import read_folder
from orderkit.core.kit.model import Kit
from orderkit.core.kit.pack import read_pack
from orderkit_workshop.generate.admission_policy import manifests

CORPUS = Path(__file__).parents[2] / "corpus"
KITS = read_pack(read_folder(CORPUS)).kits()


def test_the_corpus_has_many_shapes() -> None:
    assert len(KITS) >= 40


@pytest.mark.parametrize("kit", KITS, ids=lambda kit: kit.name)
def test_the_server_takes_a_kits_policies(server: ApiServer, kit: Kit) -> None:
    for manifest in manifests(kit):
        answer = server.create(manifest, dry_run=True)

        assert answer.status_code == 201, answer.text
