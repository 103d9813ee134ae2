"""Reads announced template changes from CHANGELOG: a new template name replaces every node of a pool on upgrade.

CHANGELOG lists the golden clusters whose nodes a release replaces, before the dash:

    ## Unreleased
    ### Replaces nodes
    - aws-plain, aws-classes - the root volume is encrypted
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_SECTION = re.compile(r"^## Unreleased$(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
_REPLACES = re.compile(r"^### Replaces nodes$(.*?)(?=^### |\Z)", re.MULTILINE | re.DOTALL)

Names = Mapping[str, Mapping[str, str]]
"""Template names of golden clusters, by owner and kind."""


def announced(changelog: str) -> set[str]:
    """The golden clusters whose nodes the unreleased changes replace."""
    section = _SECTION.search(changelog)
    replaces = _REPLACES.search(section[1]) if section else None
    lines = replaces[1].splitlines() if replaces else []
    return {
        name.strip()
        for line in lines
        if line.startswith("- ")
        for name in line.removeprefix("- ").partition(" - ")[0].split(",")
    }


def unannounced(stored: Names, generated: Names, changelog: str) -> list[str]:
    """The golden clusters whose template names changed, or which are gone, without a line in CHANGELOG."""
    listed = announced(changelog)
    return [name for name in stored if stored[name] != generated.get(name) and name not in listed]
