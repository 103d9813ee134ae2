"""The worked example in testbed/README.md runs as it is printed."""

import re
import subprocess
import sys
from pathlib import Path

README = (Path(__file__).parents[2] / "testbed" / "README.md").read_text()
FILES = dict(re.findall(r"```python\n# (\S+\.py)\n(.*?)```", README, re.DOTALL))


def test_the_example_passes_as_printed(tmp_path):
    assert set(FILES) == {"my_operator.py", "conftest.py", "test_my_operator.py"}
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not real"]

    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=100, check=False)

    assert done.returncode == 0, done.stdout + done.stderr
    printed = re.search(r"\$ pytest -m \"not real\"\n(.*)\n", README)[1]
    assert printed in done.stdout


def test_every_fixture_of_the_plugin_is_listed():
    plugin = (Path(__file__).parents[2] / "testbed/src/nodeyard/testing/plugin.py").read_text()
    fixtures = re.findall(r"^(?:async )?def (nodeyard_\w+)", plugin, re.MULTILINE)
    assert fixtures
    assert [name for name in fixtures if f"| `{name}` |" not in README] == []
