#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What machines read: the result file and --json.
. "$(dirname "$0")/../lib/e2e.sh"

result=$scratch/result.json

it "--result: one object with schema version, outcome, nodes and self-test"
launch --nodes 4 --result "$result" -- true
expect_status 0
expect_json "$result" 'r["schema_version"] == 1'
expect_json "$result" 'r["exit_code"] == 0 and r["reason"] == "success"'
expect_json "$result" 'len(r["nodes"]) == 4'
expect_json "$result" \
    '[n["name"] for n in r["nodes"]] == ["local-%d" % i for i in range(4)]'
expect_json "$result" 'all(row["wrong_elements"] == 0
    and row["busbw_bytes_per_second"] > 0 for row in r["self_test"]["rows"])'
expect_json "$result" 'r["world_size"] == 4'
[ "$(find "$scratch" -maxdepth 1 -name 'result*' | wc -l)" -eq 1 ] ||
    fail "a half-written file is left beside the result"
rm "$result"
expect_nothing_left

it "--result of a failure: rank, node, code and reason"
launch --nodes 2 --self-test off --result "$result" -- \
    sh -c '[ $RANK = 0 ] || exit 6'
expect_status 6
expect_json "$result" 'r["exit_code"] == 6 and r["reason"] == "rank_failed"'
expect_json "$result" 'r["rank"] == 1 and r["node"] == "local-1"'

it "the reason tells a rank's own 124 from a timeout"
launch --nodes 1 --self-test off --result "$result" -- sh -c 'exit 124'
expect_json "$result" 'r["exit_code"] == 124 and r["reason"] == "rank_failed"'
launch --nodes 1 --self-test off --result "$result" --timeout 1s -- sleep 60
expect_json "$result" 'r["exit_code"] == 124 and r["reason"] == "timeout"'

it "the reasons of a missing command and of a signal"
launch --nodes 1 --self-test off --result "$result" -- no-such-command
expect_json "$result" 'r["exit_code"] == 127 and r["reason"] == "exec_failed"'
launch --nodes 1 --self-test off --result "$result" -- sh -c 'kill -9 $$'
expect_json "$result" \
    'r["exit_code"] == 137 and r["reason"] == "rank_signaled"'

it "--json: the same object on stdout; the ranks' output goes to stderr"
launch --nodes 2 --self-test off --json -- echo word
expect_status 0
expect_json "$out" 'r["reason"] == "success" and r["world_size"] == 2'
expect_has "$err" '^\[1\] word$'

it "--json of wrong usage: still one line on stderr, stdout stays empty"
launch --nodes 0 --json -- true
expect_status 125
expect_empty "$out"
expect_lines "$err" 1
forget_logs

it "--dry-run starts nothing and shows the plan"
launch --nodes 2 --dry-run -- touch "$scratch/witness"
expect_status 0
[ ! -e "$scratch/witness" ] || fail "the command was started"
expect_has "$out" 'local-1'
expect_nothing_left

it "a dry run leaves no --log-dir behind that was not there"
launch --dry-run --log-dir "$scratch/new" -- true
expect_status 0
[ ! -e "$scratch/new" ] || fail "the directory is left"

it "nor the directories above it; nor does env, nor a launch that is refused"
launch --dry-run --log-dir "$scratch/new/one/more" -- true
expect_status 0
[ ! -e "$scratch/new" ] || fail "directories are left"
run "$bin/gpulaunch" env --local --rank 0 --log-dir "$scratch/new/one" -- true
expect_status 0
[ ! -e "$scratch/new" ] || fail "directories are left by env"
launch --log-dir "$scratch/new/one" --nccl-lib "$scratch/none" -- true
expect_status 125
[ ! -e "$scratch/new" ] || fail "directories are left by a refused launch"

it "a question leaves no default place for logs either"
(
    export XDG_STATE_HOME=$scratch/fresh/state
    launch --dry-run -- true
    [ ! -e "$scratch/fresh" ] || fail "the state directory is left"
)

it "--dry-run --json is one object"
launch --nodes 2 --dry-run --json -- touch "$scratch/witness"
expect_status 0
expect_json "$out" 'r["schema_version"] == 1'
expect_nothing_left

done_stories
