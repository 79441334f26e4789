"""
Declare CEL types to the type checker: every object type becomes its own protobuf message.

This way a rule that names an undeclared field, or compares a string with an integer, is refused as
the API server refuses it. Weaker than the server in one respect: the contents of a list of lists,
or of a map of lists or maps, are not typed.
"""

from __future__ import annotations

from typing import Any

from kubeschema.cel.type_shapes import CelType

_FILE = "orderkit/self.proto"
_WELL_KNOWN = {
    "timestamp": "Timestamp",
    "duration": "Duration",
    "dyn": "Value",
    "list": "ListValue",
    "map": "Struct",
}
OPAQUE = ("URL", "Quantity", "IP", "CIDR", "Semver", "NamedFormat")
"""Types of Kubernetes' own functions; each is a message with one string field."""
PACKAGE = "kubernetes"


class Declarations:
    """A pool of messages. `declare` adds a type and returns its name in the environment."""

    def __init__(self) -> None:
        from google.protobuf import descriptor_pb2

        self._field = descriptor_pb2.FieldDescriptorProto
        self._file = descriptor_pb2.FileDescriptorProto(
            name=_FILE, package=PACKAGE, syntax="proto2"
        )
        self._file.dependency.extend(f"google/protobuf/{n}.proto" for n in _imports())
        for name in OPAQUE:
            self._add(self._file.message_type.add(name=name), "text", CelType("string"))

    def declare(self, shape: CelType) -> dict[str, Any]:
        """Return the type as the environment's configuration writes it."""
        if shape.kind == "object":
            return {"type_name": f"{PACKAGE}.{self._message(shape)}"}
        if shape.kind == "map" and shape.items is not None:
            return {
                "type_name": "map",
                "params": [_type_reference("string"), self.declare(shape.items)],
            }
        if shape.items is not None:
            return {"type_name": "list", "params": [self.declare(shape.items)]}
        return _type_reference(shape.kind)

    def pool(self) -> Any:
        """Return the descriptor pool with everything declared so far."""
        from google.protobuf import descriptor_pb2, descriptor_pool

        pool = descriptor_pool.DescriptorPool()
        for module in _imports().values():
            copied = descriptor_pb2.FileDescriptorProto()
            module.DESCRIPTOR.CopyToProto(copied)
            pool.Add(copied)
        pool.Add(self._file)
        return pool

    def _message(self, shape: CelType) -> str:
        name = f"Self{len(self._file.message_type)}"
        message = self._file.message_type.add(name=name)
        for escaped, child in shape.fields.values():
            self._add(message, escaped, child)
        return name

    def _add(self, message: Any, name: str, shape: CelType) -> None:
        number = len(message.field) + 1
        added = message.field.add(name=name, number=number, json_name=f"f{number}")
        added.label = self._field.LABEL_OPTIONAL
        if shape.kind == "list" and shape.items is not None:
            added.label = self._field.LABEL_REPEATED
            self._type(added, shape.items)
        elif shape.kind == "map" and shape.items is not None:
            added.label, added.type = self._field.LABEL_REPEATED, self._field.TYPE_MESSAGE
            added.type_name = f".{PACKAGE}.{message.name}.{self._entry(message, name, shape.items)}"
        else:
            self._type(added, shape)

    def _entry(self, message: Any, name: str, items: CelType) -> str:
        """Add a map's entry message. Protobuf prescribes its name."""
        words = "".join(word[:1].upper() + word[1:] for word in name.split("_"))
        entry = message.nested_type.add(name=f"{words}Entry")
        entry.options.map_entry = True
        self._add(entry, "key", CelType("string"))
        value = entry.field.add(name="value", number=2, label=self._field.LABEL_OPTIONAL)
        self._type(value, items)
        return str(entry.name)

    def _type(self, added: Any, shape: CelType) -> None:
        scalars = {
            "bool": self._field.TYPE_BOOL,
            "int": self._field.TYPE_INT64,
            "double": self._field.TYPE_DOUBLE,
            "string": self._field.TYPE_STRING,
            "bytes": self._field.TYPE_BYTES,
        }
        if shape.kind in scalars:
            added.type = scalars[shape.kind]
            return
        added.type = self._field.TYPE_MESSAGE
        if shape.kind == "object":
            added.type_name = f".{PACKAGE}.{self._message(shape)}"
        else:
            added.type_name = f".google.protobuf.{_WELL_KNOWN[shape.kind]}"


def _type_reference(name: str) -> dict[str, Any]:
    return {"type_name": name}


def _imports() -> dict[str, Any]:
    from google.protobuf import duration_pb2, struct_pb2, timestamp_pb2

    return {"duration": duration_pb2, "struct": struct_pb2, "timestamp": timestamp_pb2}
