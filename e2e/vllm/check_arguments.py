"""Asks vLLM's own parser and validator about sets of arguments, in one process: importing vLLM takes longest.

Run by the Python of vLLM's environment. In: JSON on standard input, a list of ``{"arguments": [...], "fits": bool}``;
fits: the model is one that the arguments are meant for, so the whole configuration is made. Out: JSON on standard
output, for each what is wrong with it, or "".
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
from typing import Any

os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")

from vllm.engine.arg_utils import AsyncEngineArgs
from vllm.entrypoints.launchers.cli_args import make_arg_parser, validate_parsed_serve_args
from vllm.usage.usage_lib import UsageContext
from vllm.utils.argparse_utils import FlexibleArgumentParser


def problem(case: dict[str, Any]) -> str:
    """What vLLM says against it; empty where it would start."""
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            parsed = make_arg_parser(FlexibleArgumentParser()).parse_args(case["arguments"])
        validate_parsed_serve_args(parsed)
        parsed.model = parsed.model_tag or parsed.model
        if case["fits"]:
            AsyncEngineArgs.from_cli_args(parsed).create_engine_config(UsageContext.OPENAI_API_SERVER)
    except SystemExit:
        return said.getvalue().strip().splitlines()[-1]
    except (ValueError, TypeError, RuntimeError, AssertionError, NotImplementedError) as error:
        return f"{type(error).__name__}: {error}"
    return ""


def main() -> None:
    """Answer one list."""
    cases = json.load(sys.stdin)
    answers = sys.stdout
    with contextlib.redirect_stdout(sys.stderr):
        found = [problem(case) for case in cases]
    json.dump(found, answers)


if __name__ == "__main__":
    main()
