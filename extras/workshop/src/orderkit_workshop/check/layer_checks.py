"""
Check the layers of settings that a Composition's steps declare, for every order that is possible.

An order chooses layers by fields with an ``enum``. For each combination of their values, every
layer must have exactly one EnvironmentConfig in the pack, and the merged values must fit the
schema. `layer_orders` makes an order of each combination, so that stations read their settings with
all of them (rule ``setting-missing``).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from compositions.layered_settings import ENVIRONMENT, LayerError, Layers, merge_layers, only_config
from compositions.simulation import lookup_in
from compositions.station import Selector
from ground.objects.kube_objects import Manifest, dig
from ground.objects.values import overlaid
from kubeschema.validate import Validator
from kubeschema.validate.findings import Located
from orderkit.core.kit.model import Kit
from orderkit_workshop.check.behaviour_rule_codes import PipelineRule
from orderkit_workshop.check.kit_under_check import Doc, KitUnderCheck, finding_at, steps_in
from orderkit_workshop.check.trial_runs import Order

COMBINATIONS_MAX = 100
"""More combinations than this are not tried."""


def check_layers(subject: KitUnderCheck, kit: Kit) -> Iterator[Located]:
    """Check each declaration, and for each combination the EnvironmentConfigs and their values."""
    configs = [doc.manifest for doc in subject.pack.of_kind(ENVIRONMENT)]
    for doc, index, step_input in _inputs(subject):
        messages = dict.fromkeys(_faults(kit, step_input, [*configs, *kit.fixtures]))
        for message in messages:
            yield finding_at(PipelineRule.LAYERS, doc, f"spec.pipeline[{index}].input", message)


def layer_orders(subject: KitUnderCheck, kit: Kit, orders: Sequence[Order]) -> list[Order]:
    """Return valid orders, one for each combination of layers that `orders` do not have."""
    if not orders:
        return []
    validator, base = Validator(kit.xrd), orders[0]
    paths = sorted({path for layers in _declared(subject) for path in _paths(layers)})
    choices = [_choices(kit, path) for path in paths]
    if not paths or not all(choices):
        return []
    covered = {_values(order.xr, paths) for order in orders}
    extra = []
    for values in itertools.islice(itertools.product(*choices), COMBINATIONS_MAX):
        if values not in covered:
            report = validator.check(overlaid(base.xr, _chosen(paths, values)))
            label = f"{base.label}, {_label(paths, values)}"
            if report.valid:
                extra.append(Order(label, report.result, varied=True))
    return extra


def _inputs(subject: KitUnderCheck) -> Iterator[tuple[Doc, int, Mapping[str, Any]]]:
    for doc in subject.compositions:
        for index, step in enumerate(steps_in(doc) or ()):
            if step.input and {"layers", "layersSchema"} & step.input.keys():
                yield doc, index, step.input


def _declared(subject: KitUnderCheck) -> Iterator[Layers]:
    for _, _, step_input in _inputs(subject):
        try:
            layers = Layers.of(step_input)
        # `_faults` says so
        except LayerError:
            continue
        if layers is not None:
            yield layers


def _paths(layers: Layers) -> set[str]:
    return {path for layer in layers.layers for path in layer.labels_from.values()}


def _faults(kit: Kit, step_input: Mapping[str, Any], objects: Sequence[Manifest]) -> Iterator[str]:
    try:
        layers = Layers.of(step_input)
    except LayerError as error:
        yield str(error)
        return
    assert layers is not None  # noqa: S101 - the caller has looked
    paths = sorted(_paths(layers))
    unclear = [path for path in paths if not _choices(kit, path)]
    for path in unclear:
        yield f"{path} chooses a layer, so it needs an enum, and a default unless it is required"
    if unclear:
        return
    choices = [_choices(kit, path) for path in paths]
    for values in itertools.islice(itertools.product(*choices), COMBINATIONS_MAX):
        try:
            _merge(layers, _chosen(paths, values), objects)
        except LayerError as error:
            label = _label(paths, values)
            yield f"with {label}: {error}" if label else str(error)


def _merge(layers: Layers, xr: Manifest, objects: Sequence[Manifest]) -> None:
    lookup, data_by_layer = lookup_in(objects), {}
    for layer in layers.layers:
        labels = layer.selector(xr)
        selector = Selector(ENVIRONMENT.api_version, ENVIRONMENT.kind, labels=labels)
        config = only_config(layer, labels, lookup(selector))
        data_by_layer[layer.name] = config.get("data") or {}
    merge_layers(data_by_layer, layers.schema)


def _choices(kit: Kit, path: str) -> tuple[str, ...]:
    """Return the values that a field of every order can have; empty if the XRD leaves that open."""
    schema: Mapping[str, Any] = {"properties": {"spec": kit.spec_schema}, "required": ["spec"]}
    for step in path.split("."):
        field = dig(schema, "properties", step)
        is_set = step in (schema.get("required") or ()) or dig(field, "default") is not None
        if not isinstance(field, Mapping) or not is_set:
            return ()
        schema = field
    values = schema.get("enum") or ()
    return tuple(value for value in values if isinstance(value, str))


def _chosen(paths: Sequence[str], values: Sequence[str]) -> Manifest:
    xr: Manifest = {}
    for path, value in zip(paths, values, strict=True):
        nested: Any = value
        for step in reversed(path.split(".")):
            nested = {step: nested}
        xr = overlaid(xr, nested)
    return xr


def _values(xr: Manifest, paths: Sequence[str]) -> tuple[Any, ...]:
    return tuple(dig(xr, *path.split(".")) for path in paths)


def _label(paths: Sequence[str], values: Sequence[str]) -> str:
    pairs = zip(paths, values, strict=True)
    return ", ".join(f"{path.removeprefix('spec.')}={value}" for path, value in pairs)
