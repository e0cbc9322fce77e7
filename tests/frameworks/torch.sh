#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Real PyTorch: DistributedDataParallel with gloo through env://; what its
# `record` leaves of an exception.
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

# Rank 1 fails within a call; with "mute" nothing of it comes on stderr, so that
# all that is known is what torch has written to its error file.
cat >"$scratch/fails.py" <<'END'
import os
import sys
import time

from torch.distributed.elastic.multiprocessing.errors import record


def step(number):
    if number == 3:
        raise ValueError("layer 3 wants 64 features, got 65")


@record
def main():
    if os.environ["RANK"] != "1":
        time.sleep(300)
    if "mute" in sys.argv:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    for number in range(5):
        step(number)


main()
END

# expect_exception: in the result, by type, message and the frames of the user.
expect_exception()
{
    expect_status 1
    expect_has "$err" 'first failure: rank 1 on node local-1'
    expect_has "$err" 'stopped after it: 1 rank: 0 on node local-0'
    expect_json "$scratch/result.json" \
        '[e["exception"]["message"] for e in r["exits"] if e["rank"] == 1] ==
            ["layer 3 wants 64 features, got 65"]'
    expect_json "$scratch/result.json" \
        'r["exits"][0]["exception"]["type"] == "ValueError" and
            "step" in r["exits"][0]["exception"]["last_frame"]'
    forget_logs
    expect_nothing_left
}

it "an exception under record: the report has its lines and where it was raised"
launch --nodes 2 --self-test off --result "$scratch/result.json" -- \
    "$framework_python" "$scratch/fails.py"
expect_has "$err" '^gpulaunch:   \| ValueError: layer 3 wants 64 features, got 65$'
expect_has "$err" '^gpulaunch:   raised at .*fails.py.*step'
expect_exception

it "one that nobody has seen on stderr is known by torch's error file"
launch --nodes 2 --self-test off --result "$scratch/result.json" -- \
    "$framework_python" "$scratch/fails.py" mute
expect_has "$err" '^gpulaunch:   exception: ValueError: layer 3 wants 64 features, got 65$'
expect_exception

done_stories
