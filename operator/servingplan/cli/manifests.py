"""ScaledObjects of files, for the verbs that read them. Needs no cluster."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass

from servingplan.api.documents import Document, read_documents
from servingplan.cli.problems import in_file
from servingplan.errors import InputError, Problem
from servingplan.migrating.scaled_object import ScaledObject, is_scaled_object, scaled_object


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A ScaledObject of a file, and what KEDA refuses in it."""

    document: Document
    scaled_object: ScaledObject
    refused: Sequence[Problem]


def scaled_objects(paths: Sequence[str]) -> tuple[Found, ...]:
    """The ScaledObjects of the files, in order. Raises InputError with all problems, also where there is none."""
    documents = [d for d in read_documents(paths, standard_input=sys.stdin) if is_scaled_object(d.body)]
    if not documents:
        message = "no ScaledObject (keda.sh) in it: name a file that holds one"
        raise InputError(Problem(path=", ".join(paths), reason="NoScaledObject", message=message))
    found: list[Found] = []
    problems: list[Problem] = []
    for document in documents:
        try:
            values, refused = scaled_object(document.body, document.namespace, document.name)
        except InputError as error:
            problems += [in_file(document, problem) for problem in error.problems]
        else:
            found.append(Found(document=document, scaled_object=values, refused=refused))
    if problems:
        raise InputError(*problems)
    return tuple(found)
