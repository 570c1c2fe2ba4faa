"""Standard output: one value as a table for people, or as JSON or YAML for programs.

In: a document (plain JSON) and a function that makes the table. Out: text. The numbers are the same in every form.
"""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from servingplan.errors import UsageError

if TYPE_CHECKING:
    from rich.console import RenderableType

JSON, YAML, TABLE = "json", "yaml", "table"
HTML, SVG, PNG, MARKDOWN = "html", "svg", "png", "markdown"
_FORM = "servingplan.output"
_CLOCK_TIME = re.compile(r"[0-9]{1,2}(:[0-9]{2}){1,2}")


def output_option(*forms: str, default: str = TABLE) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The option ``-o``, passed as `output`."""
    return click.option(
        "-o",
        "--output",
        type=click.Choice(forms or (TABLE, JSON, YAML)),
        default=default,
        show_default=True,
        callback=_remember,
        help="Form of the output.",
    )


def with_options(*options: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A decorator that gives a verb these options, in this order."""

    def decorated(function: Any) -> Any:
        for option in reversed(options):
            function = option(function)
        return function

    return decorated


def _remember(ctx: click.Context, _: click.Parameter, value: str) -> str:
    # The edge that tells problems runs after the verb's own context is gone.
    ctx.find_root().meta[_FORM] = value
    return value


def asked_form(ctx: click.Context) -> str:
    """The form that the verb was asked for."""
    return str(ctx.find_root().meta.get(_FORM, TABLE))


def emit(form: str, document: Any, table: Callable[[], RenderableType]) -> None:
    """Print a document as JSON or YAML, or its table."""
    if form == JSON:
        click.echo(json.dumps(document, indent=2, ensure_ascii=False))
    elif form == YAML:
        click.echo(yaml_text([document]), nl=False)
    else:
        emit_table(table())


def emit_table(renderable: RenderableType) -> None:
    """Print what people read: as wide as the terminal, coloured only in one."""
    from rich.console import Console  # noqa: PLC0415  what prints data loads no tables

    console = Console(file=sys.stdout, highlight=False)
    with console.capture() as capture:
        console.print(renderable)
    click.echo("\n".join(line.rstrip() for line in capture.get().splitlines()))


@contextmanager
def loading_pictures(form: str) -> Iterator[None]:
    """While what draws is imported. Raises UsageError where matplotlib is missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise UsageError(f"-o {form} needs matplotlib: pip install 'servingplan[pictures]'") from error


def write_image(form: str, draw: Callable[[], bytes], *, example: str) -> None:
    """Write an SVG or PNG. example: a file's name, for the message. Raises UsageError for a PNG to a terminal."""
    stream = sys.stdout.buffer
    if form == PNG and stream.isatty():
        raise UsageError(f"-o png writes an image to standard output: redirect it, as in > {example}")
    stream.write(draw())


def write_report(path: Path, text: str) -> None:
    """Write what ``--report`` asks for, for whoever runs a verb in a container. Raises UsageError."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"--report {path} cannot be written: {error.strerror or error}") from error


def yaml_text(documents: Sequence[Any]) -> str:
    """Documents as YAML, keys in their order, without aliases."""
    import ruamel.yaml  # noqa: PLC0415  only where YAML is asked for

    writer = ruamel.yaml.YAML(typ="safe", pure=True)
    writer.Representer = _readable(ruamel.yaml.representer.SafeRepresenter)
    writer.default_flow_style = False
    writer.sort_base_mapping_type_on_output = False  # type: ignore[assignment] # its type is too narrow
    writer.representer.ignore_aliases = lambda _: True
    writer.width = 110
    text = io.StringIO()
    writer.dump_all(list(documents), text)
    return text.getvalue()


def _readable(plain: Any) -> Any:
    """Texts of several lines as they are; clock times in quotes, because YAML 1.1 reads 20:00 as 1200."""

    class Readable(plain):  # type: ignore[misc] # its class is known only where YAML is asked for
        def represent_str(self, text: str) -> Any:
            style = "|" if "\n" in text else '"' if _CLOCK_TIME.fullmatch(text) else None
            return self.represent_scalar("tag:yaml.org,2002:str", text, style=style)

    Readable.add_representer(str, Readable.represent_str)
    return Readable


def talk(message: str) -> None:
    """Say something to the person, beside the data."""
    click.echo(message, err=True)
