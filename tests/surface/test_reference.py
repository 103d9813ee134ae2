"""docs/reference is generated from the code: commands, fields, reasons, metrics and alerts are public."""

import pytest
from tools import reference

from nodeyard.plan.reasons import EngineReason

PAGES = dict(reference.pages())


@pytest.mark.parametrize("name", PAGES)
def test_the_page_has_not_drifted(name):
    assert (reference.FOLDER / name).read_text() == PAGES[name], (
        "run `make crds`; a change that users notice gets a line in CHANGELOG.md"
    )


def test_there_are_no_other_pages():
    assert {path.name for path in reference.FOLDER.iterdir()} == PAGES.keys()


def test_every_problem_names_cause_remedy_and_a_command():
    rows = [line.strip("| ").split(" | ") for line in PAGES["reasons.md"].splitlines() if line.startswith("| `")]
    problems = [row for row in rows if len(row) > 2]
    assert len(problems) > 100
    assert [row for row in problems if len(row) != 5 or not all(row)] == []


def test_a_reason_that_nobody_has_described_is_refused():
    written = {"object": "KIND/NAME", "states": {"NotServed": "x"}}
    with pytest.raises(ValueError, match="engine lacks, does not know or repeats AdmissionDenied, ApprovalRemoved"):
        reference.reasons_of("engine", written, EngineReason)


def test_every_kind_and_field_is_described():
    rows = [line for line in PAGES["api.md"].splitlines() if line.startswith("| `")]
    assert len(rows) > 400
    assert [row for row in rows if row.endswith("|  |")] == []
