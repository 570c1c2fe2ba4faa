"""All formats, in the order in which they are recognised: the special before the general."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from servingplan.profiling.formats import access_logs, csv_lines, json_lines, rates, spans
from servingplan.profiling.formats.format import Format, by_line

_SERVEGEN = re.compile(r"\d+,[\d.eE+-]+,[\d.eE+-]*,[A-Za-z]*,[^,]*,[^,]*$")
_AZURE = ("timestamp", "contexttokens", "generatedtokens")
_BURSTGPT = ("timestamp", "model", "request tokens", "response tokens")


def _first(holds: Callable[[str], object]) -> Callable[[Sequence[str]], bool]:
    """The first line."""
    return lambda head: bool(head and holds(head[0].strip()))


def _some(holds: Callable[[str], object]) -> Callable[[Sequence[str]], bool]:
    """Any of the first lines: the logs of programs begin with other things."""
    return lambda head: any(holds(line) for line in head)


def _has(*names: str) -> Callable[[str], bool]:
    def header_has(line: str) -> bool:
        cells = {cell.strip().lower() for cell in line.removeprefix("\ufeff").split(",")}
        return all(name in cells for name in names)

    return header_has


def _object_with(*texts: str) -> Callable[[str], bool]:
    return lambda line: line.startswith(("{", "[{")) and all(text in line for text in texts)


def _spans_begin(head: Sequence[str]) -> bool:
    beginning = "".join(head[:3]).strip()
    return beginning.startswith(("{", "[")) and '"resourceSpans"' in beginning


FORMATS: Mapping[str, Format] = {
    each.name: each
    for each in (
        Format(
            name="otlp", title="OpenTelemetry spans of servers", recognises=_spans_begin, read=spans.reading("server")
        ),
        Format(
            name="otlp-client",
            title="OpenTelemetry spans of clients",
            recognises=lambda _: False,  # only where asked for
            read=spans.reading("client"),
        ),
        Format(
            name="mooncake",
            title="a Mooncake trace",
            recognises=_first(_object_with('"timestamp"', '"input_length"')),
            read=by_line(json_lines.mooncake),
        ),
        Format(
            name="jsonl",
            title="JSON lines",
            recognises=_first(lambda line: line.startswith("{")),
            read=by_line(json_lines.parsing),
        ),
        Format(
            name="envoy",
            title="an access log of Envoy",
            recognises=_some(access_logs.ENVOY.match),
            read=by_line(access_logs.envoy),
        ),
        Format(
            name="nginx",
            title="an access log of nginx",
            recognises=_some(access_logs.NGINX.match),
            read=by_line(access_logs.nginx),
        ),
        Format(
            name="vllm-requests",
            title="a log of vLLM with its requests",
            recognises=_some(access_logs.VLLM_REQUEST.match),
            read=by_line(access_logs.vllm_requests),
        ),
        Format(
            name="vllm-access",
            title="a log of vLLM with its answers",
            recognises=_some(access_logs.VLLM_ACCESS.match),
            read=by_line(access_logs.vllm_access),
        ),
        Format(
            name="servegen",
            title="rates of a ServeGen client",
            recognises=_first(_SERVEGEN.match),
            read=by_line(rates.servegen),
        ),
        Format(
            name="tenants",
            title="rates of tenants in equal steps",
            recognises=_first(lambda line: _has("t_s")(line) and rates.RATE_SUFFIX in line),
            read=rates.tenants,
        ),
        Format(name="azure", title="an Azure LLM trace", recognises=_first(_has(*_AZURE)), read=csv_lines.read),
        Format(name="burstgpt", title="a BurstGPT trace", recognises=_first(_has(*_BURSTGPT)), read=csv_lines.read),
        Format(
            name="csv",
            title="CSV with a header",
            recognises=_first(lambda line: any(mark in line for mark in ",;\t|")),
            read=csv_lines.read,
        ),
    )
}


def recognised(head: Sequence[str]) -> Format | None:
    """The format of a file with these first lines; None where it is none that is known."""
    return next((each for each in FORMATS.values() if each.recognises(head)), None)
