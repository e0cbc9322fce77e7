#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The same launch over and over, and many at the same time.
#
# GPULAUNCH_TEST_RUNS: how often in a row (1,000 as built for users).
. "$(dirname "$0")/../lib/e2e.sh"
runs=${GPULAUNCH_TEST_RUNS:-1000}
at_once=50

it "$runs runs of true on 4 nodes: each 0, not a word with -q, nothing left"
for ((i = 1; i <= runs; i++)); do
    launch -q --nodes 4 --self-test off -- true
    [ "$status" -eq 0 ] || fail "run $i ended with $status"
    expect_empty "$err"
    expect_empty "$out"
done
expect_nothing_left

it "$at_once launches at the same time: no port clash, each 0"
# Every rank binds the port that it was given, as a framework would.
cat >"$scratch/bind.py" <<'PY'
import json
import os
import socket
import time

config = json.loads(os.environ["TF_CONFIG"])
task = config["task"]
host, port = config["cluster"][task["type"]][task["index"]].rsplit(":", 1)
server = socket.create_server((host, int(port)))
if os.environ["RANK"] == "0":
    master = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
    store = socket.create_server(master)
time.sleep(0.5)
PY
pids=()
for ((i = 0; i < at_once; i++)); do
    env "$mark" timeout 120 "$bin/gpulaunch" --local -q --nodes 2 \
        --self-test off -- "$python" "$scratch/bind.py" \
        >"$scratch/out.$i" 2>"$scratch/err.$i" </dev/null &
    pids+=($!)
done
for ((i = 0; i < at_once; i++)); do
    status=0
    wait "${pids[$i]}" || status=$?
    cp "$scratch/err.$i" "$err"
    [ "$status" -eq 0 ] || fail "launch $i of $at_once ended with $status"
    expect_empty "$err"
done
expect_nothing_left

done_stories
