#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The record of a check as others read it: every line by a validator of JSON
# Schema, the page by a browser that may load nothing, JUnit by an XML parser,
# Prometheus text by the parser of its own client library; and what report and
# diff make of it.
source "$(dirname "$0")/../lib/e2e.sh"
schema=$(dirname "$0")/../../docs/record.schema.json

it "a check writes its record, and all that is drawn of it"
run "$bin/gpulaunch" check --local --nodes 3 \
    --record "$scratch/a.jsonl" --html "$scratch/a.html" \
    --junit "$scratch/a.xml" --prometheus "$scratch/a.prom" \
    -- python train.py --token hunter2
expect_status 0
for file in a.jsonl a.html a.xml a.prom; do
    [ -s "$scratch/$file" ] || fail "$file was not written"
    ! grep -q hunter2 "$scratch/$file" || fail "$file has the token"
done
expect_nothing_left

it "every line keeps to the published schema; a run first, an end last"
"$python" - "$schema" "$scratch/a.jsonl" <<'PY' || fail "see above"
import json
import sys

import jsonschema

schema = json.load(open(sys.argv[1]))
lines = [json.loads(line) for line in open(sys.argv[2])]
for line in lines:
    jsonschema.Draft202012Validator(schema).validate(line)
types = [line["type"] for line in lines]
assert types[0] == "run" and types[-1] == "end", types
assert types.count("node") == 3 and "bandwidth" in types, types
assert lines[0]["command"][-1] == "***", lines[0]["command"]
assert all(node["facts"] for node in lines if node["type"] == "node")
PY

it "JUnit: what an XML parser counts is what the head says"
"$python" - "$scratch/a.xml" <<'PY' || fail "see above"
import sys
import xml.etree.ElementTree as tree

suite = tree.parse(sys.argv[1]).getroot().find("testsuite")
cases = suite.findall("testcase")
for kind, key in ("failure", "failures"), ("error", "errors"), \
        ("skipped", "skipped"):
    count = sum(case.find(kind) is not None for case in cases)
    assert count == int(suite.get(key)), (kind, count)
assert len(cases) == int(suite.get("tests")) > 0
PY

it "Prometheus: its own parser takes every line"
"$python" - "$scratch/a.prom" <<'PY' || fail "see above"
import sys

from prometheus_client.parser import text_string_to_metric_families

families = {f.name: f for f in
            text_string_to_metric_families(open(sys.argv[1]).read())}
samples = families["gpulaunch_record_exit_code"].samples
assert [s.value for s in samples] == [0], samples
assert families["gpulaunch_bus_bandwidth_bytes_per_second"].samples
PY

it "the same again from the record"
run "$bin/gpulaunch" report "$scratch/a.jsonl" --html "$scratch/b.html" \
    --junit "$scratch/b.xml" --prometheus -
expect_status 0
cmp "$scratch/a.html" "$scratch/b.html" || fail "another page"
cmp "$scratch/a.xml" "$scratch/b.xml" || fail "other cases"
cmp "$scratch/a.prom" "$out" || fail "other metrics"

it "--json: one object with the same findings"
run "$bin/gpulaunch" check --local --nodes 2 --self-test off --json
expect_status 0
"$python" - "$out" <<'PY' || fail "see above"
import json
import sys

check = json.load(open(sys.argv[1]))
assert check["schema_version"] == 1 and check["verb"] == "check"
assert len(check["nodes"]) == 2
assert len(check["findings"]) >= check["counts"]["fail"]
PY

it "a record and itself: nothing has changed"
run "$bin/gpulaunch" diff "$scratch/a.jsonl" "$scratch/a.jsonl"
expect_status 0
expect_empty "$out"

it "a fact that has changed, and a node that is gone"
"$python" - "$scratch/a.jsonl" "$scratch/c.jsonl" <<'PY'
import json
import sys

with open(sys.argv[2], "w") as out:
    for line in map(json.loads, open(sys.argv[1])):
        if line["type"] == "node" and line["node_rank"] == 0:
            line["facts"]["gpu.count"] = "77"
        if line.get("node_rank") != 2:
            out.write(json.dumps(line) + "\n")
PY
run "$bin/gpulaunch" diff "$scratch/a.jsonl" "$scratch/c.jsonl"
expect_status 1
expect_has "$out" '^- local-2$'
expect_has "$out" '^[~] local-0: gpu.count: .* -> 77$'

it "a record that was cut short says so, everywhere"
sed '$d' "$scratch/a.jsonl" >"$scratch/cut.jsonl"
run "$bin/gpulaunch" report "$scratch/cut.jsonl" --html "$scratch/cut.html" \
    --junit "$scratch/cut.xml" --prometheus "$scratch/cut.prom"
expect_status 0
expect_has "$scratch/cut.html" 'it was cut short'
expect_has "$scratch/cut.xml" 'errors="1"'
expect_has "$scratch/cut.prom" '^gpulaunch_record_is_complete 0$'

it "what is no record is refused with its line"
echo '{"type":"run","schema_version":1}' >"$scratch/bad.jsonl"
echo 'nonsense' >>"$scratch/bad.jsonl"
run "$bin/gpulaunch" report "$scratch/bad.jsonl" --html -
expect_status 125
expect_last_line 'bad.jsonl: line 2, column '

it "a place where nothing can be written is told before anything starts"
run "$bin/gpulaunch" check --local --nodes 2 --record "$scratch/no/where"
expect_status 125
expect_last_line '--record: .*no/where'
expect_nothing_left

command -v chromium >/dev/null || skip "no chromium here to look at the page"

# browse WIDTH: the page in a browser that sees no network; its title and the
# requests that it made.
browse()
{
    HOME=$scratch timeout 120 unshare -n chromium --headless --no-sandbox \
        --disable-gpu --hide-scrollbars --window-size="$1",900 \
        --user-data-dir="$scratch/browser" --disable-sync \
        --no-first-run --log-net-log="$scratch/net.json" \
        --dump-dom "file://$scratch/a.html" >"$scratch/dom" 2>"$scratch/log" ||
        fail "the browser failed: $(tail -n 3 "$scratch/log")"
}

it "the page stands in a browser, wide and narrow, and fetches nothing"
for width in 1280 390; do
    browse "$width"
    expect_has "$scratch/dom" '<title>gpulaunch check</title>'
    expect_has "$scratch/dom" '<svg '
    "$python" - "$scratch/net.json" <<'PY' || fail "it fetched something"
import re
import sys

text = open(sys.argv[1]).read()
urls = set(re.findall(r'"url":"((?:https?|ws)://[^"]+)"', text))
own = ("google", "gstatic", "chrome")  # of the browser's own upkeep
assert not [u for u in urls if not any(o in u for o in own)], urls
PY
done
done_stories
