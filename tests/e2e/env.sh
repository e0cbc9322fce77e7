#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The environment of the ranks, as they see it, and as `gpulaunch env` shows
# it.
. "$(dirname "$0")/../lib/e2e.sh"

# environment_of ARGUMENT...: `env` on every rank, a file each, in
# $scratch/env.RANK.
environment_of()
{
    launch "$@" --self-test off -- \
        sh -c "env -0 | sort -z >$scratch/env.\$RANK"
    expect_status 0
}

value_of()
{
    grep -zaE "^$2=" "$scratch/env.$1" | tr '\0' '\n' | sed 's/^[^=]*=//'
}

expect_value()
{
    [ "$(value_of "$1" "$2")" = "$3" ] ||
        fail "rank $1: $2 is '$(value_of "$1" "$2")', not '$3'"
}

it "PyTorch's variables on 2 nodes with 2 ranks each"
environment_of --nodes 2 --per-node 2
for rank in 0 1 2 3; do
    expect_value "$rank" RANK "$rank"
    expect_value "$rank" WORLD_SIZE 4
    expect_value "$rank" LOCAL_RANK "$((rank % 2))"
    expect_value "$rank" LOCAL_WORLD_SIZE 2
    expect_value "$rank" GROUP_RANK "$((rank / 2))"
    expect_value "$rank" GROUP_WORLD_SIZE 2
    expect_value "$rank" MASTER_ADDR "$(value_of 0 MASTER_ADDR)"
    expect_value "$rank" MASTER_PORT "$(value_of 0 MASTER_PORT)"
    expect_value "$rank" TORCHELASTIC_USE_AGENT_STORE False
    expect_value "$rank" JAX_PROCESS_ID "$rank"
    expect_value "$rank" HOROVOD_RANK "$rank"
done

it "TF_CONFIG: one cluster for all, an own task and an own port for each"
for rank in 0 1 2 3; do
    value_of "$rank" TF_CONFIG >"$scratch/tf.$rank"
    expect_json "$scratch/tf.$rank" \
        "r['task'] == {'type': 'worker', 'index': $rank}"
    expect_json "$scratch/tf.$rank" 'len(set(r["cluster"]["worker"])) == 4'
done
"$python" - "$scratch"/tf.? <<'PY' || fail "the clusters differ"
import json
import sys

clusters = {json.dumps(json.load(open(name))["cluster"])
            for name in sys.argv[1:]}
sys.exit(len(clusters) != 1)
PY

it "no TF_CONFIG for a world of one, unless asked"
TF_CONFIG='{"cluster":{}}' environment_of --nodes 1
[ -z "$(value_of 0 TF_CONFIG)" ] || fail "TF_CONFIG is set"
environment_of --nodes 1 --tf-config always
[ -n "$(value_of 0 TF_CONFIG)" ] || fail "TF_CONFIG is not set"

it "the user's own values win where they may, and a line says what was kept"
OMP_NUM_THREADS=3 environment_of --nodes 2
expect_value 1 OMP_NUM_THREADS 3
expect_has "$err" 'OMP_NUM_THREADS'

it "-x wins over every rule, alone it takes the caller's value"
FROM_HERE=there environment_of --nodes 2 -x MASTER_PORT=1234 -x FROM_HERE \
    --env OTHER='a b=c'
expect_value 1 MASTER_PORT 1234
expect_value 0 FROM_HERE there
expect_value 1 OTHER 'a b=c'

it "leftovers of other launchers are dropped, and a line says so"
SLURM_PROCID=5 PMI_RANK=3 OMPI_COMM_WORLD_RANK=2 SLURM_JOB_ID=77 \
    environment_of --nodes 2
for name in SLURM_PROCID PMI_RANK OMPI_COMM_WORLD_RANK; do
    [ -z "$(value_of 0 "$name")" ] || fail "$name is still set"
done
expect_value 0 SLURM_JOB_ID 77
expect_has "$err" 'PMI_RANK'

it "gpulaunch env shows what a rank would get, and starts nothing"
run "$bin/gpulaunch" env --local --nodes 2 --rank 1 -- \
    touch "$scratch/witness"
expect_status 0
[ ! -e "$scratch/witness" ] || fail "the command was started"
for line in RANK=1 WORLD_SIZE=2 LOCAL_RANK=0; do
    expect_has "$out" "^$line\$"
done
expect_has "$out" '^TF_CONFIG=.*"index": ?1'
expect_nothing_left

it "gpulaunch env --explain names the rule of each variable"
run env OMP_NUM_THREADS=3 PMI_RANK=3 "$bin/gpulaunch" env --local --nodes 2 \
    --rank 0 --explain -x MINE=1 -- true
expect_status 0
expect_has "$out" 'OMP_NUM_THREADS.*kept|kept.*OMP_NUM_THREADS'
expect_has "$out" 'PMI_RANK.*dropped|dropped.*PMI_RANK'
expect_has "$out" 'MINE.*-x|-x.*MINE'

it "gpulaunch env --json has the same, for programs"
run "$bin/gpulaunch" env --local --nodes 2 --rank 1 --json -- true
expect_status 0
expect_json "$out" 'r["schema_version"] == 1'
expect_nothing_left

done_stories
