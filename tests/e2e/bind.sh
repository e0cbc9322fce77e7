#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What ranks are bound to, as they see it themselves.
. "$(dirname "$0")/../lib/e2e.sh"

# allowed_of PID: "0-3,8", as the kernel has it.
allowed_of()
{
    sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' "/proc/$1/status"
}

# bound ARGUMENT...: each rank's processors, in $scratch/cpus.RANK.
bound()
{
    rm -f "$scratch"/cpus.*
    run "${under[@]}" "$bin/gpulaunch" --local --self-test off "$@" -- sh -c \
        "grep Cpus_allowed_list /proc/self/status | cut -f 2 \
            >$scratch/cpus.\$RANK; ulimit -n >$scratch/files.\$RANK"
    expect_status 0
}

expect_bound()
{
    [ "$(cat "$scratch/cpus.$1")" = "$2" ] ||
        fail "rank $1 is bound to $(cat "$scratch/cpus.$1"), not to $2"
}

under=(env)
here=$(allowed_of self)
# The first two processors that this test may use, a core each where the
# machine has no second threads.
mapfile -t two < <("$python" -c 'import os
for cpu in sorted(os.sched_getaffinity(0))[:2]: print(cpu)')

it "nothing is bound unless asked"
bound --nodes 1 --per-node 2
expect_bound 0 "$here"
expect_bound 1 "$here"

it "open files are raised to the hard limit"
under=(prlimit --nofile=512:8000)
bound --nodes 1
[ "$(cat "$scratch/files.0")" = 8000 ] ||
    fail "a rank may open $(cat "$scratch/files.0") files"

it "a hard limit that is too low is said once"
under=(prlimit --nofile=512:2000)
bound --nodes 2
[ "$(grep -c 'could only be raised to 2000' "$err")" = 1 ] ||
    fail "the hard limit is not told once"

it "under a cpuset of one processor every rank has that one"
under=(taskset -c "${two[-1]}")
for how in core numa gpu; do
    bound --nodes 2 --per-node 2 --bind "$how"
    for rank in 0 1 2 3; do
        expect_bound "$rank" "${two[-1]}"
    done
done

it "no GPU in sight: ranks are not bound, and a line says why"
under=(env CUDA_VISIBLE_DEVICES=)
bound --nodes 1 --per-node 2 --bind gpu
expect_bound 1 "$here"
expect_has "$err" '--bind gpu: ranks that see no GPU .* not bound .*: 2'

it "an unknown word is answered with the known ones"
launch --bind cores -- true
expect_status 125
expect_has "$err" 'did you mean core\?'
launch --cpu-bind=cores -- true
expect_status 125
expect_has "$err" 'use --bind none, numa, gpu or core'

[ "${#two[@]}" -eq 2 ] || skip "one processor: nothing to divide"
under=(taskset -c "${two[0]},${two[1]}")

it "core, on this machine as it is: two ranks differ, unless on one core"
bound --nodes 1 --per-node 2 --bind core
siblings=/sys/devices/system/cpu/cpu${two[0]}/topology/thread_siblings
if [ $((0x$(sed 's/.*,//' "$siblings") >> two[1] & 1)) -eq 0 ]; then
    expect_bound 0 "${two[0]}"
    expect_bound 1 "${two[1]}"
else
    expect_bound 0 "$(cat "$scratch/cpus.1")"
fi

# What hwloc is told, so that two processors are two cores wherever this runs.
export HWLOC_SYNTHETIC="numa:2 core:1 pu:1(indexes=${two[0]},${two[1]})"

it "core: two ranks, a core each"
bound --nodes 1 --per-node 2 --bind core
expect_bound 0 "${two[0]}"
expect_bound 1 "${two[1]}"
expect_lacks "$err" '--bind'

it "core: two nodes of one host do not take the same"
bound --nodes 2 --bind core
expect_bound 0 "${two[0]}"
expect_bound 1 "${two[1]}"

it "gpulaunch env says what a rank would be bound to"
run "${under[@]}" "$bin/gpulaunch" env --local --nodes 2 --bind core --rank 1 \
    -- true
expect_status 0
expect_has "$out" "^# bound to processors ${two[1]}\$"
run "${under[@]}" "$bin/gpulaunch" env --local --nodes 2 --bind core --rank 1 \
    --json -- true
expect_json "$out" "r['ranks'][0]['cpus'] == '${two[1]}'"
run "$bin/gpulaunch" env --local --nodes 2 --rank 1 --json -- true
expect_json "$out" "r['ranks'][0]['cpus'] is None"

done_stories
