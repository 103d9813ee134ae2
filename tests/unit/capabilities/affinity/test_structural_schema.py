"""Conversion of JSON schema: rewritten keywords, omitted and reported ones, and preserved fields."""

import json

import pytest

from nodeyard.capabilities.affinity import names
from nodeyard.capabilities.affinity.planning.structural_schema import SchemaError, structural

PRESERVE = "x-kubernetes-preserve-unknown-fields"
INT_OR_STRING = "x-kubernetes-int-or-string"
ANY = {PRESERVE: True}
OPEN = {"type": "object", PRESERVE: True}


def of(**properties):
    """Convert the properties of a spec; return them with the omitted keywords."""
    schema, left_out = structural(json.dumps({"type": "object", "properties": properties}))
    return {name: schema["properties"][name] for name in properties}, list(left_out)


KEPT = [
    ("a text with limits", {"type": "string", "minLength": 1, "maxLength": 9, "pattern": "^a", "format": "uri"}, ...),
    ("a number with limits", {"type": "number", "minimum": 0.5, "maximum": 3, "multipleOf": 0.5}, ...),
    ("a choice", {"type": "string", "enum": ["a", "b"], "default": "b"}, ...),
    ("a list", {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 3}, ...),
    ("a map", {"type": "object", "additionalProperties": {"type": "string"}, "maxProperties": 3}, ...),
    ("words", {"type": "boolean", "title": "t", "description": "d"}, ...),
    ("a nullable", {"type": "string", "nullable": True}, ...),
    ("a quantity", {INT_OR_STRING: True, "pattern": "^[0-9]+$"}, ...),
    ("an object", {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
     {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], PRESERVE: True}),
    ("a restriction", {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
                       "oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
     {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}, PRESERVE: True,
      "oneOf": [{"required": ["a"]}, {"required": ["b"]}]}),
    ("a restriction that repeats the type", {"type": "string", "anyOf": [{"type": "string", "minLength": 2}]},
     {"type": "string", "anyOf": [{"minLength": 2}]}),
    ("what must not be", {"type": "string", "not": {"enum": ["x"]}}, ...),
]  # fmt: skip


@pytest.mark.parametrize(("given", "made"), [each[1:] for each in KEPT], ids=[each[0] for each in KEPT])
def test_supported_schema_parts_are_kept(given, made):
    assert of(field=given) == ({"field": given if made is ... else made}, [])


SAID_OTHERWISE = [
    ("null beside a type", {"type": ["object", "null"]}, {**OPEN, "nullable": True}),
    ("integer or string", {"type": ["integer", "string"]}, {INT_OR_STRING: True}),
    ("the same by cases", {"anyOf": [{"type": "integer"}, {"type": "string"}]}, {INT_OR_STRING: True}),
    ("CozyStack's quantity", {"anyOf": [{"type": "integer"}, {"type": "string"}], INT_OR_STRING: True},
     {INT_OR_STRING: True}),
    ("a constant", {"type": "string", "const": "a"}, {"type": "string", "enum": ["a"]}),
    ("an exclusive limit", {"type": "integer", "exclusiveMinimum": 5},
     {"type": "integer", "minimum": 5, "exclusiveMinimum": True}),
    ("an exclusive limit of old", {"type": "integer", "maximum": 5, "exclusiveMaximum": True},
     {"type": "integer", "maximum": 5, "exclusiveMaximum": True}),
    ("whole numbers", {"type": "number", "minimum": 1.0, "default": 2.0},
     {"type": "number", "minimum": 1, "default": 2}),
    ("an object of anything", {"type": "object"}, OPEN),
    ("an object of anything, said", {"type": "object", "additionalProperties": True}, OPEN),
    ("an object of nothing else", {"type": "object", "properties": {"a": {"type": "string"}},
                                   "additionalProperties": False},
     {"type": "object", "properties": {"a": {"type": "string"}}}),
    ("a list of anything", {"type": "array"}, {"type": "array", "items": ANY}),
    ("anything", {}, ANY),
    ("anything, said", True, ANY),
    ("anything, described", {"description": "d"}, {"description": "d", **ANY}),
    ("an object by its fields", {"properties": {"a": True}}, {**OPEN, "properties": {"a": ANY}}),
    ("what restricts nothing", {"type": "string", "$comment": "c", "examples": ["e"], "$id": "i"}, {"type": "string"}),
    ("a null default", {"type": "string", "default": None}, {"type": "string"}),
    ("a choice named twice", {"type": "integer", "enum": [1, 1.0, 2]}, {"type": "integer", "enum": [1, 2]}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("given", "made"), [each[1:] for each in SAID_OTHERWISE], ids=[each[0] for each in SAID_OTHERWISE]
)
def test_differing_schema_parts_are_converted(given, made):
    assert of(field=given) == ({"field": made}, [])


LEFT_OUT = [
    ("several types", {"type": ["string", "boolean"]}, ANY, ["type"]),
    ("an unknown type", {"type": "date"}, ANY, ["type"]),
    ("a reference", {"$ref": "#/definitions/x"}, ANY, ["$ref"]),
    ("patterns of keys, which stay open", {"type": "object", "properties": {"a": True}, "additionalProperties": False,
                                           "patternProperties": {"^b": True}},
     {**OPEN, "properties": {"a": ANY}}, ["patternProperties"]),
    ("a map beside fields", {"type": "object", "properties": {"a": True}, "additionalProperties": {"type": "string"}},
     {**OPEN, "properties": {"a": ANY}}, ["additionalProperties"]),
    ("unique items", {"type": "array", "items": True, "uniqueItems": True}, {"type": "array", "items": ANY},
     ["uniqueItems"]),
    ("a pattern Go does not know", {"type": "string", "pattern": "(?=a)"}, {"type": "string"}, ["pattern"]),
    ("rules in CEL", {"type": "string", "x-kubernetes-validations": [{"rule": "true"}]}, {"type": "string"},
     ["x-kubernetes-validations"]),
    ("a default that does not fit", {"type": "integer", "minimum": 5, "default": 1}, {"type": "integer", "minimum": 5},
     ["default"]),
    ("a default of another type", {"type": "object", "default": "x"}, OPEN, ["default"]),
    ("a branch with a type of its own", {"type": "object", "oneOf": [{"type": "string"}]}, OPEN, ["oneOf"]),
    ("a branch about an undeclared field", {"type": "object", "anyOf": [{"properties": {"x": {"minimum": 1}}}]}, OPEN,
     ["anyOf"]),
    ("a branch that would be half a branch", {"type": "string", "not": {"minLength": 3, "contentEncoding": "b"}},
     {"type": "string"}, ["not"]),
    ("a negative length", {"type": "string", "maxLength": -1}, {"type": "string"}, ["maxLength"]),
    ("a limit that is none", {"type": "integer", "minimum": "5"}, {"type": "integer"}, ["minimum"]),
    ("an empty choice", {"type": "string", "enum": []}, {"type": "string"}, ["enum"]),
    ("cases", {"type": "string", "if": {}, "then": {}}, {"type": "string"}, ["if", "then"]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("given", "made", "keywords"), [each[1:] for each in LEFT_OUT], ids=[each[0] for each in LEFT_OUT]
)
def test_unsupported_schema_parts_are_left_out_and_named(given, made, keywords):
    assert of(field=given) == ({"field": made}, [f"{keyword} of spec.field" for keyword in keywords])


def test_parts_left_out_are_named_by_their_path():
    deep = {"type": "object", "additionalProperties": {"type": "array", "items": {"type": "string", "$ref": "x"}}}
    assert of(users=deep)[1] == ["$ref of spec.users.*[]"]


def test_a_schema_nested_too_deep_ends_open():
    deep = {"type": "string"}
    for _ in range(80):
        deep = {"type": "object", "properties": {"a": deep}}
    assert of(field=deep)[1] == [f"the schema of spec.field{'.a' * 48}"]


# the spec itself


def test_the_class_field_always_has_our_schema():
    given = {"type": "string", "default": "", "enum": ["", "dc1"], "description": "Where."}
    schema, left_out = structural(json.dumps({"properties": {names.CLASS_FIELD: given}}))
    made = schema["properties"][names.CLASS_FIELD]
    assert (made["type"], made["maxLength"], made["description"]) == ("string", 63, "Where.")
    assert "default" not in made
    assert "enum" not in made
    assert left_out == (f"default of spec.{names.CLASS_FIELD}", f"enum of spec.{names.CLASS_FIELD}")


@pytest.mark.parametrize("text", ["", "  ", "{}", '{"type": "object"}', '{"type": ["object", "null"]}'])
def test_a_spec_is_an_object_that_is_open_and_has_a_class(text):
    schema, left_out = structural(text)
    assert (schema["type"], schema[PRESERVE], list(schema["properties"])) == ("object", True, [names.CLASS_FIELD])
    assert "nullable" not in schema
    assert left_out == ()


def test_keys_of_the_platform_and_a_default_of_the_whole_are_dropped():
    given = {
        "properties": {"_scheduling": {}, "a": True},
        "required": ["_cluster", "a"],
        "default": {"_scheduling": {}},
    }
    schema, left_out = structural(json.dumps(given))
    assert sorted(schema["properties"]) == ["a", names.CLASS_FIELD]
    assert schema["required"] == ["a"]
    assert "default" not in schema
    assert left_out == ("properties[_scheduling] of spec", "default of spec")


@pytest.mark.parametrize(
    ("text", "said"),
    [("{", "not JSON"), ("[]", "not a JSON object"), ("true", "not a JSON object"), ('{"type": "string"}', "its type"),
     ("[" * 100_000, "not JSON")],
    ids=["cut-off", "list", "boolean", "text", "deep"],
)  # fmt: skip
def test_a_schema_of_a_non_object_is_refused(text, said):
    with pytest.raises(SchemaError, match=said):
        structural(text)


# defaults


ENDLESS = "^([a-z0-9]+-?)+$"
# Enough for `re` to take some seconds, not hours.
UNMATCHED = "a" * 26 + "!"


FITTING = [
    ("a text", {"type": "string", "pattern": ENDLESS, "default": "a-b"}),
    ("a quantity", {INT_OR_STRING: True, "pattern": "^[0-9]+Gi$", "default": "10Gi"}),
    ("a number that might be text", {INT_OR_STRING: True, "pattern": "^[0-9]+Gi$", "default": 10}),
    ("a list", {"type": "array", "items": {"type": "string", "pattern": ENDLESS}, "default": ["a", "b"]}),
    ("a map", {"type": "object", "additionalProperties": {"type": "string", "pattern": "^a"}, "default": {"x": "a"}}),
    ("without the field that has the pattern",
     {"type": "object", "properties": {"a": {"type": "string", "pattern": "^a", "default": "a"},
                                       "b": {"type": "string", "anyOf": [{"pattern": "^b"}]}},
      PRESERVE: True, "default": {}}),
]  # fmt: skip


@pytest.mark.parametrize("given", [each[1] for each in FITTING], ids=[each[0] for each in FITTING])
def test_a_default_that_its_patterns_match_is_kept(given):
    assert of(field=given) == ({"field": given}, [])


UNFITTING = [
    ("a text", {"type": "string", "pattern": ENDLESS, "default": UNMATCHED}),
    ("a list", {"type": "array", "items": {"type": "string", "pattern": ENDLESS}, "default": ["a", UNMATCHED]}),
    ("a field", {"type": "object", "properties": {"a": {"type": "string", "pattern": ENDLESS}},
                 PRESERVE: True, "default": {"a": UNMATCHED}}),
    ("a map", {"type": "object", "additionalProperties": {"type": "string", "pattern": ENDLESS},
               "default": {"x": UNMATCHED}}),
    ("by cases, which are not judged", {"type": "string", "anyOf": [{"pattern": ENDLESS}], "default": UNMATCHED}),
    ("a text too long to search", {"type": "string", "pattern": "^a", "default": "a" * 5000}),
    ("an address that could be parted in many ways", {"type": "string", "format": "email", "default": "a " * 26}),
    ("a number beyond all", {"type": "integer", "default": 10**400}),
    ("an endless comparison",
     {"type": "array", "items": {"type": "integer", "enum": list(range(9000))}, "default": [1] * 9000}),
]  # fmt: skip


@pytest.mark.parametrize("given", [each[1] for each in UNFITTING], ids=[each[0] for each in UNFITTING])
def test_a_default_that_is_not_seen_to_fit_is_left_out_at_once(given):
    made = {word: said for word, said in given.items() if word != "default"}
    assert of(field=given) == ({"field": made}, ["default of spec.field"])


def test_no_pattern_of_a_user_is_compiled_for_re(monkeypatch):
    def refuse(source):
        raise AssertionError(f"compiled: {source}")

    monkeypatch.setattr("nodeyard.schema.scalars.compile_pattern", refuse)
    given = {"type": "string", "pattern": "^a", "default": "a"}
    outer = {"type": "object", "properties": {"a": given}, PRESERVE: True, "default": {"a": "ab"}}
    assert of(field=outer) == ({"field": outer}, [])


def test_only_so_many_patterns_are_searched_for():
    given = {f"f{number}": {"type": "string", "pattern": f"^{number}$", "default": f"{number}"} for number in range(99)}
    assert of(**given)[1] == [f"default of spec.f{number}" for number in range(64, 99)]


@pytest.mark.parametrize(
    "pattern", ["a" * 5000, "a{" + "9" * 4090 + "}"], ids=["longer than any that is meant", "a count without end"]
)
def test_a_pattern_out_of_all_bounds_is_left_out(pattern):
    given = {"type": "string", "pattern": pattern}
    assert of(field=given) == ({"field": {"type": "string"}}, ["pattern of spec.field"])


def test_parentheses_nest_as_deep_in_a_pattern_as_in_the_server():
    given = {"type": "string", "pattern": "(" * 900 + ")" * 900, "default": "a"}
    assert of(field=given) == ({"field": given}, [])


def test_a_schema_longer_than_any_chart_has_is_refused():
    with pytest.raises(SchemaError, match="262200 characters long, of at most 262144"):
        structural(" " * 262_200)
