import copy

import pytest

from servingplan.planning.plan import Reserve
from servingplan.rendering.comparison import contained, template_hash
from servingplan.rendering.deployment import deployment
from servingplan.rendering.metadata import sealed
from servingplan.rendering.running import applied_fields, keep_running_template
from support.plans import a_plan, an_engine
from support.served import NAMES, served_deployment

ENGINE = "servingplan.dev/engine"
TEMPLATE = "servingplan.dev/template"


def rendered_by_the_next_operator(rendered, **spec):
    """The same plan, as an operator renders it that gives the engine one more argument."""
    result = copy.deepcopy(rendered)
    result["spec"] |= spec
    result["spec"]["template"]["spec"]["containers"][0]["args"].append("--new-default")
    result["metadata"]["annotations"][TEMPLATE] = template_hash(result)
    return sealed(result)


@pytest.mark.parametrize("name", NAMES)
def test_what_was_applied_is_read_back_from_the_live_object(name):
    rendered, live = served_deployment(name)
    applied = applied_fields(live, "servingplan")
    assert template_hash(applied) == template_hash(rendered)
    assert contained(applied, live)


def test_another_managers_fields_are_not_ours():
    _, live = served_deployment("worked-example")
    assert applied_fields(live, "kubectl") == {}


@pytest.mark.parametrize("name", NAMES)
def test_an_upgrade_of_the_operator_starts_no_engine_anew(name):
    rendered, live = served_deployment(name)
    kept = keep_running_template(rendered_by_the_next_operator(rendered), live, "servingplan")
    assert template_hash(kept) == template_hash(rendered)


def test_what_lies_outside_the_template_is_still_applied():
    rendered, live = served_deployment("worked-example")
    newer = rendered_by_the_next_operator(rendered, progressDeadlineSeconds=1)
    kept = keep_running_template(newer, live, "servingplan")
    assert kept["spec"]["progressDeadlineSeconds"] == 1
    assert template_hash(kept) == template_hash(rendered)
    assert not contained(kept, live)


@pytest.mark.parametrize("name", NAMES)
def test_once_kept_nothing_is_left_to_apply(name):
    rendered, live = served_deployment(name)
    newer = rendered_by_the_next_operator(rendered)
    kept = keep_running_template(newer, live, "servingplan")
    live = copy.deepcopy(live)
    live["metadata"]["annotations"] |= kept["metadata"]["annotations"]
    assert contained(keep_running_template(newer, live, "servingplan"), live)


def test_an_edit_of_the_engine_brings_the_new_rendering():
    rendered, live = served_deployment("worked-example")
    newer = rendered_by_the_next_operator(rendered)
    newer["metadata"]["annotations"][ENGINE] = "0000000000000000"
    assert keep_running_template(newer, live, "servingplan") == newer


def test_what_somebody_else_changed_in_the_template_is_put_right_not_kept():
    rendered, live = served_deployment("worked-example")
    newer = rendered_by_the_next_operator(rendered)
    live = copy.deepcopy(live)
    live["spec"]["template"]["spec"]["containers"][0]["image"] = "stranger/image:1"
    assert keep_running_template(newer, live, "servingplan") == newer


def test_what_was_applied_by_another_manager_is_not_kept():
    rendered, live = served_deployment("worked-example")
    newer = rendered_by_the_next_operator(rendered)
    assert keep_running_template(newer, live, "servingplan-blue") == newer


def test_without_an_upgrade_the_rendered_object_is_applied_as_it_is():
    plan = a_plan(target=an_engine())
    _, live = served_deployment("worked-example")
    rendered = deployment(plan, None, None)
    live["metadata"]["annotations"] |= rendered["metadata"]["annotations"]
    changed = deployment(a_plan(target=an_engine(), reserve=Reserve(replicas=2, quiet=2)), None, None)
    assert keep_running_template(changed, live, "servingplan") == changed
