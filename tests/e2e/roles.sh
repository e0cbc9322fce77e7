#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Roles: who is what in TF_CONFIG, and whose exit ends the job.
. "$(dirname "$0")/../lib/e2e.sh"

# What a rank does, told by its task: parameter servers serve for ever.
cat >"$scratch/part.py" <<'PY'
import json
import os
import sys
import time

config = json.loads(os.environ["TF_CONFIG"])
task = config["task"]
who = f"{task['type']}-{task['index']}"
sizes = {name: len(tasks) for name, tasks in config["cluster"].items()}
with open(os.path.join(sys.argv[1], who), "w") as file:
    json.dump({"rank": int(os.environ["RANK"]), "sizes": sizes}, file)
fates = dict(part.split("=") for part in sys.argv[2:])
fate = fates.get(who, fates.get(task["type"], "0"))
if fate == "serve":
    time.sleep(300)
time.sleep(0.3)
sys.exit(int(fate))
PY

# play ROLES NODES FATE...
play()
{
    local roles=$1 nodes=$2
    shift 2

    rm -rf "$scratch/parts"
    mkdir "$scratch/parts"
    launch --nodes "$nodes" --roles "$roles" --self-test off --grace 5s -- \
        "$python" "$scratch/part.py" "$scratch/parts" "$@"
}

it "with ps, the chief's exit ends the job: servers and workers are stopped"
play chief=1,worker=2,ps=1 4 ps=serve worker=serve
expect_status 0
expect_within_ms 10000
expect_json "$scratch/parts/chief-0" 'r["rank"] == 0
    and r["sizes"] == {"chief": 1, "worker": 2, "ps": 1}'
expect_json "$scratch/parts/ps-0" 'r["rank"] == 3'
expect_nothing_left

it "with ps and no chief, every worker must end"
play worker=2,ps=2 4 ps=serve
expect_status 0
expect_within_ms 10000

it "the chief's failure is the job's"
play chief=1,worker=1,ps=1 3 chief=9 ps=serve worker=serve
expect_status 9
expect_last_line 'rank 0\b'

it "a worker's failure is the job's even while the chief runs on"
play chief=1,worker=2,ps=1 4 chief=serve ps=serve worker=serve worker-1=4
expect_status 4
expect_last_line 'rank 2\b'

it "the evaluator is stopped once all that train have ended"
play chief=1,worker=1,evaluator=1 3 evaluator=serve
expect_status 0
expect_within_ms 10000
expect_json "$scratch/parts/worker-0" '"evaluator" not in r["sizes"]'
expect_json "$scratch/parts/evaluator-0" '"evaluator" not in r["sizes"]'

it "--tf-evaluator own puts it into the evaluator's own copy only"
rm -rf "$scratch/parts"
mkdir "$scratch/parts"
launch --nodes 3 --roles chief=1,worker=1,evaluator=1 --self-test off \
    --tf-evaluator own -- "$python" "$scratch/part.py" "$scratch/parts"
expect_status 0
expect_json "$scratch/parts/worker-0" '"evaluator" not in r["sizes"]'
expect_json "$scratch/parts/evaluator-0" 'r["sizes"]["evaluator"] == 1'

it "roles count ranks, not nodes"
rm -rf "$scratch/parts"
mkdir "$scratch/parts"
launch --nodes 2 --per-node 2 --roles chief=1,worker=3 --self-test off -- \
    "$python" "$scratch/part.py" "$scratch/parts"
expect_status 0
expect_json "$scratch/parts/worker-2" 'r["rank"] == 3'

done_stories
