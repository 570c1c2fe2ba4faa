"""What is rendered, as files that a reviewer reads.

After a change that is meant, write them anew with ``UPDATE_GOLDEN=1 pytest tests/rendering/test_golden.py`` and
read the difference: every changed line below ``template`` restarts the engines of all users.
"""

import os
from pathlib import Path

import pytest
import yaml

from servingplan.planning.plan import Reserve
from servingplan.rendering.metadata import Owner
from servingplan.rendering.objects import render
from support.plans import a_full_engine, a_plan

GOLDEN = Path(__file__).parent / "golden"
OWNER = Owner(
    uid="00000000-0000-4000-8000-000000000001",
    api_version="servingplan.dev/v1alpha1",
    kind="ServingPlan",
    name="support-chat",
)


class Readable(yaml.SafeDumper):
    """Writes a text of several lines as such."""


Readable.add_representer(
    str,
    lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None),
)


@pytest.mark.parametrize(
    ("name", "plan", "installation"),
    [
        pytest.param("worked-example", a_plan(), "default", id="the worked example"),
        pytest.param(
            "full-engine",
            a_plan(target=a_full_engine(), reserve=Reserve(replicas=2, quiet=0)),
            "blue",
            id="an engine that states everything, retained",
        ),
    ],
)
def test_the_rendered_objects_are_those_of_the_file(name, plan, installation):
    same_as_file(name, render(plan, OWNER, installation))


def same_as_file(name, rendered):
    path = GOLDEN / f"{name}.yaml"
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(yaml.dump_all(rendered, Dumper=Readable, sort_keys=False, width=110))
    assert list(yaml.safe_load_all(path.read_text())) == list(rendered)
