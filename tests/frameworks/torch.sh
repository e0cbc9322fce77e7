#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Real PyTorch: DistributedDataParallel with gloo through env://.
. "$(dirname "$0")/lib.sh"

framework_python=$python
needs torch
bound_seconds=180

for shape in '4 1' '2 2'; do
    read -r nodes per_node <<<"$shape"
    it "DDP trains on $nodes nodes with $per_node ranks each, all with the same weights"
    launch --nodes "$nodes" --per-node "$per_node" -- \
        "$framework_python" "$project/docs/examples/torch_train.py"
    expect_status 0
    expect_equal_weights 4 'rank [0-3] of 4'
    expect_no_process
done

it "torchrun's words for the same"
launch --nnodes 1 --nproc_per_node 2 -- \
    "$framework_python" "$project/docs/examples/torch_train.py"
expect_status 0
expect_equal_weights 2 'rank [01] of 2'

done_stories
