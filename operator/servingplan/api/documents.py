"""Files of the command line: ServingPlans, and what they refer to.

Place in the flow: in, paths (files, directories, ``-`` for standard input); out, plans as plain JSON with what
they may refer to, ready for ``resolve``, or `InputError` with one clear problem for each file that cannot be used.
Talks to no cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TextIO

from servingplan.api.references import Kind, Reference, References, content
from servingplan.api.resolve import DEFAULT_NAMESPACE
from servingplan.api.v1alpha1 import API_VERSION, GROUP, KIND
from servingplan.api.yaml_reader import Unreadable, read_yaml
from servingplan.errors import InputError, Problem

SUFFIXES = frozenset({".yaml", ".yml", ".json"})
"""What is read of a directory."""

STANDARD_INPUT = "-"

MAX_FILE_BYTES = 16 * 1024 * 1024
"""Larger files hold no plans: the API server itself takes no object beyond 3 MiB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One object of a file. file: its name as given; line: where it starts, from 1."""

    file: str
    line: int
    body: Mapping[str, Any]

    @property
    def namespace(self) -> str:
        """The namespace that it names, or kubectl's default."""
        metadata = self.body.get("metadata")
        named = metadata.get("namespace") if isinstance(metadata, Mapping) else None
        return named if isinstance(named, str) and named else DEFAULT_NAMESPACE

    @property
    def name(self) -> str:
        """Its name; empty where it has none."""
        metadata = self.body.get("metadata")
        name = metadata.get("name") if isinstance(metadata, Mapping) else None
        return name if isinstance(name, str) else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanDocument:
    """A ServingPlan, and all that was read with it and that a plan of its namespace may refer to."""

    document: Document
    references: References


def read_plans(paths: Sequence[str], *, standard_input: TextIO) -> tuple[PlanDocument, ...]:
    """The plans of all paths, in order, each with what any of the paths holds of its namespace.

    Objects of other kinds are passed over: a file may hold a whole application. Raises InputError with a problem for
    every file that cannot be read, a name that is used twice, and for paths without any plan.
    """
    documents = read_documents(paths, standard_input=standard_input)
    plans = [document for document in documents if document.body.get("kind") == KIND]
    problems = [*_wrong_groups(plans), *_twice(documents)]
    if not plans:
        problems.append(_no_plan(paths, documents))
    if problems:
        raise InputError(*problems)
    return tuple(PlanDocument(document=plan, references=_references_of(plan.namespace, documents)) for plan in plans)


def read_documents(paths: Sequence[str], *, standard_input: TextIO) -> tuple[Document, ...]:
    """Every object of all paths, in order; lists are taken apart. Raises InputError with a problem per file."""
    documents: list[Document] = []
    problems: list[Problem] = []
    for path in paths:
        try:
            for name, text in _texts(path, standard_input):
                documents.extend(_documents_of(name, text, problems))
        except InputError as error:
            problems.extend(error.problems)
    if problems:
        raise InputError(*problems)
    return tuple(documents)


# ---- reading ----------------------------------------------------------------------------------------------


def _texts(path: str, standard_input: TextIO) -> Iterator[tuple[str, str]]:
    if path == STANDARD_INPUT:
        yield "standard input", _guarded("standard input", standard_input.read)
        return
    place = Path(path)
    files = _files_of(place) if place.is_dir() else [place]
    for file in files:
        yield str(file), _guarded(str(file), partial(_contents, file))


def _files_of(directory: Path) -> list[Path]:
    files = sorted(file for file in directory.iterdir() if file.suffix in SUFFIXES and file.is_file())
    if not files:
        raise InputError(
            Problem(
                path=str(directory),
                reason="NoDocument",
                message=f"the directory has no file that ends in {', '.join(sorted(SUFFIXES))}: name another one",
            )
        )
    return files


def _contents(file: Path) -> str:
    if file.stat().st_size > MAX_FILE_BYTES:
        raise Unreadable(f"it is larger than {MAX_FILE_BYTES // 1024 // 1024} MiB: name the file that holds the plan")
    return file.read_text(encoding="utf-8-sig")


def _guarded(name: str, read: Callable[[], str]) -> str:
    """The text, or a problem that says why there is none."""
    try:
        text = read()
    except FileNotFoundError:
        raise _unusable(name, "FileNotFound", "there is no such file: check the path") from None
    except UnicodeDecodeError:
        raise _unusable(name, "NotText", "it is not UTF-8 text: name a YAML or JSON file") from None
    except Unreadable as error:
        raise _unusable(name, "TooLarge", str(error)) from None
    except OSError as error:
        raise _unusable(name, "FileUnreadable", f"it cannot be read: {error.strerror or error}") from None
    if "\0" in text:
        raise _unusable(name, "NotText", "it is binary: name a YAML or JSON file")
    if not text.strip():
        raise _unusable(name, "FileEmpty", "it is empty: name a file that holds a ServingPlan")
    return text


def _unusable(name: str, reason: str, message: str) -> InputError:
    return InputError(Problem(path=name, reason=reason, message=message))


def _documents_of(name: str, text: str, problems: list[Problem]) -> Iterator[Document]:
    try:
        for line, value in read_yaml(text):
            yield from _objects_in(name, line, value, problems)
    except Unreadable as error:
        where = f"{name}:{error.line}" if error.line else name
        problems.append(Problem(path=where, reason="InvalidYAML", message=f"{error}: correct the file"))


def _objects_in(name: str, line: int, value: Any, problems: list[Problem]) -> Iterator[Document]:
    if not isinstance(value, Mapping) or not isinstance(value.get("kind"), str):
        message = "is no Kubernetes object: state apiVersion, kind, metadata and spec"
        problems.append(Problem(path=f"{name}:{line}", reason="NoObject", message=message))
    elif value["kind"].endswith("List") and isinstance(value.get("items"), list):
        for item in value["items"]:
            yield from _objects_in(name, line, item, problems)
    else:
        yield Document(file=name, line=line, body=value)


# ---- what the objects are ---------------------------------------------------------------------------------


def _wrong_groups(plans: Sequence[Document]) -> Iterator[Problem]:
    for plan in plans:
        stated = plan.body.get("apiVersion")
        if stated != API_VERSION:
            message = f"apiVersion is {stated!r}: this version of servingplan reads {API_VERSION}"
            yield Problem(path=f"{plan.file}:{plan.line}", reason="WrongAPIVersion", message=message)


def _twice(documents: Sequence[Document]) -> Iterator[Problem]:
    """The same name twice: kubectl would let the later one win."""
    first: dict[tuple[str, str, str], Document] = {}
    for document in documents:
        kind = document.body["kind"]
        if kind not in {KIND, *Kind} or not document.name:
            continue
        before = first.setdefault((kind, document.namespace, document.name), document)
        if before is not document:
            message = f"{kind} {document.namespace}/{document.name} is already in {before.file}:{before.line}: keep one"
            yield Problem(path=f"{document.file}:{document.line}", reason="Duplicate", message=message)


def _no_plan(paths: Sequence[str], documents: Sequence[Document]) -> Problem:
    kinds = sorted({document.body["kind"] for document in documents})
    found = f"; there are only {', '.join(kinds)}" if kinds else ""
    return Problem(
        path=", ".join(paths),
        reason="NoPlan",
        message=f"no ServingPlan ({GROUP}) in it{found}: name a file that holds one",
    )


def _references_of(namespace: str, documents: Sequence[Document]) -> References:
    return {
        Reference(kind, document.name): content(kind, document.body)
        for document in documents
        for kind in Kind
        if document.body["kind"] == kind and document.namespace == namespace
    }
