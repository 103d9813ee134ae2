"""Recorded answers of the real API server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from nodeyard.apiserver.cel import CompileError, EvaluationError, Expression, compile_rules
from nodeyard.apiserver.cel.types import BOOL, STRING
from nodeyard.schema.compile import compile_schema


def recorded(name: str) -> Any:
    text = (Path(__file__).parent / "recorded" / f"{name}.yaml").read_text()
    return yaml.load(text, yaml.CSafeLoader)


def source(case: dict[str, Any]) -> str:
    return str(case["expression"])


@pytest.mark.parametrize("case", recorded("expressions"), ids=source)
def test_an_expression_has_the_result_of_the_real_server(case: dict[str, Any]) -> None:
    answer: dict[str, Any]
    try:
        expression = Expression.compile(case["expression"], {"self": BOOL})
        if expression.result != BOOL:
            answer = {"refused": "cel expression must evaluate to a bool"}
        else:
            answer = {"is": expression.evaluate({"self": True})}
    except CompileError as error:
        answer = {"refused": str(error)}
    except EvaluationError as error:
        answer = {"fails": str(error)}

    said = {key: value for key, value in case.items() if key != "expression"}
    if "Syntax error: " in str(case.get("refused")):
        # Compare only the first fault; a generated parser may report more after it.
        said = {"refused": said["refused"].partition("\nERROR: ")[0]}
    assert answer == said


@pytest.mark.parametrize("case", recorded("texts"), ids=source)
def test_a_text_reads_as_the_server_writes_it(case: dict[str, Any]) -> None:
    expression = Expression.compile(case["expression"], {"self": BOOL}, [STRING])

    assert expression.evaluate({"self": True}).strip() == case["says"]


@pytest.mark.parametrize(
    "case", [case for cases in recorded("rules").values() for case in cases], ids=lambda case: case["it"]
)
def test_a_rule(case: dict[str, Any]) -> None:
    schema = compile_schema({"type": "object", "properties": {"value": case["schema"]}})
    rules, errors = compile_rules(schema)

    answer = rules.evaluate({"value": case["value"]}, {"value": case["old"]} if "old" in case else None)

    assert errors == []
    assert [str(error) for error in answer] == case["answer"]


@pytest.mark.parametrize("case", recorded("definitions"), ids=lambda case: case["finds"])
def test_a_definition_is_found_to_have(case: dict[str, Any]) -> None:
    schema = compile_schema({"type": "object", "properties": {"value": case["schema"]}})

    _, errors = compile_rules(schema, "")

    assert [str(error).replace("properties[value]", "value") for error in errors] == case["answer"]
