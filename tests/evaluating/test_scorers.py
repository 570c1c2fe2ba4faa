"""What makes an answer right."""

from __future__ import annotations

import pytest

from servingplan.evaluating.scorers import KINDS, final_answer

TREE = {"$ref": "#/$defs/node", "$defs": {"node": {"type": "object", "additionalProperties": {"$ref": "#/$defs/node"}}}}
PERSON = {"type": "object", "required": ["name"], "properties": {"name": {"type": "string", "pattern": "^[A-Z]"}}}

CASES = {
    "exact": ("exact", {"answer": "Paris"}, "  paris\n", 1),
    "exact, other": ("exact", {"answer": "Paris"}, "Paris, France", 0),
    "exact, one of several": ("exact", {"answer": ["four", "4"]}, "4", 1),
    "exact, full-width digits": ("exact", {"answer": "42"}, "\uff14\uff12", 1),
    "exact, punctuation counts": ("exact", {"answer": "Paris"}, "Paris.", 0),
    "exact, without punctuation": ("exact", {"answer": "a-b", "normalize": ["punctuation"]}, "a b", 1),
    "exact, to the letter": ("exact", {"answer": "Paris", "normalize": []}, "paris", 0),
    "exact, after thinking": ("exact", {"answer": "4"}, "<think>2 + 2, so 5? no</think>\n4", 1),
    "choice": ("choice", {"answer": "b"}, "The answer is (B).", 1),
    "choice, other": ("choice", {"answer": "b"}, "The answer is (C).", 0),
    "choice, by text": ("choice", {"answer": "B", "choices": ["Rome", "Paris"]}, "Paris", 1),
    "choice, in thought alone": ("choice", {"answer": "B"}, "<think>the answer is B</think>", 0),
    "regex": ("regex", {"answer": r"\b42\b"}, "It is 42.", 1),
    "regex, other": ("regex", {"answer": r"\b42\b"}, "It is 421.", 0),
    "regex, without case": ("regex", {"answer": "(?i)^yes"}, "YES, it is", 1),
    "schema": ("json_schema", {"schema": PERSON}, '{"name": "Ada"}', 1),
    "schema, fenced": ("json_schema", {"schema": PERSON}, 'Here:\n```json\n{"name": "Ada"}\n```\nDone.', 1),
    "schema, the last of two": ("json_schema", {"schema": PERSON}, '```\n{"name": "A"}\n```\n```\n{}\n```', 0),
    "schema, not allowed": ("json_schema", {"schema": PERSON}, '{"name": "ada"}', 0),
    "schema, no JSON": ("json_schema", {"schema": PERSON}, "Ada", 0),
    "schema, JSON without end": ("json_schema", {"schema": PERSON}, "[" * 100_000, 0),
    "schema, within itself": ("json_schema", {"schema": TREE}, '{"a": {"b": {}}}', 1),
    "schema, deeper than anyone means": ("json_schema", {"schema": TREE}, '{"a":' * 300 + "{}" + "}" * 300, 0),
}  # fmt: skip


@pytest.mark.parametrize(("kind", "stated", "text", "score"), CASES.values(), ids=CASES)
def test_an_answer_is_scored(kind: str, stated: dict, text: str, score: float) -> None:
    scorer = KINDS[kind].made_of(stated)
    assert scorer.kind == kind
    assert scorer.score(text).score == score


def test_what_was_read_is_said() -> None:
    assert KINDS["choice"].made_of({"answer": "A"}).score("I say **C**").read == "C"
    assert KINDS["regex"].made_of({"answer": r"\d+"}).score("It is 42.").read == "42"
    assert final_answer("<think>a</think>b</think> c ") == "c"


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|aa)+$", "(.*a){12}$"])
def test_a_pattern_that_would_hang_does_not(pattern: str) -> None:
    text = "a" * 50_000 + "!"
    assert KINDS["regex"].made_of({"answer": pattern}).score(text).score == 0
    schema = {"type": "string", "pattern": f"^{pattern}"}
    assert KINDS["json_schema"].made_of({"schema": schema}).score(f'"{text}"').score == 0


WRONG = {
    "no answer": ("exact", {}, "`answer` is a text"),
    "an empty list": ("exact", {"answer": []}, "`answer` is a text"),
    "unknown step": ("exact", {"answer": "a", "normalize": ["stem"]}, "unicode, case"),
    "no letter": ("choice", {"answer": "E"}, "A, B, C, D"),
    "one choice": ("choice", {"answer": "A", "choices": ["a"]}, "2 to 26 texts"),
    "a pattern for another engine": ("regex", {"answer": "(?=a)b"}, "no look-ahead"),
    "a pattern that ends early": ("regex", {"answer": "("}, "missing )"),
    "a pattern that is too large": ("regex", {"answer": "((a{99}){99}){99}"}, "no pattern of RE2"),
    "no schema": ("json_schema", {}, "`schema` is a JSON schema"),
    "no such type": ("json_schema", {"schema": {"type": "text"}}, "no usable JSON schema"),
    "a schema from elsewhere": ("json_schema", {"schema": {"$ref": "http://example.com/s"}}, "no usable JSON schema"),
    "a schema of this machine": ("json_schema", {"schema": {"$ref": "file:///etc/passwd"}}, "no usable JSON schema"),
    "a pattern in a schema": ("json_schema", {"schema": {"pattern": "(?=a)b"}}, "no usable JSON schema"),
}


@pytest.mark.parametrize(("kind", "stated", "says"), WRONG.values(), ids=WRONG)
def test_what_cannot_score_says_what_is_wrong(kind: str, stated: dict, says: str) -> None:
    with pytest.raises(ValueError, match=says.replace(")", r"\)")):
        KINDS[kind].made_of(stated)
