#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Real TensorFlow reads the TF_CONFIG that gpulaunch sets.
. "$(dirname "$0")/lib.sh"

needs tensorflow
bound_seconds=180

for nodes in 2 4; do
    it "MultiWorkerMirroredStrategy trains on $nodes nodes, all with the same weights"
    launch --nodes "$nodes" -- \
        "$framework_python" "$project/docs/examples/tensorflow_train.py"
    expect_status 0
    expect_equal_weights "$nodes" "worker [0-9] of $nodes"
    expect_no_process
done

it "ParameterServerStrategy: chief, 2 workers, 1 ps; the chief's exit ends the job"
launch --nodes 4 --roles chief=1,worker=2,ps=1 -- \
    "$framework_python" "$project/tests/frameworks/parameter_server.py"
expect_status 0
expect_has "$out" 'chief with 2 workers and 1 ps, weights on /job:ps/.* loss 0\.00'
expect_no_process

it "gpulaunch scale measures it by its steps, on 1 and 2 nodes"
run "$bin/gpulaunch" scale --local --nodes 1,2 --repeats 1 -q --json -- \
    "$framework_python" "$project/docs/examples/tensorflow_train.py"
expect_status 0
expect_json "$out" '[e["node_count"] for e in r["efficiencies"]] == [1, 2]
    and all(e["efficiency"] > 0 for e in r["efficiencies"])'
expect_json "$out" 'r["message"].startswith("throughput: steps")'
expect_no_process

done_stories
