"""Logs, read as streams: opened, unpacked, recognised, and every line that cannot be read counted.

In: paths, ``-`` for standard input, and how to read them. Out: what was logged, in the order of the files; afterwards
`LogReading.files` says what each file was. Holds one line at a time.
"""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from servingplan.errors import InputError, Problem
from servingplan.profiling.formats.catalogue import FORMATS, recognised
from servingplan.profiling.formats.format import Context, FileRead, Format, Seen, WrongFormat
from servingplan.profiling.instants import StartMissing
from servingplan.profiling.request import Logged

STANDARD_INPUT = "-"
BROKEN_SHARE = 0.01
"""Lines that may be broken; logs are cut off in the middle of a line when they rotate, not in every hundredth."""

_GZIP = b"\x1f\x8b"
_BUFFER = 1 << 17


class LogReading:
    """Everything that files log. Iterate once; `files` grows as files end.

    form: the format of all files; None where each is recognised. broken_share: 0 to 1, of a file's lines. Iterating
    raises InputError for a file that cannot be opened or recognised, or where more lines are broken than that.
    """

    def __init__(
        self,
        paths: Sequence[str],
        context: Context,
        *,
        standard_input: BinaryIO,
        form: Format | None = None,
        broken_share: float = BROKEN_SHARE,
    ) -> None:
        self._paths = paths
        self._context = context
        self._standard_input = standard_input
        self._form = form
        self._broken_share = broken_share
        self.files: list[FileRead] = []

    def __iter__(self) -> Iterator[Logged]:
        """What was logged."""
        for path in self._paths:
            yield from self._file(path)

    def _file(self, path: str) -> Iterator[Logged]:
        name = "standard input" if path == STANDARD_INPUT else path
        try:
            with _opened(path, self._standard_input) as stream:
                yield from self._stream(name, stream)
        except StartMissing as error:
            raise _unusable(name, "StartMissing", str(error)) from error
        except FileNotFoundError:
            raise _unusable(name, "FileNotFound", "there is no such file: check the path") from None
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise _unusable(name, "FileDamaged", f"it cannot be unpacked ({error}): fetch it again") from error
        except OSError as error:
            raise _unusable(name, "FileUnreadable", f"it cannot be read: {error.strerror or error}") from error

    def _stream(self, name: str, stream: io.BufferedReader) -> Iterator[Logged]:
        form = self._form or _recognised(name, stream)
        seen, requests = Seen(file=name), 0
        lines = io.TextIOWrapper(stream, encoding="utf-8-sig", errors="replace")
        try:
            for logged in form.read(lines, self._context, seen):
                requests += 1
                yield logged
        except WrongFormat:
            raise self._too_many(form, seen) from None
        if seen.broken > seen.lines * self._broken_share:
            raise self._too_many(form, seen)
        self.files.append(
            FileRead(
                file=name,
                format=form.name,
                title=form.title,
                lines=seen.lines,
                requests=requests,
                broken=seen.broken,
                examples=tuple(seen.examples),
                passed=tuple((why.value, count) for why, count in sorted(seen.passed.items())),
            )
        )

    @staticmethod
    def _too_many(form: Format, seen: Seen) -> InputError:
        shown = "; ".join(f"line {each.line}: {each.why}" for each in seen.examples)
        message = (
            f"read as {form.title}, {seen.broken} of {seen.lines} lines are broken ({shown}): state another --format, "
            "or a larger --broken share if the rest is right"
        )
        return _unusable(seen.file, "TooManyBrokenLines", message)


@contextmanager
def _opened(path: str, standard_input: BinaryIO) -> Iterator[io.BufferedReader]:
    """The file's bytes, unpacked where they are packed."""
    with ExitStack() as stack:
        raw = standard_input if path == STANDARD_INPUT else stack.enter_context(Path(path).open("rb"))
        stream = raw if isinstance(raw, io.BufferedReader) else io.BufferedReader(cast("io.RawIOBase", raw))
        if stream.peek(2)[:2] != _GZIP:
            yield stream
            return
        unpacked = stack.enter_context(gzip.GzipFile(fileobj=stream))
        yield io.BufferedReader(cast("io.RawIOBase", unpacked), _BUFFER)


def _recognised(name: str, stream: io.BufferedReader) -> Format:
    beginning = stream.peek(_BUFFER)
    if b"\0" in beginning:
        raise _unusable(name, "NotText", "it is binary: name a text file, or one packed with gzip")
    head = [line for line in beginning.decode("utf-8-sig", errors="replace").splitlines() if line.strip()]
    if not head:
        raise _unusable(name, "FileEmpty", "it is empty: name a log with requests")
    form = recognised(head)
    if form is None:
        known = ", ".join(FORMATS)
        raise _unusable(
            name, "UnknownFormat", f"its first line is of no format that is known: state --format ({known})"
        )
    return form


def _unusable(name: str, reason: str, message: str) -> InputError:
    return InputError(Problem(path=name, reason=reason, message=message))
