"""CRDs of packages as files of a pack: which package, what is read of it, and what is written."""

from __future__ import annotations

import gzip
import io
import tarfile
from pathlib import PurePosixPath
from typing import Any

import pytest
import yaml

from ground.errors import InvalidInputError, RemoteError
from kubeschema.known import read_crds
from kubeschema.known.crd_files import (
    PackageReference,
    SchemaSource,
    crd_documents,
    crd_file,
    package_stream,
    parse_reference,
    read_sources,
    sources_file,
)

SHA = "sha256:" + "0" * 64


@pytest.mark.parametrize(
    ("text", "reference"),
    [
        ("upbound/provider-x@v1", PackageReference("", "upbound/provider-x", "v1", "")),
        ("upbound/provider-x", PackageReference("", "upbound/provider-x", "", "")),
        ("r.io/a/b@v1", PackageReference("r.io", "a/b", "v1", "")),
        ("r.io/a/b:v1", PackageReference("r.io", "a/b", "v1", "")),
        ("localhost/a/b@v1", PackageReference("localhost", "a/b", "v1", "")),
        ("host:5000/a@v1", PackageReference("host:5000", "a", "v1", "")),
        (f"a/b@{SHA}", PackageReference("", "a/b", "", SHA)),
        (f"a/b@v1@{SHA}", PackageReference("", "a/b", "v1", SHA)),
    ],
)
def test_a_package_is_named_with_host_path_and_version(
    text: str, reference: PackageReference
) -> None:
    assert parse_reference(text) == reference
    assert parse_reference(str(reference)) == reference
    assert reference.wanted == (reference.digest or reference.tag)
    assert reference.name == reference.path.rpartition("/")[2]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no path"),
        ("A/b@v1", "a path is in lower case"),
        ("a//b@v1", "a part is empty"),
        ("a/b@v 1", "a tag has no blanks"),
        ("a/b@sha256:12", "a digest has 64 digits"),
        (f"a/b@v1@{SHA}0", "and not more"),
        ("r_.io/a@v1", "no host"),
        ("a" * 300 + "@v1", "too long"),
    ],
)
def test_what_names_no_package_is_refused(text: str, reason: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        pytest.fail(f"{reason}: {parse_reference(text)}")

    assert str(refused.value).endswith("is not [HOST/]PATH@VERSION")


def archive(*members: tuple[str, bytes | None]) -> bytes:
    """Return a tar archive; a member without content is a folder."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as tar:
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.type = tarfile.DIRTYPE if data is None else tarfile.REGTYPE
            info.size = len(data or b"")
            tar.addfile(info, io.BytesIO(data or b""))
    return stream.getvalue()


PACKAGE = archive(("readme", b"x"), ("./package.yaml", b"a: 1"))


@pytest.mark.parametrize(
    ("layer", "content"),
    [
        (PACKAGE, b"a: 1"),
        (gzip.compress(PACKAGE), b"a: 1"),
        (archive(("package.yaml", b"b")), b"b"),
        (archive(("package.yaml", None)), None),
        (archive(("other/package.yaml", b"b")), None),
        (archive(*((str(number), b"") for number in range(100))), None),
    ],
)
def test_the_stream_of_a_package_is_found_in_its_layer(layer: bytes, content: bytes | None) -> None:
    assert package_stream(layer) == content


@pytest.mark.parametrize(
    ("layer", "told"),
    [
        (b"no archive at all, " * 99, "a layer of the package cannot be read: "),
        (gzip.compress(PACKAGE)[:-20], "a layer of the package cannot be read: "),
        (b"\x1f\x8bx", "a layer of the package cannot be read: "),
        (
            gzip.compress(archive(*((str(number), b"") for number in range(10_001)))),
            "a layer of the package has more than 10000 members",
        ),
    ],
    ids=["no archive", "cut", "no gzip", "many members"],
)
def test_a_layer_that_cannot_be_read_is_told(layer: bytes, told: str) -> None:
    with pytest.raises(RemoteError) as refused:
        package_stream(layer)

    assert str(refused.value).startswith(told)


def crd(group: str = "x.io", kind: str = "Disk", plural: str = "disks", **more: Any) -> Any:
    described = {
        "type": "object",
        "description": "top",
        "properties": {
            "description": {"type": "string", "description": "a property of that name"},
            "list": {"type": "array", "items": {"type": "string", "description": "entry"}},
            "any": {"anyOf": [{"type": "string", "description": "one"}]},
        },
    }
    version = {"served": True, "storage": True, "schema": {"openAPIV3Schema": described}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}", "annotations": {"a": "b"}},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural},
            "versions": [{"name": "v1", **version}, {"name": "v0", **version, "served": False}],
            "conversion": {"strategy": "None"},
        },
        "status": {},
        **more,
    }


def stream(*documents: Any, flow: bool = False) -> bytes:
    return yaml.safe_dump_all(documents, default_flow_style=flow, sort_keys=False).encode()


@pytest.mark.parametrize("flow", [False, True], ids=["as packages have it", "another layout"])
def test_crds_are_found_in_a_stream_and_other_objects_are_not(*, flow: bool) -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}
    data = stream(pod, crd(), crd(kind="Tape", plural="tapes"), pod, flow=flow)

    found = list(crd_documents("p", data))

    assert [one.group_kind for one in found] == [("x.io", "Disk"), ("x.io", "Tape")]
    assert [one.parsed()["metadata"]["name"] for one in found] == ["disks.x.io", "tapes.x.io"]


REFUSED = [
    (crd(metadata={"name": "disk.x.io"}), "is not the name disks.x.io"),
    (crd(plural="Disks"), "is not a plural with a group that names a file"),
    (crd(spec={"group": "x.io", "names": {"kind": "Disk"}}), "is not a CustomResourceDefinition"),
]


@pytest.mark.parametrize(("document", "told"), REFUSED, ids=[row[1] for row in REFUSED])
def test_a_crd_that_cannot_be_a_file_of_a_pack_is_refused(document: Any, told: str) -> None:
    (found,) = crd_documents("p", stream(document))

    with pytest.raises(InvalidInputError) as refused:
        found.parsed()

    assert str(refused.value).endswith(told)
    assert str(refused.value).startswith("p: ")


def test_a_document_that_cannot_be_read_is_told_with_its_source() -> None:
    with pytest.raises(InvalidInputError, match="p: None cannot be read: "):
        list(crd_documents("p", b"kind: CustomResourceDefinition\na: [\n"))
    broken = stream(crd()) + b"  a: [\n"
    (found,) = crd_documents("p", broken)
    with pytest.raises(InvalidInputError, match=r"p: Disk\.x\.io: None cannot be read: "):
        found.parsed()


def test_a_kind_that_no_file_can_have_is_refused() -> None:
    with pytest.raises(InvalidInputError, match=r"p: 'Dis-k\.x\.io' is not a kind with its group"):
        list(crd_documents("p", stream(crd(kind="Dis-k"), flow=True)))


def test_a_file_has_the_served_versions_without_what_says_nothing_of_fields() -> None:
    path, data = crd_file(crd(), "provider@v1", descriptions=False)
    _, described = crd_file(crd(), "provider@v1", descriptions=True)

    assert path == PurePosixPath("schemas/x.io_disks.yaml")
    assert data.startswith(b"# Written by 'orderkit kit schemas add' from provider@v1;")
    written = yaml.safe_load(data)
    assert written.keys() == {"apiVersion", "kind", "metadata", "spec"}
    assert written["metadata"] == {"name": "disks.x.io"}
    assert written["spec"].keys() == {"group", "names", "scope", "versions"}
    assert [version["name"] for version in written["spec"]["versions"]] == ["v1"]
    schema = written["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert schema["properties"] == {
        "description": {"type": "string"},
        "list": {"type": "array", "items": {"type": "string"}},
        "any": {"anyOf": [{"type": "string"}]},
    }
    assert "description" not in schema
    assert described.count(b"description:") == 5


def test_a_file_that_is_too_large_for_a_pack_is_refused() -> None:
    large = crd()
    schema = large["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"] = {"x": {"type": "string", "pattern": "a" * 1_000_000}}

    with pytest.raises(InvalidInputError, match="bytes are more than 1000000") as refused:
        crd_file(large, "p", descriptions=False)

    assert refused.value.hint == "write a smaller schema by hand"


def test_where_files_come_from_is_read_as_it_was_written() -> None:
    sources = (
        SchemaSource(package="a/b", version="v1", digest=SHA, files={"z.yaml": SHA, "b.yaml": SHA}),
        SchemaSource(folder="../crds", descriptions=True, files={"c.yaml": SHA}),
    )
    path = PurePosixPath("schemas/sources.yaml")

    data = sources_file(sources)

    assert read_sources({path: data}) == (sources[1], sources[0])
    assert sources_file(tuple(reversed(sources))) == data
    assert read_sources({}) == ()
    assert [source.name for source in sources] == ["a/b@v1", "../crds"]


def test_a_file_of_a_pack_that_is_no_crd_is_named() -> None:
    path = PurePosixPath("schemas/a.yaml")
    broken = crd()
    managed: Any = {"properties": {"forProvider": {}, "managementPolicies": {}}}
    schema = {"openAPIV3Schema": {"properties": {"spec": managed}}}
    broken["spec"] = {"group": "x.io", "versions": [{"name": "v1", "schema": schema}]}

    assert [one["metadata"]["name"] for one in read_crds({path: stream(crd())})] == ["disks.x.io"]
    with pytest.raises(InvalidInputError, match=r"^schemas/a\.yaml: None is not a Custom"):
        read_crds({path: stream(broken)})
    with pytest.raises(InvalidInputError, match=r"^schemas/a\.yaml: None cannot be read: "):
        read_crds({path: b"a: [\n"})
