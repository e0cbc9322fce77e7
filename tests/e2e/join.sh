#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Agents that never come.
. "$(dirname "$0")/../lib/e2e.sh"

it "a node that never comes ends the job at --join-timeout with 40, and is named"
bad_node 'exec sleep 300'
run "$scratch/bin/gpulaunch" --local --nodes 3 --join-timeout 2s -- true
expect_status 40
expect_last_line 'local-1\b'
expect_lacks "$err" 'local-[02]\b.*(missing|never)'
[ "$took_ms" -ge 2000 ] || fail "gave up after $took_ms ms"
expect_within_ms 6000
expect_nothing_left

it "a worker that dies before it joins ends the job at once, with its last words"
bad_node 'echo "no libuv on this node" >&2; exit 9'
run "$scratch/bin/gpulaunch" --local --nodes 3 -- true
expect_status 40
expect_last_line 'local-1\b'
expect_has "$err" 'no libuv on this node'
expect_within_ms 4000
expect_nothing_left

it "of a worker that says much, the lines that fit are shown, the first one whole"
bad_node 'seq -f "word %04.0f, and eleven more" 100 >&2; exit 9'
run "$scratch/bin/gpulaunch" --local --nodes 2 -- true
expect_status 40
expect_last_line 'exit code 9: word [0-9]{4}, .* word 0100, and eleven more$'
expect_nothing_left

it "half of the wait gone: a line says who is missing"
bad_node 'exec sleep 300'
run "$scratch/bin/gpulaunch" --local --nodes 2 --join-timeout 3s -- true
expect_has "$err" 'wait.*local-1'
expect_status 40

it "workers that cannot be started at all are named, not waited for"
rm "$scratch/bin/gpulaunch-worker"
run "$scratch/bin/gpulaunch" --local --nodes 2 -- true
expect_status 125
expect_last_line 'gpulaunch-worker'
expect_within_ms 4000
expect_nothing_left

done_stories
