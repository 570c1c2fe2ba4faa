"""Files of the command line: plans with their ConfigMaps, or one clear problem a file."""

from __future__ import annotations

import io
import json

import pytest

from servingplan.api.documents import read_documents, read_plans
from servingplan.errors import InputError
from support.specs import config_map, config_maps, document


def written(folder, name, *objects):
    file = folder / name
    file.write_text("\n---\n".join(json.dumps(entry) for entry in objects), encoding="utf-8")
    return str(file)


def plans_in(*paths, standard_input=""):
    return read_plans(paths, standard_input=io.StringIO(standard_input))


def problem_of(*paths, standard_input=""):
    with pytest.raises(InputError) as refused:
        plans_in(*paths, standard_input=standard_input)
    (problem,) = refused.value.problems
    return problem


def test_a_file_holds_a_plan_and_its_config_maps(tmp_path):
    file = written(tmp_path, "plan.yaml", document(), config_map("week", {"profile.csv": "x"}))
    (plan,) = plans_in(file)
    assert plan.document.body == document()
    assert (plan.document.file, plan.document.line) == (file, 1)
    assert plan.references == config_maps({"week": {"profile.csv": "x"}})


def test_config_maps_of_other_files_count_and_those_of_other_namespaces_do_not(tmp_path):
    plan = written(tmp_path, "a.yaml", document())
    maps = written(tmp_path, "b.json", config_map("mine", {"dates": "x"}), config_map("not", {}, namespace="other"))
    assert plans_in(plan, maps)[0].references == config_maps({"mine": {"dates": "x"}})


def test_a_directory_is_all_its_yaml_and_json_files_by_name(tmp_path):
    written(tmp_path, "b.yml", document(name="second"))
    written(tmp_path, "a.json", document(name="first"))
    (tmp_path / "notes.txt").write_text("not read", encoding="utf-8")
    assert [plan.document.name for plan in plans_in(str(tmp_path))] == ["first", "second"]


def test_standard_input_is_a_file_too():
    (plan,) = plans_in("-", standard_input=json.dumps(document()))
    assert plan.document.file == "standard input"


def test_a_list_as_kubectl_prints_it_is_taken_apart():
    listed = {"apiVersion": "v1", "kind": "List", "items": [document(), config_map("week", {})]}
    assert len(read_documents(["-"], standard_input=io.StringIO(json.dumps(listed)))) == 2


def test_a_plan_without_a_namespace_is_in_the_default_one_with_its_config_maps():
    plan, week = document(), config_map("week", {"dates": "x"})
    del plan["metadata"]["namespace"], week["metadata"]["namespace"]
    text = f"{json.dumps(plan)}\n---\n{json.dumps(week)}"
    assert plans_in("-", standard_input=text)[0].references == config_maps({"week": {"dates": "x"}})


def test_objects_of_other_kinds_are_passed_over(tmp_path):
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "vllm"}}
    assert len(plans_in(written(tmp_path, "all.yaml", deployment, document()))) == 1


@pytest.mark.parametrize(
    ("content", "reason", "at"),
    [
        pytest.param(b"", "FileEmpty", "", id="empty"),
        pytest.param(b" \n# only a comment", "NoPlan", "", id="only a comment"),
        pytest.param(b"\x00\x01\x02", "NotText", "", id="binary"),
        pytest.param(b"\xff\xfe", "NotText", "", id="another encoding"),
        pytest.param(b"a: 1\n  b: 2", "InvalidYAML", ":2", id="no YAML"),
        pytest.param(b"kind: ServingPlan\nkind: ServingPlan", "InvalidYAML", ":2", id="a key twice"),
        pytest.param(b"- 1", "NoObject", ":1", id="a list"),
        pytest.param(b"spec: {}", "NoObject", ":1", id="no kind"),
        pytest.param(b"kind: Deployment", "NoPlan", "", id="another kind"),
        pytest.param(b"apiVersion: other/v1\nkind: ServingPlan", "WrongAPIVersion", ":1", id="another group"),
    ],
)
def test_a_file_that_cannot_be_used_is_one_problem_with_its_place(tmp_path, content, reason, at):
    file = tmp_path / "plan.yaml"
    file.write_bytes(content)
    problem = problem_of(str(file))
    assert (problem.reason, problem.path) == (reason, f"{file}{at}")


def test_a_missing_file_is_a_problem(tmp_path):
    assert problem_of(str(tmp_path / "nowhere.yaml")).reason == "FileNotFound"


def test_an_empty_directory_is_a_problem(tmp_path):
    assert problem_of(str(tmp_path)).reason == "NoDocument"


def test_the_same_plan_twice_is_a_problem(tmp_path):
    first, second = written(tmp_path, "a.yaml", document()), written(tmp_path, "b.yaml", document())
    problem = problem_of(str(tmp_path))
    assert problem.path == f"{second}:1"
    assert f"already in {first}:1" in problem.message


def test_every_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(InputError) as refused:
        plans_in(str(tmp_path / "one"), str(tmp_path / "two"))
    assert len(refused.value.problems) == 2


def test_a_file_that_begins_with_a_byte_order_mark_is_read(tmp_path):
    file = tmp_path / "plan.yaml"
    file.write_text(json.dumps(document()), encoding="utf-8-sig")
    assert plans_in(str(file))[0].document.name == "support-chat"
