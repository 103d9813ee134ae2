"""docs/reference is generated: commands, fields, metrics and alerts are public, and the code is their source."""

import pytest
from tools import reference

PAGES = dict(reference.pages())


@pytest.mark.parametrize("name", PAGES)
def test_the_page_has_not_drifted(name):
    assert (reference.FOLDER / name).read_text() == PAGES[name], (
        "run `make crds`; a change that users notice gets a line in CHANGELOG.md"
    )


def test_there_are_no_other_pages():
    assert {path.name for path in reference.FOLDER.iterdir()} == PAGES.keys()


def test_every_kind_and_field_is_described():
    rows = [line for line in PAGES["api.md"].splitlines() if line.startswith("| `")]
    assert len(rows) > 400
    assert [row for row in rows if row.endswith("|  |")] == []
