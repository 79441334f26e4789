"""The small function of ``functionimages``, added to a cache of its own."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from functionimages import PYTHON, Python, asked, image_config, package_layer, program_layer

from compositions.station import Station
from orderkit.adapters.functions.local_functions import program_function
from orderkit.adapters.functions.program_store import add_program, program_start
from orderkit.adapters.processes.confined_program import UNCONFINED

DIGEST = "sha256:" + "b" * 64
KIT = """\
apiVersion: apiextensions.crossplane.io/v2
kind: CompositeResourceDefinition
metadata:
  name: xqueues.example.org
spec:
  group: example.org
  names: {kind: XQueue, plural: xqueues}
  scope: Namespaced
  versions:
    - name: v1alpha1
      served: true
      referenceable: true
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec:
              type: object
              required: [depth]
              properties:
                depth: {type: integer, minimum: 1}
---
apiVersion: apiextensions.crossplane.io/v1
kind: Composition
metadata:
  name: xqueues
spec:
  compositeTypeRef: {apiVersion: example.org/v1alpha1, kind: XQueue}
  mode: Pipeline
  pipeline:
    - step: make
      functionRef: {name: function-tiny}
      input: {apiVersion: tiny.example.org/v1, kind: Input, do: compose}
    - step: ready
      functionRef: {name: function-auto-ready}
"""
"""A kit of XQueues, made by function-tiny, as `orderkit kit import` takes it."""


@contextmanager
def own_cache(folder: Path) -> Iterator[None]:
    """Keep programs in a folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder))
        yield


@contextmanager
def tiny_function(folder: Path, python: Python = PYTHON) -> Iterator[Station]:
    """Give the function; skip where this machine permits no namespaces."""
    with own_cache(folder):
        layers = [io.BytesIO(program_layer(python)), io.BytesIO(package_layer())]
        add_program(DIGEST, program_start(image_config(python)), layers)
        function = program_function(DIGEST)
        assert function is not None
        refused = [result.message for result in function(asked("compose")).results]
        if any(UNCONFINED in text for text in refused):
            pytest.skip(refused[0])
        yield function
