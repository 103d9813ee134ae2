"""Files of manifests: what they may contain, and errors that name the file."""

import pytest

from nodeyard.app.files import FileError, read


def written(tmp_path, text):
    path = tmp_path / "given.yaml"
    path.write_text(text)
    return path


def test_every_document_is_read_with_where_it_stands(tmp_path):
    documents = [f"{{apiVersion: v1, kind: Node, metadata: {{name: n{each}}}}}" for each in (1, 2)]
    path = written(tmp_path, "---\n".join(["", *(f"{each}\n" for each in documents), "# nothing\n"]))
    assert [where for where, _ in read([path])] == [f"{path}: Node n1", f"{path}: Node n2"]


@pytest.mark.parametrize(
    "text",
    [
        "{apiVersion: v1, kind: Node, metadata: [a]}",
        "{apiVersion: v1, kind: [Node], metadata: {name: a}}",
        "{apiVersion: 1, kind: Node, metadata: {name: a}}",
        "{apiVersion: v1, kind: Node, metadata: {name: 12}}",
        "{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: 5}}",
        "{apiVersion: v1, kind: List, items: [1, x]}",
        "{apiVersion: v1, kind: List, items: {a: b}}",
        "{kind: Node, metadata: {name: a}}",
    ],
)
def test_a_document_that_is_no_object_is_refused_with_the_file_name(tmp_path, text):
    path = written(tmp_path, text)
    with pytest.raises(FileError, match=f"^{path}: an object needs apiVersion, kind and metadata.name"):
        read([path])
