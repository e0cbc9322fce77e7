#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# gpulaunch scale: efficiencies of commands whose efficiency is known, and what
# becomes of a sweep in which something fails.
. "$(dirname "$0")/../lib/e2e.sh"
bound_seconds=240

record=$scratch/scale.jsonl

# scale ARGUMENT...: on local nodes, without a self-test.
scale()
{
    rm -f "$record"
    run "$bin/gpulaunch" scale --local --self-test off --record "$record" "$@"
}

# expect_record PYTHON: of the items of one type, as `t["sample"]`.
expect_record()
{
    "$python" - "$record" "$1" <<'PY' || fail "${1}: not true of the record"
import collections
import json
import sys

t = collections.defaultdict(list)
for line in open(sys.argv[1]):
    item = json.loads(line)
    t[item["type"]].append(item)
e = {i["node_count"]: i for i in t["efficiency"]}
sys.exit(0 if eval(f"({sys.argv[2]})", {"t": t, "e": e}) else 1)
PY
}

# Every rank tells what it makes of N nodes: X(N) = 100 N / (1 + (N-1)/28), of
# which the efficiency on 8 is 0.80. No clock is asked. The first line is the
# warm-up.
cat >"$scratch/known.sh" <<'SH'
#!/bin/sh
echo "0.001 images/s"
awk -v n="$WORLD_SIZE" 'BEGIN {
    for (i = 0; i < 3; i++) printf "%.4f images/s\n", 100 / (1 + (n - 1) / 28)
}'
SH
chmod +x "$scratch/known.sh"
known=(--metric '([0-9.]+) images/s' --unit images/s)

it "a command with an efficiency of 0.80 on 8 nodes is told to have that"
scale --nodes 1,2,4,8 "${known[@]}" -- "$scratch/known.sh"
expect_status 0
expect_record 'abs(e[8]["efficiency"] - 0.80) < 0.02'
expect_record 'abs(e[8]["throughput"] - 640) < 0.1'
expect_record 'e[8]["reference_node_count"] == 1 and e[8]["repeats"] == 3'
expect_record 'len(t["sample"]) == 12 and e[1]["unit"] == "images/s"'
expect_record '[s["node_count"] for s in t["sample"]][:8] ==
    [1, 2, 4, 8, 8, 4, 2, 1]'
expect_has "$out" '^ +8 +8 +640\.0 .* 0\.800 '
expect_has "$out" 'one node: what the network costs shows in all others'
expect_has "$out" '^Fit scaling: universal: '
[ "$(awk '{ if (length > most) most = length } END { print most }' \
    "$out")" -le 80 ] || fail "a line is wider than 80 columns"
expect_nothing_left

it "from 1, 2 and 4 nodes it is predicted, within the interval"
scale --nodes 4,2,1 --predict 8 "${known[@]}" --json --html "$scratch/p.html" \
    -- "$scratch/known.sh"
expect_status 0
expect_json "$out" 'r["predictions"][0]["efficiency_low"] <= 0.80
    <= r["predictions"][0]["efficiency_high"]'
expect_json "$out" 'r["predictions"][0]["extrapolation"] == 2
    and r["predictions"][0]["from_node_counts"] == [1, 2, 4]'
expect_json "$out" 'abs(r["efficiencies"][2]["efficiency"] - 0.903) < 0.001'
grep -q '<h2>Scaling efficiency' "$scratch/p.html" || fail "no page was drawn"
run "$bin/gpulaunch" diff "$record" "$record"
expect_status 0

it "two counts predict nothing, and it is said why"
scale --nodes 1,2 --predict 8 "${known[@]}" -- "$scratch/known.sh"
expect_status 0
expect_has "$out" '^Prediction for 8 nodes: none: '
expect_record 't["prediction"][0]["refused"] is not None
    and t["prediction"][0]["efficiency"] is None'

it "one rank tells the job's figure"
scale --nodes 1,2 --repeats 1 --metric 'x=(.*)' -- \
    sh -c '[ $RANK -gt 0 ] || echo x=$((WORLD_SIZE * 45))'
expect_status 0
expect_record 'e[2]["throughput"] == 90 and e[2]["efficiency"] == 1'
expect_has "$out" 'fewer than 3 repeats'

it "half of the ranks: whose figure is it? Nobody guesses"
scale --nodes 1,4 --repeats 1 --metric 'x=(.*)' -- \
    sh -c '[ $RANK -ge 2 ] || echo x=45'
expect_status 125
expect_last_line '2 of 4 ranks told a figure \(0-1\).*--metric-of rank'
expect_record 'e[1]["throughput"] == 45 and e[4]["throughput"] is None
    and t["end"][0]["exit_code"] == 125'
scale --nodes 1,4 --repeats 1 --metric 'x=(.*)' --metric-of rank -- \
    sh -c '[ $RANK -ge 2 ] || echo x=45'
expect_status 0
expect_record 'e[4]["throughput"] == 90'

it "lines to GPULAUNCH_METRIC_FD, with their unit"
scale --nodes 1,2 --repeats 1 -q -- \
    sh -c 'echo "12.5 tokens/s" >&$GPULAUNCH_METRIC_FD; echo out'
expect_status 0
expect_record 'e[2]["throughput"] == 25 and e[2]["unit"] == "tokens/s"'
expect_empty "$err"

it "nothing tells how fast it is: the ways are named after the first run"
scale --nodes 1,2 -- true
expect_status 125
expect_last_line '--metric REGEX.*GPULAUNCH_METRIC_FD.*GPULAUNCH_BEAT_FD'
expect_record 'len(t["sample"]) == 1'

it "--strong: the run time will do"
scale --nodes 1,2 --strong --repeats 1 -- true
expect_status 0
expect_has "$out" 'runs of the command, from its launch to its end'
expect_record 'e[2]["scaling"] == "strong" and e[2]["efficiency"] > 0'
expect_nothing_left

it "a count on which every run fails: its code, the others are told"
scale --nodes 1,2,4 "${known[@]}" -- \
    sh -c '[ $WORLD_SIZE != 2 ] || exit 7; exec "$0"' "$scratch/known.sh"
expect_status 7
expect_last_line 'no run on 2 nodes gave a figure: .* exited with code 7'
expect_record 'abs(e[4]["efficiency"] - 0.903) < 0.001
    and e[2]["efficiency"] is None and e[2]["repeats"] == 0'
expect_record '[s["exit_code"] for s in t["sample"]
    if s["node_count"] == 2] == [7, 7, 7]'
forget_logs

it "Ctrl-C: what was measured up to then is told and recorded"
rm -f "$record"
run_behind "$bin/gpulaunch" scale --local --self-test off --nodes 1,2 \
    --record "$record" "${known[@]}" -- \
    sh -c '"$0"; [ $WORLD_SIZE = 1 ] || { : >"$1.$RANK"; sleep 600; }' \
    "$scratch/known.sh" "$scratch/up"
within 60 "the second run did not begin" test -e "$scratch/up.1"
kill -INT "$front_end"
finish
expect_status 130
expect_last_line 'stopped by SIGINT after 1 of 6 runs'
expect_has "$out" '^ +1 +1 +100\.0 '
expect_record 't["end"][0]["exit_code"] == 130 and len(t["sample"]) == 1'
forget_logs
expect_nothing_left

it "the shipped example, with a self-test: steps, and busbw beside them"
rm -f "$record"
run "$bin/gpulaunch" scale --local --nodes 1,2,4 --strong --repeats 1 -q \
    --record "$record" -- "$python" "$project/docs/examples/train.py"
expect_status 0
expect_has "$out" 'steps of the slowest rank'
expect_record 'all(e[n]["efficiency"] > 0 for n in (1, 2, 4))'
expect_record 'e[1]["busbw_bytes_per_second"] is None and all(
    e[n]["busbw_bytes_per_second"] > 0 for n in (2, 4))'
expect_record '[e[n]["is_comparable"] for n in (1, 2, 4)] ==
    [False, False, True]'
expect_record 't["run"][0]["backend"] == "host-tcp"'
expect_record 'any("all-reduce" in f["model"] for f in t["fit"])'
expect_nothing_left

done_stories
