# SPDX-License-Identifier: Apache-2.0
"""TensorFlow's own reading of TF_CONFIG, for tests without TensorFlow.

    view = tensorflow_rules.read(os.environ.get("TF_CONFIG"))
    tensorflow_rules.check_world([view, ...])

Written again from what TensorFlow's sources do: tfconfig_cluster_resolver.py,
multi_worker_util.py, server_lib.py. Raises Refused where TensorFlow raises.

As a command it judges the copies of a world, one a line on standard input (an
empty line: not set), and prints one line a task.
"""

import json
import sys

JOBS = ("chief", "worker", "ps", "evaluator")


class Refused(Exception):
    """TensorFlow would raise, or silently do something else."""


class View:
    """What a process makes of its TF_CONFIG.

    cluster: {} where it would run alone; worker_count and id: None where
    TensorFlow lets this task not ask; address: where its server binds.
    """

    def __init__(self, cluster, kind, index):
        self.cluster = cluster
        self.type = kind
        self.index = index
        chiefs = len(cluster.get("chief", []))
        workers = len(cluster.get("worker", []))
        self.is_chief = (
            not cluster
            or kind in ("chief", "evaluator")
            or (kind == "worker" and index == 0 and not chiefs)
        )
        self.worker_count = None
        self.id = None
        self.leader = ""
        if kind == "evaluator":
            self.worker_count = len(cluster.get("evaluator", [])) or None
            self.id = index
        elif kind is not None:
            job = "chief" if chiefs else "worker"
            self.leader = f"/job:{job}/replica:0/task:0"
            if kind != "ps":
                self.worker_count = chiefs + workers
                self.id = 0 if kind == "chief" else index + chiefs
        tasks = cluster.get(kind, [])
        self.address = tasks[index] if index is not None and tasks else None


def _no_repeats(pairs):
    """Python keeps the last of equal names; ours must not have any."""
    names = [name for name, _ in pairs]
    if len(set(names)) != len(names):
        raise Refused(f"a name stands twice: {names}")
    return dict(pairs)


def _check_jobs(cluster):
    for job, tasks in cluster.items():
        if job not in JOBS:
            raise Refused(f"ValueError: unknown job {job!r}")
        if not isinstance(tasks, list):
            raise Refused(f"TypeError: {job} is no list")
        if not all(isinstance(task, str) for task in tasks):
            raise Refused(f"TypeError: an address of {job} is no string")
    for job in ("chief", "evaluator"):
        if len(cluster.get(job, [])) > 1:
            raise Refused(f"ValueError: more than one {job}")


def read(value):
    """The view of one process; `value` None: the variable is not set."""
    if value is None:
        return View({}, None, None)
    try:
        config = json.loads(value, object_pairs_hook=_no_repeats)
    except ValueError as error:
        raise Refused(f"JSONDecodeError: {error}") from None
    cluster = config.get("cluster", {})
    if not cluster:
        return View({}, None, None)
    _check_jobs(cluster)
    task = config.get("task", {})
    kind, index = task.get("type"), task.get("index")
    if kind is None or index is None:
        raise Refused("ValueError: no task")
    index = int(index)
    if kind not in cluster:
        if kind != "evaluator":
            raise Refused(f"ValueError: {kind!r} is not in the cluster")
    elif not 0 <= index < len(cluster[kind]):
        raise Refused(f"ValueError: there is no {kind} {index}")
    return View(cluster, kind, index)


def split_address(address):
    """Host and port; an IPv6 literal must stand in brackets."""
    host, colon, port = address.rpartition(":")
    is_bracketed = host.startswith("[") and host.endswith("]")
    if not colon or not host or (":" in host and not is_bracketed):
        raise Refused(f"{address!r} is not host:port")
    if not port.isdigit() or not 0 < int(port) < 65536:
        raise Refused(f"{address!r} has no valid port")
    return host.strip("[]"), int(port)


def check_world(views):
    """All copies of one job, in rank order: the same cluster, each task once,
    each address once."""
    clusters = []
    tasks = []
    for view in views:
        if not view.cluster:
            raise Refused("a process would run alone")
        own = dict(view.cluster)
        own.pop("evaluator", None)
        clusters.append(own)
        tasks.append((view.type, view.index))
    if any(cluster != clusters[0] for cluster in clusters):
        raise Refused("two copies have different clusters")
    expected = [(job, index) for job in JOBS[:3]
                for index in range(len(clusters[0].get(job, [])))]
    evaluators = [task for task in tasks if task[0] == "evaluator"]
    if tasks != expected + evaluators or len(evaluators) > 1:
        raise Refused(f"the tasks are {tasks}")
    addresses = [split_address(task)
                 for job in clusters[0].values() for task in job]
    if len(set(addresses)) != len(addresses):
        raise Refused(f"an address stands twice: {addresses}")
    if sum(view.is_chief and view.type != "evaluator" for view in views) != 1:
        raise Refused("there is not exactly one chief")


def main():
    views = [read(line.rstrip("\n") or None) for line in sys.stdin]
    check_world(views)
    for view in views:
        print(view.type, view.index, view.address or "-",
              "chief" if view.is_chief else "-", view.worker_count or "-")


if __name__ == "__main__":
    try:
        main()
    except Refused as refused:
        sys.exit(f"tensorflow_rules.py: {refused}")
