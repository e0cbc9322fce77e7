#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Real TensorFlow on four machines that ssh reaches.
. "$(dirname "$0")/../lib/lab.sh"
. "$(dirname "$0")/lib.sh"

needs tensorflow
bound_seconds=180
make_lab --nodes 4 --sshd --id tensorflow

it "MultiWorkerMirroredStrategy trains on 4 nodes, all with the same weights"
run "${on_front[@]}" "$bin/gpulaunch" --hosts 'node[01-04]' -- \
    "$framework_python" "$project/docs/examples/tensorflow_train.py"
expect_status 0
expect_equal_weights 4 "worker [0-9] of 4"
expect_idle_nodes 20

done_stories
