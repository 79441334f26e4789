"""
Merge EnvironmentConfigs into the settings of an order, layer by layer, and say who decided what.

A step's input in the Composition declares the layers, the general one first, and their schema:

```yaml
layers:
  - {name: baseline, labels: {example.org/layer: baseline}}
  - name: cloud
    labels: {example.org/layer: cloud}
    labelsFrom: {example.org/cloud: spec.cloud}      # a field of the XR
layersSchema: {type: object, required: [...], properties: {...}}
```

Exactly one EnvironmentConfig must have a layer's labels. Maps merge, everything else is replaced.
`Layers` and `merge_layers` need no cluster: ``kit check`` judges a pack's files with them.
Stations import `Settings`, `SettingError` and `layered_settings` from ``orderkit.stations``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Self, TypeVar, cast

from compositions.station import StationRequest, StationResponse
from ground.errors import shorten
from ground.names import LABEL, LABEL_MAX
from ground.objects.kube_objects import Kind, Manifest, dig, metadata
from ground.objects.values import overlaid
from kubeschema.pruning import default, prune

__all__ = [
    "ENVIRONMENT",
    "LAYERS_BROKEN",
    "LayerError",
    "LayeredValue",
    "Layers",
    "SettingError",
    "Settings",
    "decided_values",
    "layered_settings",
    "merge_layers",
    "only_config",
]

SETTINGS = "orderkit.dev/settings"
"""Key of the context: ``values``, and ``layers``, the layer of each value by its dotted path."""
ENVIRONMENT = Kind("apiextensions.crossplane.io", "v1beta1", "EnvironmentConfig")
LAYERS_BROKEN = "LayersBroken"
"""The reason of a fatal result about layers."""
SCHEMA_DEFAULT = "default of the schema"
_REQUIREMENT = "orderkit-layer-"

T = TypeVar("T", str, int, float, bool, dict[str, Any], list[Any])


_ACCEPTED: Mapping[type, tuple[type, ...]] = {float: (float, int)}


class SettingError(LookupError):
    """A station reads a setting that no layer gives, or that has another type."""


class LayerError(Exception):
    """The layers of an order cannot be used; the text names the layer and the way out."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The merged settings of an order. Paths are dotted; a key with a dot needs its map."""

    values: Mapping[str, Any]
    layers: Mapping[str, str]
    """The layer that decided each value, by path. Lists and empty maps count as values."""

    def get(self, path: str, type_: type[T]) -> T:
        """
        Return a value.

        Raises:
            SettingError: No layer gives it, or it is not of this type.
        """
        value = dig(self.values, *path.split("."))
        if value is None:
            names = ", ".join(sorted(set(self.layers.values()))) or "none"
            raise SettingError(f'no layer gives the setting "{path}"; layers: {names}')
        if type(value) not in _ACCEPTED.get(type_, (type_,)):
            type_name = type(value).__name__
            raise SettingError(f'the setting "{path}" is a {type_name}, not a {type_.__name__}')
        return cast("T", value)

    def has(self, path: str) -> bool:
        """Return whether a layer gives a value, or a map of values."""
        return dig(self.values, *path.split(".")) is not None


@dataclass(frozen=True, slots=True)
class LayeredValue:
    """A setting, and the layer that decided it."""

    value: Any
    layer: str


def decided_values(context: Mapping[str, Any]) -> dict[str, LayeredValue]:
    """Return the settings in the context of a pipeline, by path; empty if it has none."""
    settings = context.get(SETTINGS)
    layers = dig(settings, "layers")
    if not isinstance(layers, dict):
        return {}
    paths = [(".".join(steps), steps) for steps in _paths(dig(settings, "values") or {})]
    return {
        path: LayeredValue(dig(settings, "values", *steps), str(layers.get(path, "")))
        for path, steps in sorted(paths)
    }


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer, as a step's input declares it."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    labels_from: Mapping[str, str] = field(default_factory=dict)
    """Fields of the XR by label: ``spec.cloud``."""

    def selector(self, xr: Manifest) -> dict[str, str]:
        """
        Return the labels for an XR.

        Raises:
            LayerError: A field is missing or no label's value, or there are no labels at all.
        """
        labels = dict(self.labels)
        for label, path in self.labels_from.items():
            value = dig(xr, *path.split("."))
            if not isinstance(value, str) or len(value) > LABEL_MAX or not LABEL.match(value):
                text = shorten(repr(value), limit=80)
                raise LayerError(f'layer "{self.name}": {path} is {text}, not the value of a label')
            labels[label] = value
        if not labels:
            raise LayerError(f'layer "{self.name}" has no labels and would match everything')
        return labels


@dataclass(frozen=True, slots=True)
class Layers:
    """All layers of a step, the general one first, and the schema of what they give together."""

    layers: tuple[Layer, ...]
    schema: Manifest

    @classmethod
    def of(cls, step_input: Mapping[str, Any]) -> Self | None:
        """
        Read a step's input; None if it declares no layers.

        Raises:
            LayerError: The declaration has the wrong shape, or the schema is not structural.
        """
        entries, schema = step_input.get("layers"), step_input.get("layersSchema")
        if entries is None and schema is None:
            return None
        if not isinstance(entries, list) or not entries or not isinstance(schema, dict):
            raise LayerError("the step's input needs both: layers, a list, and layersSchema, a map")
        return cls(tuple(_layer(entry) for entry in entries), _schema(json.dumps(schema)))


@lru_cache(maxsize=100)
def _schema(text: str) -> Manifest:
    """
    Return the same object for the same schema: validators are cached by identity.

    Raises:
        LayerError: The API server would not accept the schema in a CRD.
    """
    # lazy: the process of a pack's stations starts for every command, and few read settings
    from kubeschema.structural.structural_rules import check_schema

    schema: Manifest = json.loads(text)
    faults = check_schema(schema, at="layersSchema")
    if faults:
        raise LayerError(shorten("; ".join(faults), limit=500))
    return schema


def _layer(entry: object) -> Layer:
    maps = [(dig(entry, key) or {}) for key in ("labels", "labelsFrom")]
    name = dig(entry, "name")
    are_texts = all(
        isinstance(m, dict) and all(isinstance(v, str) for v in m.values()) for m in maps
    )
    if not isinstance(name, str) or not name or not are_texts:
        text = shorten(repr(entry), limit=80)
        raise LayerError(f"{text} is not a layer: name, labels and labelsFrom, all texts")
    return Layer(name, *maps)


def only_config(layer: Layer, labels: Mapping[str, str], configs: Sequence[Manifest]) -> Manifest:
    """
    Return the one EnvironmentConfig of a layer.

    Raises:
        LayerError: There is none, or more than one.
    """
    if len(configs) == 1:
        return configs[0]
    text = ", ".join(f"{label}={value}" for label, value in sorted(labels.items()))
    if not configs:
        raise LayerError(
            f'layer "{layer.name}" is missing: no EnvironmentConfig has the labels {text}'
        )
    names = ", ".join(sorted(str(metadata(config).get("name")) for config in configs)[:5])
    raise LayerError(
        f'layer "{layer.name}" is ambiguous: {len(configs)} EnvironmentConfigs have the labels '
        f"{text}: {names}; exactly one may"
    )


def merge_layers(data_by_layer: Mapping[str, Any], schema: Manifest) -> Settings:
    """
    Merge the data of layers, the general one first, and check the result against the schema.

    Raises:
        LayerError: A layer's data is not a map, or the result does not fit the schema. Every
            problem names its layer.
    """
    from kubeschema.structural.api_messages import problems  # lazy: as above

    merged: dict[str, Any] = {}
    for name, data in data_by_layer.items():
        if not isinstance(data, dict):
            raise LayerError(f'layer "{name}": data is not a map')
        merged = overlaid(merged, data)
    values = default(schema, merged)
    layers = {".".join(path): _layer_of(path, data_by_layer) for path in _paths(values)}
    lines = [(problem.path, str(problem)) for problem in problems(schema, values)]
    lines += [(path, f"{path}: unknown setting") for path in prune(schema, values)[1]]
    if lines:
        texts = [
            f"{shorten(text)} (layer: {layers.get(path, 'none gives it')})" for path, text in lines
        ]
        remainder = f"; and {len(texts) - 5} more" if len(texts) > 5 else ""  # noqa: PLR2004 - first five
        raise LayerError(f"the settings do not fit their schema: {'; '.join(texts[:5])}{remainder}")
    return Settings(values, layers)


def _paths(value: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    for key, entry in value.items():
        if isinstance(entry, dict) and entry:
            yield from ((key, *path) for path in _paths(entry))
        else:
            yield (key,)


def _layer_of(path: tuple[str, ...], data_by_layer: Mapping[str, Any]) -> str:
    absent = object()
    givers = [
        name
        for name, data in data_by_layer.items()
        if dig(data, *path, default=absent) is not absent
    ]
    return givers[-1] if givers else SCHEMA_DEFAULT


def layered_settings(request: StationRequest, response: StationResponse) -> Settings | None:
    """
    Return the settings of the order, or None: then return the response at once.

    A step whose input declares layers looks them up and puts the result into the context; a step
    without layers takes it from there. A missing or doubled layer, and settings that do not fit the
    schema, end in a fatal result: nothing of an existing order changes or is dropped.
    """
    try:
        layers = Layers.of(request.input)
        if layers is None:
            return _of_earlier_step(request)
        settings = _looked_up(layers, request, response)
    except LayerError as error:
        response.fatal(str(error), reason=LAYERS_BROKEN)
        return None
    if settings is not None:
        facts = {"values": dict(settings.values), "layers": dict(settings.layers)}
        response.context = {**response.context, SETTINGS: facts}
    return settings


def _of_earlier_step(request: StationRequest) -> Settings:
    facts = request.context.get(SETTINGS)
    if not isinstance(facts, dict):
        raise LayerError("no settings: neither this step nor an earlier one declares layers")
    return Settings(facts["values"], facts["layers"])


def _looked_up(
    layers: Layers, request: StationRequest, response: StationResponse
) -> Settings | None:
    selectors = [(layer, layer.selector(request.xr)) for layer in layers.layers]
    for number, (_, labels) in enumerate(selectors):
        name = f"{_REQUIREMENT}{number}"
        response.require(name, ENVIRONMENT.api_version, ENVIRONMENT.kind, match_labels=labels)
    if not all(request.is_answered(f"{_REQUIREMENT}{n}") for n in range(len(selectors))):
        return None
    data_by_layer = {}
    for number, (layer, labels) in enumerate(selectors):
        config = only_config(layer, labels, request.required[f"{_REQUIREMENT}{number}"])
        data_by_layer[layer.name] = config.get("data") or {}
    return merge_layers(data_by_layer, layers.schema)
