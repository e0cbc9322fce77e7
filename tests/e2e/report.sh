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

# rank_1 PYTHON: three ranks, of which rank 1 runs this; the others wait.
rank_1()
{
    launch --nodes 3 --self-test off --result "$result" -- "$python" -c "
import json, os, sys, time
if os.environ['RANK'] != '1':
    time.sleep(60)
err = os.fdopen(2, 'wb', closefd=False)
$1"
}

# Nothing of ours may move a cursor or be no text.
expect_clean_report()
{
    grep -a '^gpulaunch: ' "$err" >"$scratch/ours" || fail "nothing is said"
    "$python" - "$scratch/ours" <<'PY' || fail "the report is no clean text"
import sys

text = open(sys.argv[1], "rb").read().decode()
sys.exit(any(ord(c) < 32 and c != "\n" or 127 <= ord(c) < 160 for c in text))
PY
}

it "a failure report: who, why, the last lines, NCCL, the exception, the others"
rank_1 "
print('box:1 socket.cc:484 NCCL WARN connection closed', flush=True)
try:
    raise ValueError('no such shard')
except ValueError as e:
    import traceback
    json.dump({'message': {'message': 'ValueError: no such shard', 'extraInfo':
        {'py_callstack': traceback.format_exc()}}},
        open(os.environ['TORCHELASTIC_ERROR_FILE'], 'w'))
err.write(b''.join(b'line %d\n' % i for i in range(100)))
sys.exit(5)"
expect_status 5
expect_has "$err" '^gpulaunch: first failure: rank 1 on node local-1 .* exited with code 5; it had run for'
expect_has "$err" '^gpulaunch:   \| line 99$'
expect_has "$err" '^gpulaunch:   \| line 80$'
expect_lacks "$err" '^gpulaunch:   \| line 79$'
expect_has "$err" '^gpulaunch:   NCCL: box:1 socket.cc:484 NCCL WARN connection closed$'
expect_has "$err" '^gpulaunch:   exception: ValueError: no such shard$'
expect_has "$err" '^gpulaunch:   raised at <string>:[0-9]+ in <module>$'
expect_has "$err" '^gpulaunch: stopped after it: 2 ranks: 0 on node local-0; 2 on node local-2$'
expect_last_line 'rank 1 on node local-1 .* exited with code 5; its log: .*rank-1.err$'
expect_json "$result" 'r["stopped_ranks"] == "0,2" and r["stopped_count"] == 2'
expect_json "$result" '[e["stopped"] for e in r["exits"]] == [False, True, True]'
expect_json "$result" 'r["exits"][0]["stderr_tail"][-1] == "line 99"
    and r["exits"][0]["exception"]["type"] == "ValueError"
    and len(r["exits"][0]["nccl_warnings"]) == 1
    and r["exits"][0]["pid"] > 1 and r["exits"][0]["cpu_seconds"] > 0
    and r["exits"][1]["stderr_tail"] is None'

it "-q: the last line only"
launch --nodes 2 --self-test off -q -- \
    sh -c '[ $RANK = 0 ] && exec sleep 60; exit 5'
expect_status 5
expect_lines "$err" 1

it "one rank, whose output is on the screen: the last line only"
launch --nodes 1 --self-test off -- sh -c 'echo boom >&2; exit 5'
expect_lines "$err" 2

it "ranks that fail by themselves are told apart from those that were stopped"
launch --nodes 4 --self-test off --result "$result" -- "$python" -c '
import os
import signal
import sys
import time

code = {"1": 9, "2": 9, "3": 143}.get(os.environ["RANK"], 0)
signal.signal(signal.SIGTERM, lambda *_: sys.exit(code))
open("'"$scratch"'/ready." + os.environ["RANK"], "w").close()
while not all(os.path.exists(f"'"$scratch"'/ready.{i}") for i in range(4)):
    time.sleep(0.01)
if os.environ["RANK"] == "0":
    sys.exit(5)
signal.pause()'
expect_status 5
expect_has "$err" '^gpulaunch: then failed: ranks 1-2 each exited with code 9, '
expect_has "$err" '^gpulaunch: stopped after it: 1 rank: 3 on node local-3$'

it "a stderr of escapes, NULs and broken UTF-8 is harmless"
rank_1 "
err.write(b'\x1b[2J\x1b]0;title\x07\x1b[31mred\x1b[0m \xff\xfe \x00 \xc2\x9b1m caf\xc3\xa9\n')
err.write(b'1%\r2%\r100%\n')
sys.exit(1)"
expect_status 1
expect_clean_report
expect_has "$err" '^gpulaunch:   \| red \?\? \? \?\?1m café$'
expect_has "$err" '^gpulaunch:   \| 100%$'

it "a line of a megabyte is cut"
forget_logs
rank_1 "
err.write(b'x' * 2**20)
sys.exit(1)"
expect_status 1
expect_clean_report
expect_has "$err" '^gpulaunch:   \| \.\.\.x{380,400}\.\.\.$'
[ "$(find "$XDG_STATE_HOME" -name rank-1.err -size 1024k | wc -l)" -eq 1 ] ||
    fail "the log has not all of it"

it "a hostile error file does no harm"
for content in '{"message": "E: x\u0000"}' '{' ''; do
    HOSTILE=$content rank_1 "
open(os.environ['TORCHELASTIC_ERROR_FILE'], 'w').write(os.environ['HOSTILE'])
sys.exit(1)"
    expect_status 1
    expect_last_line 'exited with code 1'
    expect_json "$result" 'r["exits"][0]["exception"] is None'
done
HOSTILE='{"message": "E: \u001b[2Jx"}' rank_1 "
open(os.environ['TORCHELASTIC_ERROR_FILE'], 'w').write(os.environ['HOSTILE'])
sys.exit(1)"
expect_has "$err" '^gpulaunch:   exception: E: \?\[2Jx$'
rank_1 "
os.symlink('/etc/passwd', os.environ['TORCHELASTIC_ERROR_FILE'])
sys.exit(1)"
expect_json "$result" 'r["exits"][0]["error_file_bytes"] is None'

it "the error file of a job that succeeds goes with its logs"
forget_logs
rm "$result"
launch --nodes 2 --self-test off -- \
    sh -c 'echo "{}" >"$TORCHELASTIC_ERROR_FILE"'
expect_status 0
expect_nothing_left

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
