# SPDX-License-Identifier: Apache-2.0
#
# End-to-end tests on the machines of scripts/lab: e2e.sh, and a lab that is
# taken down when the test ends, whatever way it ends. Sourced.
# shellcheck shell=bash
# shellcheck source=tests/lib/e2e.sh
. "$(dirname "${BASH_SOURCE[0]}")/e2e.sh"

# Before a command with its arguments: runs it on the front. For `run`.
# shellcheck disable=SC2034  # for the scripts that source this
on_front=(env "TMPDIR=$scratch" "$project/scripts/lab" exec front --)

# lab ARGUMENT...: of this test's labs, which are in its scratch folder.
lab()
{
    TMPDIR=$scratch "$project/scripts/lab" "$@"
}

# clean_up asks for the exit code, so that is what this returns.
end_labs()
{
    local code=$?

    set +e
    lab down --all >/dev/null 2>&1
    return "$code"
}
trap 'end_labs; clean_up' EXIT

# make_lab OPTION...: or the test is skipped where there can be none.
make_lab()
{
    local code=0 words

    words=$(lab up "$@" 2>&1 >/dev/null) || code=$?
    [ "$code" -ne 77 ] || skip "$words"
    [ "$code" -eq 0 ] || fail "no lab: $words"
}

# on NODE COMMAND...
on()
{
    lab exec "$1" -- "${@:2}"
}

# expect_idle_nodes [SECONDS]: no process is on any node but the lab's own.
expect_idle_nodes()
{
    local start left

    start=$(now_ms)
    while left=$(lab ps) && [ -n "$left" ]; do
        ! is_over "$start" "${1:-0}" || fail "left on the nodes: $left"
        sleep 0.05
    done
}
