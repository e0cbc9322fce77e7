#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Input that cannot be right: 125, one line that says what and what to do,
# and nothing is started.
. "$(dirname "$0")/../lib/e2e.sh"

# The command would leave this behind.
witness=$scratch/witness

# refused TEXT ARGUMENT...: of gpulaunch, as they stand.
refused()
{
    local text=$1
    shift

    it "refused: gpulaunch $*"
    run "$bin/gpulaunch" "$@"
    expect_status 125
    expect_empty "$out"
    expect_lines "$err" 1
    expect_has "$err" '^gpulaunch: '
    expect_has "$err" "$text"
    [ ! -e "$witness" ] || fail "the command was started"
    expect_nothing_left
}

cmd=(touch "$witness")
refused '--nodes' --local --nodez 4 -- "${cmd[@]}"
refused '--self-test' --local --selftest off -- "${cmd[@]}"
refused '--nodes.*\b0\b' --local --nodes 0 -- "${cmd[@]}"
refused '--nodes.*-1' --local --nodes -1 -- "${cmd[@]}"
refused '--nodes.*four' --local --nodes four -- "${cmd[@]}"
refused '--nodes.*99999999' --local --nodes 99999999 -- "${cmd[@]}"
refused '--nnodes' --local --nnodes 2:4 -- "${cmd[@]}"
refused '--per-node.*\b0\b' --local --nodes 2 --per-node 0 -- "${cmd[@]}"
refused '--nproc-per-node.*many' --local --nproc-per-node many -- "${cmd[@]}"
refused '--timeout.*soon' --local --nodes 2 --timeout soon -- "${cmd[@]}"
refused '--grace' --local --nodes 2 --grace -5s -- "${cmd[@]}"
refused '--self-test.*(quick|full|off)' \
    --local --nodes 2 --self-test slow -- "${cmd[@]}"
refused 'command' --local --nodes 2 --
refused 'command' --local --nodes 2
refused 'roles' --local --nodes 2 --roles chief=1,worker=4 -- "${cmd[@]}"
refused 'chief' --local --nodes 3 --roles chief=2,worker=1 -- "${cmd[@]}"
refused 'worker' --local --nodes 3 --roles cheif=1,wroker=2 -- "${cmd[@]}"
refused '(quiet|-q).*(verbose|-v)|(verbose|-v).*(quiet|-q)' \
    --local --nodes 2 -q -v -- "${cmd[@]}"
refused '(per-node)' \
    --local --nodes 2 --per-node 2 --nproc-per-node 3 -- "${cmd[@]}"
refused '--env|-x' --local --nodes 2 -x '=value' -- "${cmd[@]}"
refused '--rank' env --local --nodes 2 --rank 5 -- "${cmd[@]}"
refused '--rank' env --local --nodes 2 --rank two -- "${cmd[@]}"
refused '--color' --local --nodes 2 --color pink -- "${cmd[@]}"
refused '--log-dir.*no-such|no-such' --local --nodes 2 \
    --log-dir /proc/no-such/dir -- "${cmd[@]}"
refused "$err" --local --nodes 2 --log-dir "$err" -- "${cmd[@]}"
refused 'no-such' --local --nodes 2 --result /no-such/dir/r.json \
    -- "${cmd[@]}"
refused '--local.*--nodes N' --per-node 2 -- "${cmd[@]}"
refused 'check|verb' chekc --local

it "a value from the environment is judged alike, and its name is said"
run env GPULAUNCH_NODES=none "$bin/gpulaunch" --local -- "${cmd[@]}"
expect_status 125
expect_lines "$err" 1
expect_has "$err" 'GPULAUNCH_NODES'

it "the flag wins over the environment"
run env GPULAUNCH_NODES=3 "$bin/gpulaunch" --local -q --self-test off \
    --nodes 1 -- sh -c 'echo $WORLD_SIZE'
expect_status 0
expect_out 1

it "a variable whose name is a slip of the pen: a line says what was meant"
run env GPULAUNCH_NODEZ=3 "$bin/gpulaunch" --local --self-test off -- \
    sh -c 'echo $WORLD_SIZE'
expect_status 0
expect_out 1
expect_lines "$err" 1
expect_has "$err" 'GPULAUNCH_NODEZ is ignored; did you mean GPULAUNCH_NODES'

done_stories
