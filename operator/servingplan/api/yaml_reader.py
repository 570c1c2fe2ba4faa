"""YAML as kubectl reads it, so that one file means the same to kubectl and to the command line.

Place in the flow: ``documents`` reads every file through this. In: text. Out: plain JSON values, or `Unreadable` with a
line. kubectl turns YAML into JSON with its own mixture of YAML 1.1 and 1.2; the rules below are what it was seen to
do: times (``20:00``) and dates stay text, ``on`` and ``yes`` are booleans, ``010`` is eight. Where kubectl silently
keeps the last of two equal keys, this refuses.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from ruamel.yaml.resolver import VersionedResolver
from ruamel.yaml.tag import Tag

MAX_NODES = 200_000
"""Values in one document, aliases counted each time: a small file with nested aliases cannot exhaust memory."""

_PLAIN = "!plain"
"""Tag of a scalar that is neither quoted nor tagged: its type follows from how it looks."""

_WORDS: dict[str, Any] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
}
_BASES = (
    (re.compile(r"[-+]?0[bB][01]+"), 2),
    (re.compile(r"[-+]?0[xX][0-9a-fA-F]+"), 16),
    (re.compile(r"[-+]?0[oO]?[0-7]+"), 8),
    (re.compile(r"[-+]?(0|[1-9][0-9]*)"), 10),
)
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")


class Unreadable(ValueError):
    """Text that is no YAML, or YAML that is no JSON. `line` counts from 1; 0 where it is not known."""

    def __init__(self, message: str, line: int = 0) -> None:
        super().__init__(message)
        self.line = line


class _PlainResolver(VersionedResolver):
    """Leaves the type of plain scalars to `_plain`."""

    def resolve(self, kind: Any, value: Any, implicit: Any) -> Any:
        """The tag of a node that has none of its own."""
        if kind is ScalarNode and implicit[0]:
            return Tag(suffix=_PLAIN)
        return super().resolve(kind, value, (False, True))


def read_yaml(text: str) -> Iterator[tuple[int, Any]]:
    """Each document that is not empty, with the line on which it starts. Raises Unreadable."""
    yaml = YAML(typ="safe", pure=True)
    yaml.Resolver = _PlainResolver
    try:
        for node in yaml.compose_all(text):
            value = None if node is None else _Builder().value(node)
            if value is not None:
                yield node.start_mark.line + 1, value
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise Unreadable(_words(error), mark.line + 1 if mark else 0) from error
    except YAMLError as error:
        raise Unreadable(str(error).splitlines()[0]) from error
    except RecursionError as error:
        raise Unreadable("it is nested too deeply") from error


def _words(error: MarkedYAMLError) -> str:
    parts = (error.context, error.problem)
    return ", ".join(str(part) for part in parts if part) or "it is no YAML"


class _Builder:
    """Turns the nodes of one document into values, and counts them."""

    def __init__(self) -> None:
        self._left = MAX_NODES

    def value(self, node: Node) -> Any:
        self._left -= 1
        if self._left < 0:
            raise Unreadable("it has too many values once its aliases are written out", node.start_mark.line + 1)
        if isinstance(node, ScalarNode):
            return _scalar(node)
        if isinstance(node, SequenceNode):
            return [self.value(item) for item in node.value]
        if isinstance(node, MappingNode):
            return self._mapping(node)
        raise Unreadable(f"it has a value of an unknown kind {node.tag}", node.start_mark.line + 1)

    def _mapping(self, node: MappingNode) -> dict[str, Any]:
        values: dict[str, Any] = {}
        own: set[str] = set()
        for key_node, value_node in node.value:
            if _is_merge(key_node):
                # kubectl lets a later '<<' win over keys before it.
                values |= self._merged(value_node)
                continue
            key = _key(key_node)
            if key in own:
                raise Unreadable(f"the key {key!r} is stated twice: keep one", key_node.start_mark.line + 1)
            own.add(key)
            values[key] = self.value(value_node)
        return values

    def _merged(self, node: Node) -> dict[str, Any]:
        """``<<: *alias`` or a list of them, the first winning."""
        sources = node.value if isinstance(node, SequenceNode) else [node]
        merged: dict[str, Any] = {}
        for source in sources:
            value = self.value(source)
            if not isinstance(value, dict):
                raise Unreadable("'<<' must name an object", node.start_mark.line + 1)
            merged = {**value, **merged}
        return merged


def _is_merge(node: Node) -> bool:
    return isinstance(node, ScalarNode) and node.tag == _PLAIN and node.value == "<<"


def _key(node: Node) -> str:
    """JSON has text keys: ``1`` is "1" and ``on`` is "true"."""
    if not isinstance(node, ScalarNode):
        raise Unreadable("a key must be a single word", node.start_mark.line + 1)
    key = _scalar(node)
    if isinstance(key, bool) or key is None:
        return {True: "true", False: "false", None: "null"}[key]
    return str(key)


def _scalar(node: ScalarNode) -> Any:
    line = node.start_mark.line + 1
    read = _TAGGED.get(str(node.tag).rpartition(":")[2])
    if read is None:
        raise Unreadable(f"the tag {node.tag} is not known here: remove it", line)
    try:
        return read(node.value)
    except ValueError as error:
        raise Unreadable(str(error), line) from error


def _plain(text: str) -> Any:
    if text in _WORDS:
        return _WORDS[text]
    if _NOT_FINITE.fullmatch(text):
        raise ValueError(f"{text} is not a number in JSON: write a finite number")
    digits = text.replace("_", "")
    if text[0] not in "+-.0123456789" or not digits:
        return text
    for pattern, base in _BASES:
        if pattern.fullmatch(digits):
            return int(re.sub(r"0[bBxXoO]", "", digits, count=1) if base != 10 else digits, base)
    if _FLOAT.fullmatch(digits):
        return _float(digits)
    return text


def _float(digits: str) -> float:
    number = float(digits)
    if number in {float("inf"), float("-inf")}:
        raise ValueError(f"{digits} is too large")
    return number


def _binary(text: str) -> str:
    return base64.b64decode(text, validate=False).decode("utf-8")


_TAGGED: dict[str, Callable[[str], Any]] = {
    _PLAIN: _plain,
    "!": str,
    "str": str,
    "timestamp": str,
    "binary": _binary,
    "null": _plain,
    "bool": _plain,
    "int": _plain,
    "float": _plain,
}
