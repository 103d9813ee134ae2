"""The bundle's file: round trip, and refusal of anything else."""

from __future__ import annotations

import gzip
import io
import tarfile
import tempfile
import tracemalloc
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeyard.bundle.model import GVR, HOST, Bundle, BundleError, Omission, ServedResource
from nodeyard.bundle.reader import LIMITS, Limits, read_bundle
from nodeyard.bundle.writer import BundleWriter
from nodeyard.kube.json import Object

NOW = datetime(2026, 11, 19, 12, tzinfo=UTC)
NODES = GVR("", "v1", "nodes")
SERVED = ServedResource("", "v1", "nodes", "Node", False, "node", ("no",), (), ("get", "list"), ("status",))


def node(name: str, **more: object) -> Object:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, **more}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "bundle.tgz"


def write(path: Path, nodes: Iterable[Object] = (), leaf: Iterable[Object] = ()) -> None:
    with BundleWriter(path, created_at=NOW, nodeyard_version="0.1.0") as writer:
        writer.add_cluster(HOST, [SERVED], {"gitVersion": "v1.36.4"})
        writer.add_objects(HOST, NODES, nodes)
        writer.add_cluster("east", [SERVED], {}, "no answer")
        writer.add_objects("east", NODES, leaf)
        writer.add_document("plans", [{"id": "1"}])
        writer.omit(Omission("pods", "forbidden"))


def members(path: Path) -> dict[str, bytes]:
    with tarfile.open(path) as archive:
        return {each.name: archive.extractfile(each).read() for each in archive}  # type: ignore[union-attr]


def pack(
    path: Path, entries: Iterable[tuple[str | tarfile.TarInfo, bytes]], format: int = tarfile.USTAR_FORMAT
) -> None:
    with tarfile.open(path, "w:gz", format=format) as archive:
        for name, content in entries:
            entry = tarfile.TarInfo(name) if isinstance(name, str) else name
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))


def refusal(path: Path, limits: Limits = LIMITS) -> str:
    """Return why the bundle is refused: one line that names the file."""
    before = sorted(path.parent.iterdir())
    with pytest.raises(BundleError) as raised:
        read_bundle(path, limits)
    assert sorted(path.parent.iterdir()) == before, "reading wrote something"
    text = str(raised.value)
    assert text.startswith(f"{path}: ")
    assert "\n" not in text
    return text.removeprefix(f"{path}: ")


# round trip


def test_reads_what_was_written(path: Path) -> None:
    write(path, [node("n1", status={"a": 1.5}), node("n2")], [node("l1")])
    bundle: Bundle = read_bundle(path)
    assert bundle.manifest.created_at == NOW
    assert [str(each) for each in bundle.manifest.omitted] == ["pods: forbidden"]
    assert list(bundle.cluster.objects[NODES]) == [node("n1", status={"a": 1.5}), node("n2")]
    assert bundle.cluster.version == {"gitVersion": "v1.36.4"}
    assert bundle.cluster.catalog().find("no").resource.kind == "Node"
    assert list(bundle.clusters["east"].objects[NODES]) == [node("l1")]
    assert bundle.clusters["east"].error == "no answer"
    assert bundle.documents == {"plans": [{"id": "1"}]}


def test_a_resource_without_objects_differs_from_one_that_was_not_read(path: Path) -> None:
    write(path)
    objects = read_bundle(path).cluster.objects
    assert len(objects[NODES]) == 0
    assert GVR("", "v1", "pods") not in objects


def test_tar_lists_the_manifest_first(path: Path) -> None:
    write(path, [node("n1")])
    assert list(members(path)) == [
        "manifest.json", "cluster/resources.json", "cluster/000-nodes.jsonl", "clusters/001/resources.json",
        "clusters/001/000-nodes.jsonl", "documents/plans.json",
    ]  # fmt: skip
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_failed_write_keeps_the_old_file(path: Path) -> None:
    write(path, [node("old")])
    with pytest.raises(TypeError):
        write(path, [node("new", unencodable=object())])
    assert [each["metadata"]["name"] for each in read_bundle(path).cluster.objects[NODES]] == ["old"]
    assert list(path.parent.iterdir()) == [path]


def test_a_directory_that_does_not_exist_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match=r"bundle\.tgz: cannot be written: No such file or directory"):
        write(tmp_path / "missing" / "bundle.tgz")


# damaged files


def test_every_truncation_is_refused(path: Path) -> None:
    write(path, [node(f"n{each}") for each in range(3)])
    whole = path.read_bytes()
    for size in range(0, len(whole), 7):
        path.write_bytes(whole[:size])
        assert "truncated" in refusal(path) or size == 0


def test_a_flipped_byte_is_refused(path: Path) -> None:
    write(path, [node("n1")])
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(content)
    refusal(path)


def test_other_files_are_refused(path: Path, tmp_path: Path) -> None:
    path.write_bytes(b"PK\x03\x04 a zip file")
    assert "no bundle" in refusal(path)
    path.write_bytes(gzip.compress(b"no tar" * 200))
    assert "tar header is damaged" in refusal(path)
    pack(path, [("README", b"hello")])
    assert "has a name that no bundle uses" in refusal(path)
    pack(path, [("readme", b"hello")])
    assert "first member is not manifest.json" in refusal(path)
    with pytest.raises(BundleError, match="cannot be read: Is a directory"):
        read_bundle(tmp_path)
    with pytest.raises(BundleError, match="cannot be read: No such file"):
        read_bundle(tmp_path / "missing.tgz")


# hostile files


def repacked(path: Path, change: Callable[[dict[str, bytes]], object]) -> None:
    """Write a good bundle, and pack it again with changed members."""
    write(path, [node("n1"), node("n2")])
    content = members(path)
    change(content)
    pack(path, content.items())


def edit_manifest(**values: object) -> Callable[[dict[str, bytes]], None]:
    def change(content: dict[str, bytes]) -> None:
        manifest = msgspec.json.decode(content["manifest.json"])
        content["manifest.json"] = msgspec.json.encode({**manifest, **values})

    return change


def test_a_newer_version_is_refused_with_the_remedy(path: Path) -> None:
    repacked(path, edit_manifest(formatVersion=2, clusters="of another shape"))
    assert "format version 2 is newer than 1; read it with a newer nodeyard" in refusal(path)


def test_a_manifest_of_another_shape_is_refused(path: Path) -> None:
    for values in ({"clusters": []}, {"clusters": 1}, {"kind": "List"}, {"createdAt": "yesterday"}):
        repacked(path, edit_manifest(**values))
        refusal(path)


@pytest.mark.parametrize("name", ["../../etc/passwd", "/etc/passwd", "cluster/../../x", "a\nb", "x" * 99, "cluster//x"])
def test_names_that_leave_the_archive_are_refused(path: Path, name: str) -> None:
    repacked(path, lambda content: content.update({name: b"{}"}))
    assert "has a name that no bundle uses" in refusal(path)


@pytest.mark.parametrize("type", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE])
def test_links_directories_and_devices_are_refused(path: Path, type: bytes) -> None:
    write(path)
    content = members(path)
    link = tarfile.TarInfo("cluster/x")
    link.type, link.linkname = type, "/etc/passwd"
    pack(path, [*content.items(), (link, b"")])
    assert "is a link, directory or device" in refusal(path)


def test_extended_headers_are_refused_before_they_are_read(path: Path) -> None:
    write(path)
    pack(path, [*members(path).items(), ("é" * 200, b"")], format=tarfile.PAX_FORMAT)
    assert "extended header" in refusal(path)


def test_unknown_missing_and_repeated_members_are_refused(path: Path) -> None:
    repacked(path, lambda content: content.update({"extra.json": b"{}"}))
    assert "extra.json' is not in the manifest" in refusal(path)
    repacked(path, lambda content: content.pop("documents/plans.json"))
    assert "documents/plans.json of the manifest is missing" in refusal(path)
    write(path)
    entries = list(members(path).items())
    pack(path, [*entries, entries[-1]])
    assert "is there twice" in refusal(path)


def test_counts_that_do_not_match_are_refused(path: Path) -> None:
    file = "cluster/000-nodes.jsonl"
    repacked(path, lambda content: content.update({file: content[file].splitlines(True)[0]}))
    assert "has 1 objects, and the manifest says 2" in refusal(path)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"[]", "is no Kubernetes object"),
        (b'{"apiVersion": "v1"}', "is no Kubernetes object"),
        (b"{", "is no Kubernetes object"),
        (b'{"apiVersion": "apps/v1", "kind": "Node", "metadata": {"name": "n"}}', "has apiVersion 'apps/v1'"),
        (
            b'{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "x": %b%b}' % (b"[" * 600, b"]" * 600),
            "nested too deeply",
        ),
        (
            b'{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "x": %b%b}' % (b"[" * 9999, b"]" * 9999),
            "is no Kubernetes object",
        ),
    ],
)
def test_lines_that_are_no_objects_are_refused(path: Path, line: bytes, why: str) -> None:
    file = "cluster/000-nodes.jsonl"
    repacked(path, lambda content: content.update({file: content[file].splitlines(True)[0] + line + b"\n"}))
    assert why in refusal(path)


def test_a_huge_object_is_refused(path: Path) -> None:
    write(path, [node("n1", text="x" * 3000)])
    assert "an object is larger than 1000 bytes" in refusal(path, Limits(object_bytes=1000))
    write(path, [node("n1", text="x" * (5 << 20))])
    assert "an object is larger than 4194304 bytes" in refusal(path)


def test_a_zip_bomb_is_refused_early(path: Path) -> None:
    write(path, (node(f"n{each}", text="x" * 4000) for each in range(20_000)))
    assert path.stat().st_size < 1 << 20
    assert "compressed by more than" in refusal(path, Limits(ratio=50))
    assert "bytes after decompression" in refusal(path, Limits(total_bytes=1 << 20))


def test_zeros_behind_the_end_are_read_within_limits(path: Path) -> None:
    write(path)
    with path.open("ab") as file, gzip.GzipFile(fileobj=file, mode="wb") as stream:
        for _ in range(64):
            stream.write(bytes(1 << 20))
    assert "compressed by more than" in refusal(path)


def test_too_many_members_are_refused(path: Path) -> None:
    write(path)
    assert "it has 5 members; at most 4 are read" in refusal(path, Limits(members=4))


def test_a_declared_size_of_gigabytes_is_refused(path: Path) -> None:
    write(path)
    content = members(path)
    head = io.BytesIO()
    with tarfile.open(fileobj=head, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        entry = tarfile.TarInfo("manifest.json")
        entry.size = len(content["manifest.json"])
        archive.addfile(entry, io.BytesIO(content["manifest.json"]))
    liar = tarfile.TarInfo("documents/plans.json")
    liar.size = (8 << 30) - 1
    padded = -(-len(content["manifest.json"]) // 512) * 512 + 512
    path.write_bytes(gzip.compress(head.getvalue()[:padded] + liar.tobuf(tarfile.USTAR_FORMAT)))
    assert "documents/plans.json: is larger than" in refusal(path)


def test_a_manifest_of_millions_of_members_is_refused_before_it_is_decoded(path: Path) -> None:
    entry = b'{"file":"a/b","group":"","version":"v1","resource":"nodes","count":0},'
    repacked(path, lambda content: content.update({"manifest.json": b"[" + entry * 1_000_000 + b"{}]"}))
    tracemalloc.start()
    try:
        assert "manifest.json: manifest and resources have more than" in refusal(path)
        assert tracemalloc.get_traced_memory()[1] < 32 << 20
    finally:
        tracemalloc.stop()


def test_a_document_takes_the_memory_of_its_text_until_it_is_asked_for(path: Path) -> None:
    repacked(path, lambda content: content.update({"documents/plans.json": b"[" + b"{}," * 3_000_000 + b"{}]"}))
    tracemalloc.start()
    try:
        found = read_bundle(path)
        assert tracemalloc.get_traced_memory()[1] < 48 << 20
    finally:
        tracemalloc.stop()
    assert list(found.documents) == ["plans"]


def test_a_document_that_is_no_json_is_refused(path: Path) -> None:
    repacked(path, lambda content: content.update({"documents/plans.json": b'{"a": tru}'}))
    assert "documents/plans.json: JSON is malformed" in refusal(path)


@pytest.fixture(scope="module")
def good() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder, "bundle.tgz"), [node("n1", status={"a": [1, "b"]}), node("n2")], [node("l1")])
        return gzip.decompress(Path(folder, "bundle.tgz").read_bytes())


@given(st.data())
def test_any_change_is_read_or_refused(
    good: bytes, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    content = bytearray(good)
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(content) - 1))
        match data.draw(st.sampled_from(["replace", "insert", "delete", "cut", "repeat"])):
            case "replace":
                content[place] = data.draw(st.integers(0, 255))
            case "insert":
                content[place:place] = data.draw(st.binary(max_size=600))
            case "delete":
                del content[place : place + data.draw(st.integers(1, 600))]
            case "cut":
                del content[place:]
            case "repeat":
                content[place:place] = content[place : place + 512]
        if not content:
            break
    changed = tmp_path_factory.getbasetemp() / "changed.tgz"
    changed.write_bytes(gzip.compress(bytes(content), 1))
    text, read = outcome(changed)
    assert "\n" not in text
    assert all(isinstance(each, dict) for each in read)


def outcome(path: Path) -> tuple[str, list[Object]]:
    """Return why the bundle is refused, or its objects."""
    try:
        cluster = read_bundle(path).cluster
    except BundleError as error:
        return str(error), []
    return "", [each for objects in cluster.objects.values() for each in objects]
