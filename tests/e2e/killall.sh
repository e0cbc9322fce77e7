#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# kill -9 of front end, coordinator, agent and keeper, in every combination, at
# random moments of a job of 4 nodes x 2 ranks: the job ends as
# docs/supervision.md, "Who dies, what happens", says, its exit code and reason
# are documented ones, and nothing of it is left 5 s after it is over.
#
# GPULAUNCH_TEST_ROUNDS: so many (15 are each combination once).
# GPULAUNCH_TEST_SEED: repeats the moments of a run that has printed it.
rounds=${GPULAUNCH_TEST_ROUNDS:-16}
seed=${GPULAUNCH_TEST_SEED:-$RANDOM}
. "$(dirname "$0")/../lib/e2e.sh"

echo "seed $seed"
RANDOM=$seed
roles=(front coordinator agent keeper)
folder=$scratch/round
ends_after_ms=1200
orphan_seconds=4
grace_seconds=1

# What a rank leaves behind carries the job's own mark and not the test's, so
# that it is found by that alone.
cat >"$scratch/rank" <<SCRIPT
#!/bin/sh
echo "\$GPULAUNCH_MARKER" >"$folder/marker.\$RANK"
echo "\$\$" >>"$folder/starts.\$RANK"
if [ -n "\$GPULAUNCH_MARKER" ]; then
    env -u "${mark%%=*}" sleep 300 &
else
    sleep 300 &
fi
sleep $((ends_after_ms / 1000)).$((ends_after_ms % 1000 / 100))
: >"$folder/done.\$RANK"
SCRIPT
chmod +x "$scratch/rank"

# below N: at random.
below()
{
    echo "$(((RANDOM << 15 | RANDOM) % $1))"
}

pause_ms()
{
    sleep "$(printf '%d.%03d' "$(($1 / 1000))" "$(($1 % 1000))")"
}

# worker_of NODE agent|keeper: its pid, if it is there. Agent and undertaker
# name themselves.
worker_of()
{
    local pid comm agent='' keeper=''

    for pid in $(pids_of gpulaunch-worker); do
        tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline" | grep -q " $1 " ||
            continue
        comm=$(cat "/proc/$pid/comm" 2>/dev/null || true)
        if [ "$comm" = gpulaunch-agent ]; then
            agent=$pid
        elif [[ $comm != gpulaunch-under* ]]; then
            keeper=$pid
        fi
    done
    if [ "$2" = agent ]; then
        echo "$agent"
    else
        echo "$keeper"
    fi
}

# kill_role ROLE NODE: whoever is not there any more cannot be killed.
kill_role()
{
    local pid

    case $1 in
    front) pid=$front_end ;;
    coordinator) pid=$(pids_of gpulaunch-coordinator) ;;
    *) pid=$(worker_of "$2" "$1") ;;
    esac
    [ -n "$pid" ] || return 0
    kill -KILL "$pid" 2>/dev/null || return 0
    killed+=" $1"
}

# job_pids: by the mark that gpulaunch gives to its ranks.
job_pids()
{
    local marker

    marker=$(cat "$folder"/marker.* 2>/dev/null | grep . | head -n 1 || true)
    [ -n "$marker" ] || return 0
    { grep -lzE "^GPULAUNCH_MARKER=${marker%%/*}/" /proc/[0-9]*/environ \
        2>/dev/null || true; } | cut -d/ -f3
}

nothing_is_left()
{
    [ -z "$(marked_pids)" ] && [ -z "$(job_pids)" ]
}

expect_gone()
{
    local start pid

    start=$(now_ms)
    until nothing_is_left; do
        if is_over "$start" "$1"; then
            left="$(describe_left 2>&1) and by mark: $(job_pids | xargs)"
            for pid in $(job_pids); do
                kill -KILL "$pid" 2>/dev/null || true
            done
            fail "processes are left: $left"
        fi
        sleep 0.02
    done
}

was_killed()
{
    [[ " $killed " == *" $1 "* ]]
}

# The codes and reasons that what was killed can lead to. Success is one if
# every rank has come to its end.
expect_documented()
{
    local allowed=''

    if was_killed coordinator; then
        allowed+=' 75:coordinator_lost'
    fi
    if was_killed keeper; then
        allowed+=' 75:node_lost 41:node_lost 40:node_gone'
    fi
    if [ "$status" -eq 0 ]; then
        [ "$(find "$folder" -name 'done.*' | wc -l)" -eq 8 ] ||
            fail "success, and not every rank has ended"
        return
    fi
    reason=$("$python" -c 'import json, sys
print(json.load(open(sys.argv[1]))["reason"])' "$folder/result.json") ||
        fail "exit code $status, and no result"
    [[ " $allowed " == *" $status:$reason "* ]] ||
        fail "exit code $status ($reason), and only$allowed can be"
    expect_last_line .
}

# An agent's death alone starts no rank twice, and its job succeeds.
expect_unharmed()
{
    local starts

    expect_status 0
    for starts in "$folder"/starts.*; do
        [ "$(wc -l <"$starts")" -eq 1 ] ||
            grep -q 'starting once more' "$err" ||
            fail "a rank was started twice: $(cat "$starts")"
    done
}

# play ROLE...: one round, in which these are killed in this order.
play()
{
    local role node
    node=local-$(below 4)

    rm -rf "$folder"
    mkdir "$folder"
    killed=
    launch_behind --nodes 4 --per-node 2 --self-test off \
        --grace "${grace_seconds}s" --orphan-timeout "${orphan_seconds}s" \
        --result "$folder/result.json" -- "$scratch/rank"
    pause_ms "$(below 2000)"
    for role in "$@"; do
        kill_role "$role" "$node"
        pause_ms "$(below 60)"
    done
    if was_killed front; then
        wait "$front_end" 2>/dev/null || true
        expect_gone "$((orphan_seconds + 2 * grace_seconds + 15))"
        return
    fi
    finish
    expect_gone 5
    expect_documented
    if [ "$killed" = " agent" ]; then
        expect_unharmed
    fi
}

for ((round = 0; round < rounds; round++)); do
    combination=$((round % 15 + 1))
    victims=()
    for index in "${!roles[@]}"; do
        if [ $((combination >> index & 1)) -eq 1 ]; then
            victims+=("${roles[index]}")
        fi
    done
    mapfile -t victims < <(shuf -e --random-source=<(
        yes "$RANDOM"
    ) "${victims[@]}")
    it "round $round of seed $seed: ${victims[*]}"
    play "${victims[@]}"
    forget_logs
done

done_stories
