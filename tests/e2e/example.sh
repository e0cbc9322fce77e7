#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# docs/examples/train.py, the work that the quickstart shows.
. "$(dirname "$0")/../lib/e2e.sh"

example=$project/docs/examples/train.py

for nodes in 1 2 4; do
    it "trains on $nodes nodes to the known loss with equal weights"
    launch --nodes "$nodes" -- "$python" "$example" --workers "$nodes"
    expect_status 0
    [ "$(grep -oE 'loss 0.154961, weights [0-9a-f]{16}$' "$out" | sort |
        uniq -c | awk '{ print $1 }')" = "$nodes" ] ||
        fail "not $nodes workers with the same weights"
    expect_nothing_left
done

it "fails when there are fewer workers than it was promised"
launch --nodes 2 --self-test off -- "$python" "$example" --workers 3
expect_status 1
expect_has "$err" 'TF_CONFIG has 2 worker'

it "fails when TF_CONFIG is withheld"
launch --nodes 2 --self-test off --tf-config never -- \
    "$python" "$example" --workers 2
expect_status 1
expect_has "$err" 'without TF_CONFIG there is 1 worker'

it "fails when its index is not in the cluster"
status=0
TF_CONFIG='{"cluster":{"worker":["127.0.0.1:1"]},"task":{"type":"worker","index":1}}' \
    "$python" "$example" >"$out" 2>"$err" || status=$?
expect_status 1
expect_has "$err" 'this is worker 1, but the cluster has only 1'

done_stories
