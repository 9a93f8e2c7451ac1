"""Runs a DAG file of Airflow 3 without Airflow: modules of the same names whose classes take what those of Airflow take and nothing
else, and a run of the tasks by their trigger rules. Reads {"file", "params", "run_id"} from stdin, prints {"states", "dag", "pods"}."""
import ast
import datetime
import json
import re
import subprocess
import sys
import types

RULES = {"all_success", "none_failed", "one_failed", "all_done"}
BASE = {"task_id", "trigger_rule", "retries", "execution_timeout"}
current = None


class Task:
    accepted = set()
    needed = set()

    def __init__(self, **settings):
        self.settings = self.checked(settings)
        missing = self.needed - settings.keys()
        assert not missing, f"{type(self).__name__} needs {missing}"
        self.register()

    @classmethod
    def checked(cls, settings):
        unknown = settings.keys() - BASE - cls.accepted
        assert not unknown, f"{cls.__name__} takes no {unknown}"
        assert re.fullmatch(r"[\w.-]{1,250}", settings["task_id"], re.ASCII), settings["task_id"]
        assert settings.get("trigger_rule", "all_success") in RULES
        assert isinstance(settings.get("execution_timeout", datetime.timedelta(1)), datetime.timedelta)
        return settings

    @classmethod
    def partial(cls, **settings):
        made = cls.__new__(cls)
        made.settings = cls.checked(settings)
        return made

    def expand_kwargs(self, listed):
        self.listed = listed
        self.register()
        self.upstream.add(listed.settings["task_id"])
        return self

    def register(self):
        self.upstream = set()
        assert current is not None, "a task outside of a DAG"
        assert self.settings["task_id"] not in current.tasks, "two tasks of one name"
        current.tasks[self.settings["task_id"]] = self

    def __rshift__(self, other):
        other.upstream.add(self.settings["task_id"])
        return other

    def __rrshift__(self, others):
        for each in others:
            each >> self
        return self

    def run(self, dag, context):
        kwargs = self.listed.value if hasattr(self, "listed") else [None]
        if not kwargs:
            return "skipped"
        for each in kwargs:
            settings = {**self.settings}
            if each is None:
                # Only what is no value of a mapped task is a template.
                settings = {name: rendered(value, dag, context) for name, value in settings.items()}
            else:
                assert not each.keys() - self.accepted, each
                settings.update(each)
            if not self.execute(dag, settings):
                return "failed"
        return "success"


def rendered(value, dag, context):
    if isinstance(value, list):
        return [rendered(each, dag, context) for each in value]
    if not isinstance(value, str):
        return value
    names = {**dag.settings.get("user_defined_macros", {}), **context}
    return re.sub(r"\{\{ (.+?) \}\}", lambda found: str(eval(found[1], {"__builtins__": {}}, names)), value)


class BashOperator(Task):
    accepted = {"bash_command", "append_env", "env", "cwd"}

    def execute(self, dag, settings):
        assert not settings["bash_command"].endswith((".sh", ".bash")), "read as a template file"
        return subprocess.run(["bash", "-c", settings["bash_command"]], cwd=settings.get("cwd")).returncode == 0


class KubernetesPodOperator(Task):
    accepted = {"image", "cmds", "arguments", "container_resources"}
    needed = {"image"}

    def execute(self, dag, settings):
        assert not any(each.endswith((".json", ".yaml", ".yml")) for each in settings["arguments"] if "{{" in each)
        limits = settings["container_resources"].limits if "container_resources" in settings else {}
        dag.pods.append({**{key: settings[key] for key in ("image", "cmds", "arguments")}, "limits": limits})
        return True


class EmptyOperator(Task):
    def execute(self, dag, settings):
        return True


class ShortCircuitOperator(Task):
    accepted = {"python_callable", "ignore_downstream_trigger_rules"}
    needed = {"python_callable"}

    def run(self, dag, context):
        self.isOpen = bool(self.settings["python_callable"](params=context["params"]))
        return "success"


class PythonTask(Task):
    accepted = {"call"}

    def run(self, dag, context):
        self.value = self.settings["call"](**context)
        json.dumps(self.value)
        return "success"


def task(**settings):
    return lambda call: lambda: PythonTask(call=call, **settings)


class Param:
    def __init__(self, default=None, *, type):
        assert type in {"string", "integer", "number", "boolean", "array"}, type
        self.default = default


class Resources:
    def __init__(self, *, limits):
        self.limits = limits


class DAG:
    def __init__(self, *, dag_id, schedule, **settings):
        unknown = settings.keys() - {"max_active_tasks", "params", "user_defined_macros"}
        assert not unknown and schedule is None and re.fullmatch(r"[\w.-]+", dag_id), dag_id
        self.settings, self.tasks, self.pods = settings, {}, []

    def __enter__(self):
        global current
        current = self

    def __exit__(self, *_):
        pass

    def run(self, given, run_id):
        params = {name: param.default for name, param in self.settings.get("params", {}).items()}
        context = {"params": {**params, **given}, "run_id": run_id}
        states = {}
        while len(states) < len(self.tasks):
            ready = [name for name, each in self.tasks.items() if name not in states and each.upstream <= states.keys()]
            assert ready, "a cycle"
            for name in ready:
                states[name] = self.state_of(self.tasks[name], states, context)
        leaves = self.tasks.keys() - {name for each in self.tasks.values() for name in each.upstream}
        bad = any(states[name] in ("failed", "upstream_failed") for name in leaves)
        return states, "failed" if bad else "success"

    def state_of(self, each, states, context):
        upstream = [states[name] for name in each.upstream]
        failed = any(state in ("failed", "upstream_failed") for state in upstream)
        rule = each.settings.get("trigger_rule", "all_success")
        if any(getattr(self.tasks[name], "isOpen", True) is False for name in each.upstream):
            return "skipped"
        if rule in ("all_success", "none_failed") and failed:
            return "upstream_failed"
        if rule == "all_success" and "skipped" in upstream or rule == "one_failed" and not failed:
            return "skipped"
        return each.run(self, context)


def offer(name, **members):
    parts = name.split(".")
    for index in range(1, len(parts) + 1):
        path = ".".join(parts[:index])
        sys.modules.setdefault(path, types.ModuleType(path))
    vars(sys.modules[name]).update(members)


offer("airflow.sdk", DAG=DAG, Param=Param, task=task)
offer("airflow.providers.standard.operators.bash", BashOperator=BashOperator)
offer("airflow.providers.standard.operators.empty", EmptyOperator=EmptyOperator)
offer("airflow.providers.standard.operators.python", ShortCircuitOperator=ShortCircuitOperator)
offer("airflow.providers.cncf.kubernetes.operators.pod", KubernetesPodOperator=KubernetesPodOperator)
offer("kubernetes.client", models=types.SimpleNamespace(V1ResourceRequirements=Resources))

asked = json.load(sys.stdin)
with open(asked["file"], encoding="utf-8") as file:
    source = file.read()
exec(compile(ast.parse(source), asked["file"], "exec"), {"__name__": "dag"})
states, dag_state = current.run(asked["params"], asked["run_id"])
print(json.dumps({"states": states, "dag": dag_state, "pods": current.pods}))
