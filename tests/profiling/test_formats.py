"""Each format of logs: recognised by itself, read to the same requests, and what does not count."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from servingplan.errors import InputError
from servingplan.profiling.formats.catalogue import FORMATS
from servingplan.profiling.request import Request, Step
from support.logs import LOGS, a_context, read

FIRST = datetime(2026, 11, 2, 7, tzinfo=UTC).timestamp()
ARRIVED = [FIRST + 0.25, FIRST + 1, FIRST + 90]
"""The three requests that every sample of ours holds."""

START = datetime(2026, 11, 2, 7, tzinfo=UTC)
SAMPLES = {
    "gateway.csv": ("csv", [612, 1204, 88], [181, 95, None]),
    "gateway.jsonl": ("jsonl", [612, 1204, None], [181, 0, None]),
    "azure.csv": ("azure", [612, 1204, 88], [181, 95, 12]),
    "burstgpt.csv": ("burstgpt", [612, 1204, 88], [181, 95, 0]),
    "mooncake.jsonl": ("mooncake", [1536, 2048, 512], [181, 95, 12]),
    "envoy.log": ("envoy", [None] * 3, [None] * 3),
    "nginx.log": ("nginx", [None] * 3, [None] * 3),
    "vllm-access.log": ("vllm-access", [None] * 3, [None] * 3),
    "vllm-requests.log": ("vllm-requests", [None] * 3, [None] * 3),
    "spans.json": ("otlp", [612, 1204, 88], [181, 95, None]),
}


def context_of(sample: str):
    """How the sample is read: the Azure trace has naive times, in UTC."""
    return a_context(start=START, year=2026, zone=ZoneInfo("UTC" if sample == "azure.csv" else "Europe/Berlin"))


@pytest.mark.parametrize("sample", SAMPLES)
def test_a_sample_is_recognised_and_read(sample):
    form, given, answered = SAMPLES[sample]
    found, reading = read(LOGS / sample, context=context_of(sample))

    (file,) = reading.files
    assert (file.format, file.broken, file.requests) == (form, 0, 3)
    assert [each.input_tokens for each in found] == given
    assert [each.output_tokens for each in found] == answered
    exact = 1.0 if form in {"nginx", "vllm-requests"} else 0.001  # these write whole seconds
    assert [each.at for each in found] == pytest.approx(ARRIVED, abs=exact)


@pytest.mark.parametrize(
    ("sample", "passed"),
    [
        (
            "gateway.jsonl",
            {"requests that ask for no tokens": 1, "requests refused with 4xx before an engine saw them": 1},
        ),
        ("nginx.log", {"requests that ask for no tokens": 1, "requests refused with 4xx before an engine saw them": 1}),
        ("envoy.log", {"requests that ask for no tokens": 1}),
        ("vllm-access.log", {"requests that ask for no tokens": 1, "lines of other kinds": 2}),
        ("vllm-requests.log", {"lines of other kinds": 2}),
        ("spans.json", {"spans that are no request to the server": 2}),
    ],
)
def test_what_does_not_count_is_counted_by_why(sample, passed):
    _, reading = read(LOGS / sample, context=context_of(sample))

    assert dict(reading.files[0].passed) == passed


def test_nginx_counts_a_request_when_it_came_where_it_says_how_long_the_answer_took():
    found, _ = read(LOGS / "nginx.log")

    assert [each.at - FIRST for each in found] == [0.25, 1.0, 90.0]
    assert found[0].tenant == "support"


def test_tenants_and_priorities_and_blocks_are_read():
    csv, _ = read(LOGS / "gateway.csv")
    mooncake, _ = read(LOGS / "mooncake.jsonl", context=a_context(start=START))

    assert [(each.tenant, each.priority) for each in csv] == [("support", "0"), ("support", "0"), ("nightly", "10")]
    assert mooncake[1].blocks == [1, 2, 4, 5]


def test_spans_of_clients_are_read_where_they_are_asked_for():
    found, _ = read(LOGS / "spans.json", form=FORMATS["otlp-client"])

    assert [(each.at, each.input_tokens) for each in found] == [(FIRST + 0.9, 1204)]


def test_one_document_of_spans_over_several_lines_is_read(tmp_path):
    lines = [json.loads(line) for line in (LOGS / "spans.json").read_text().splitlines()]
    file = tmp_path / "spans.json"
    file.write_text(json.dumps({"resourceSpans": [r for line in lines for r in line["resourceSpans"]]}, indent=2))

    found, reading = read(file)

    assert (reading.files[0].format, len(found)) == ("otlp", 3)


def test_rates_in_steps_are_steps():
    context = a_context(start=START)
    found, reading = read(LOGS / "servegen-chunk.csv", context=context)

    assert reading.files[0].format == "servegen"
    assert found == [Step(FIRST, 600, 900), Step(FIRST + 600, 600, 0), Step(FIRST + 1200, 600, 150)]


def test_tenants_are_added_up_or_one_is_chosen(tmp_path):
    file = tmp_path / "tenants.csv"
    file.write_text("t_s,gap,c1_rps,c2_rps\n0,0,1.5,0.5\n600,1,0,0\n")

    every, _ = read(file, context=a_context(start=START))
    one, _ = read(file, context=a_context(start=START, columns={"rate": "c2_rps"}))

    assert [each.requests for each in every] == [1200, None]
    assert one[0].requests == 300
    with pytest.raises(InputError, match="no column 'c9_rps'; there are: c1_rps, c2_rps"):
        read(file, context=a_context(start=START, columns={"rate": "c9_rps"}))


def test_tenants_have_steps_as_long_as_their_first_one(tmp_path):
    file = tmp_path / "tenants.csv"
    file.write_text("t_s,c1_rps\n0,1\n60,2\n120,3\n")
    found, _ = read(file, context=a_context(start=START))
    assert found == [Step(FIRST, 60, 60), Step(FIRST + 60, 60, 120), Step(FIRST + 120, 60, 180)]

    file.write_text("t_s,c1_rps\n0,1\n")
    found, _ = read(file, context=a_context(start=START))
    assert found == [Step(FIRST, 600, 600)]


@pytest.mark.parametrize(("file", "requests"), [("azure-conv-2023.csv", 300), ("mooncake-conversation.csv", 300)])
def test_open_traces_are_read_to_their_last_line(file, requests):
    found, reading = read(LOGS / file, context=a_context(start=START))

    assert len(found) == requests
    assert reading.files[0].broken == 0
    assert all(each.input_tokens and each.output_tokens for each in found)


def test_the_open_tenants_are_read():
    found, reading = read(LOGS / "servegen-tenants-10min.csv", context=a_context(start=START))

    assert (reading.files[0].format, len(found)) == ("tenants", 300)
    assert found[0].requests == pytest.approx((19.05 + 25.44 + 5.002 + 14.02) * 600)


# ---- columns ----


@pytest.mark.parametrize(
    ("header", "row"),
    [
        ("ts;in;out", "1793602800.25;612;181"),
        ("ts\tin\tout", "1793602800250\t612\t181"),
        ("out|in|ts", "181|612.0|2026-11-02T07:00:00.25Z"),
    ],
    ids=["semicolons", "tabs and milliseconds", "bars and ISO 8601"],
)
def test_columns_can_be_named(tmp_path, header, row):
    file = tmp_path / "log.csv"
    file.write_text(f"{header}\n{row}\n")

    found, _ = read(file, context=a_context(columns={"time": "ts", "input": "in", "output": "out"}))

    assert found == [Request(FIRST + 0.25, 612, 181)]


def test_nested_names_of_json_are_joined_by_dots(tmp_path):
    file = tmp_path / "log.jsonl"
    file.write_text('{"meta": {"at": "2026-11-02T07:00:00Z"}, "usage": {"input_tokens": 5}}\n')

    found, _ = read(file, context=a_context(columns={"time": "meta.at"}))

    assert found == [Request(FIRST, 5)]


def test_columns_of_which_none_is_a_time_say_what_to_state(tmp_path):
    file = tmp_path / "log.csv"
    file.write_text("a,b\n1,2\n")

    with pytest.raises(
        InputError, match=r"log.csv:1: none of its columns \(a, b\) is known as the time: state --column time"
    ):
        read(file)


def test_times_that_count_from_a_start_need_it():
    with pytest.raises(InputError, match=r"burstgpt\.csv: its times count .* state it with --start"):
        read(LOGS / "burstgpt.csv")


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ('INFO:     10.1.4.7:5 - "POST /v1/completions HTTP/1.1" 200 OK', "kubectl logs --timestamps"),
        (
            "(APIServer pid=1) INFO 11-02 08:00:00 [l.py:65] Received request c-1: params: P(), lora_request: None.",
            "--year",
        ),
    ],
    ids=["answers", "requests"],
)
def test_a_log_of_vllm_without_times_says_how_to_get_them(tmp_path, line, why):
    file = tmp_path / "vllm.log"
    file.write_text(f"{line}\n" * 10)

    with pytest.raises(InputError, match=why):
        read(file)


# ---- files ----


def test_packed_files_and_standard_input_are_read_as_others(tmp_path):
    text = (LOGS / "gateway.csv").read_bytes()
    packed = tmp_path / "gateway.csv.gz"
    packed.write_bytes(gzip.compress(text))

    plain, _ = read(LOGS / "gateway.csv")

    assert read(packed)[0] == plain
    assert read("-", standard_input=text)[0] == plain
    assert read("-", standard_input=gzip.compress(text))[0] == plain


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "it is empty"),
        (b"\0\1\2\3", "it is binary"),
        (b"hello\n", "of no format that is known: state --format"),
        (gzip.compress(b"time,a\n1793602800,1\n" * 1000)[:-20], "cannot be unpacked"),
    ],
    ids=["empty", "binary", "unknown", "cut off"],
)
def test_a_file_that_cannot_be_read_says_why(tmp_path, content, why):
    file = tmp_path / "log"
    file.write_bytes(content)

    with pytest.raises(InputError, match=why):
        read(file)


def test_a_missing_file_is_named():
    with pytest.raises(InputError, match=r"nowhere\.csv: there is no such file"):
        read("nowhere.csv")


BROKEN = ["not a time,1,2", "2026-11-02T07:00:00Z,many,2", "2026-11-02T07:00:00Z,1", "2026-11-02T07:00:00Z,-5,2"]


def test_broken_lines_are_counted_and_named(tmp_path):
    file = tmp_path / "log.csv"
    file.write_text("time,input_tokens,output_tokens\n" + "2026-11-02T07:00:00Z,1,2\n" * 996 + "\n".join(BROKEN) + "\n")

    found, reading = read(file)

    (as_read,) = reading.files
    assert (len(found), as_read.broken, as_read.lines) == (996, 4, 1001)
    assert [(each.line, each.why) for each in as_read.examples] == [
        (998, "'not a time' is no time: ISO 8601, epoch seconds, or seconds from --start"),
        (999, "'many' is no number of tokens"),
        (1000, "has 2 columns, not 3"),
        (1001, "-5 is no number of tokens"),
    ]


def test_more_broken_lines_than_stated_end_the_reading(tmp_path):
    file = tmp_path / "log.csv"
    file.write_text("time,input_tokens,output_tokens\n" + "2026-11-02T07:00:00Z,1,2\n" * 10 + "\n".join(BROKEN) + "\n")

    with pytest.raises(
        InputError, match=r"read as CSV with a header, 4 of 15 lines are broken \(line 12: 'not a time'"
    ):
        read(file)
    assert len(read(file, broken_share=0.5)[0]) == 10


def test_a_wrong_format_ends_after_a_thousand_lines_not_after_a_million(tmp_path):
    file = tmp_path / "log.csv"
    line = '10.1.4.7 - - [02/Nov/2026:08:00:04 +0100] "POST /v1/completions HTTP/1.1" 200 5 "-" "-"\n'
    file.write_text(line + "nonsense\n" * 100_000)

    with pytest.raises(InputError, match=r"999 of 1000 lines are broken"):
        read(file)
