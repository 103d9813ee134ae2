"""docs/admission.md: its example runs, and the names in its tables exist."""

import inspect
import re
from pathlib import Path

import pytest

from nodeyard.runtime import capability, webhooks

PAGE = (Path(__file__).parents[2] / "docs" / "admission.md").read_text()
EXAMPLE = re.search(r"```python\n(.*?)```", PAGE, re.S)
SIGNATURES = re.findall(r"^\| `(\w+)\(([^`]*)\)` \|", PAGE, re.M)
METHODS = re.findall(r"`response\.(\w+)\(", PAGE)


def test_the_example_defines_a_webhook():
    names: dict[str, object] = {}
    assert EXAMPLE is not None
    exec(EXAMPLE[1], names)

    assert isinstance(names["WEBHOOKS"], tuple)
    assert capability.Admission(webhooks=names["WEBHOOKS"]).webhooks[0].full_name("affinity") in PAGE


@pytest.mark.parametrize(("name", "parameters"), SIGNATURES)
def test_every_signature_is_that_of_the_code(name, parameters):
    shown = re.findall(r"(?:^|, )\*?(\w+)", re.sub(r"=(\([^)]*\)|\{\}|\"[^\"]*\"|[^,]*)", "", parameters))

    assert shown == list(inspect.signature(getattr(webhooks, name)).parameters)


def test_every_method_of_a_response_exists():
    assert len(METHODS) == 4
    assert [name for name in METHODS if not hasattr(webhooks.AdmissionResponse, name)] == []
