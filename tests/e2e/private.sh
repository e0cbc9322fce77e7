#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Programs that hold a secret or a key show nothing of themselves; the ranks
# are as any other process.
source "$(dirname "$0")/../lib/e2e.sh"

# Root may read everything, so look as somebody else, by an owner of files in
# /proc: those of a process that cannot be dumped are root's.
user=$(id -un)
as=()
if [ "$(id -u)" = 0 ]; then
    user=nobody
    as=(setpriv "--reuid=$user" --regid=nogroup --clear-groups)
    chmod 711 "$scratch"
    chown -R nobody:nogroup "$HOME" "$TMPDIR" "$XDG_STATE_HOME" \
        "$XDG_RUNTIME_DIR"
    "${as[@]}" test -x "$bin/gpulaunch" ||
        skip "$bin cannot be reached by user nobody"
    "${as[@]}" test -w "$TMPDIR" ||
        skip "$TMPDIR cannot be reached by user nobody"
fi
mkdir "$scratch/marks"
chmod 777 "$scratch/marks"

# owner_of PID: of what would show its memory.
owner_of()
{
    stat -c %U "/proc/$1/environ"
}

# core_limit_of PID: soft and hard.
core_limit_of()
{
    awk '/^Max core file size/ { print $5, $6 }' "/proc/$1/limits"
}

# The user's own limits, such as a shell sets them.
ulimit -Hc 1048576 2>/dev/null || skip "core files are not allowed here"
ulimit -Sc 4096
export ASAN_OPTIONS=$ASAN_OPTIONS:disable_coredump=0 # its own limit is 0

it "ranks run and are seen, under a user who is not root"
run_behind "${as[@]}" "$bin/gpulaunch" --local --nodes 2 --self-test off -- \
    sh -c "echo \$\$ >'$scratch/marks/rank.'\$RANK
        until [ -e '$scratch/marks/go' ]; do sleep 0.05; done"
within 30 "the ranks did not start" test -s "$scratch/marks/rank.0" -a \
    -s "$scratch/marks/rank.1"

it "front end, coordinator, keepers and agents leave no core file"
programs=0
for pid in $(pids_of gpulaunch) $(pids_of gpulaunch-coordinator) \
    $(pids_of gpulaunch-worker); do
    limits=$(core_limit_of "$pid")
    [ "${limits% *}" = 0 ] || fail "$(cat "/proc/$pid/comm"): $limits"
    programs=$((programs + 1))
done
[ "$programs" -ge 6 ] || fail "only $programs programs were seen"

# With a sanitizer they stay as they are: common/startup.h.
if [ "$slow" = 1 ]; then
    it "their memory and environment are nobody's to read"
    for pid in $(pids_of gpulaunch) $(pids_of gpulaunch-coordinator) \
        $(pids_of gpulaunch-worker); do
        [ "$(owner_of "$pid")" = root ] ||
            fail "$(cat "/proc/$pid/comm") belongs to $(owner_of "$pid")"
        ! "${as[@]}" cat "/proc/$pid/environ" >/dev/null 2>&1 ||
            [ "$user" = root ] || fail "$pid shows its environment"
    done
fi

it "a rank can be looked into, and has the user's own limits"
for rank in 0 1; do
    pid=$(cat "$scratch/marks/rank.$rank")
    [ "$(owner_of "$pid")" = "$user" ] || fail "rank $rank is hidden"
    [ "$(core_limit_of "$pid")" = "$((4096 * 1024)) $((1048576 * 1024))" ] ||
        fail "rank $rank: $(core_limit_of "$pid")"
done
touch "$scratch/marks/go"
finish
expect_status 0
expect_empty "$err"
expect_no_process 5

magic_of()
{
    "$bin/gpulaunch" --local --nodes 2 --self-test off "$@" -- \
        sh -c 'echo "${NCCL_SOCKET_MAGIC-none}"' 2>"$err" | sed 's/^.*\] //' |
        sort -u
}

it "one NCCL_SOCKET_MAGIC for all ranks of a job, and another for the next"
first=$(magic_of)
second=$(magic_of)
echo "$first" | grep -qxE '0x[0-9a-f]{16}' || fail "it is: $first"
[ "$first" != "$second" ] || fail "two jobs have $first"

it "the user's own stays; without a secret there is none"
[ "$(NCCL_SOCKET_MAGIC=77 magic_of)" = 77 ] || fail "the user's own is gone"
expect_has "$err" 'NCCL_SOCKET_MAGIC is kept from your environment'
expect_lacks "$err" '0x'
[ "$(magic_of --insecure)" = none ] || fail "there is one without a secret"

done_stories
