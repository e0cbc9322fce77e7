# SPDX-License-Identifier: Apache-2.0
#
# Tests, and what to think of one that failed: it runs again, alone, and must
# pass three times in a row. docs/testing.md says what that hides. Sourced,
# after lib.sh, never run.
# shellcheck shell=bash

# "NAME (PRESET)" of those that passed alone only.
unsteady=()

# More than so many at once are no chance.
unsteady_max=10

# with_reports LOG NAME...: those of the tests of which a sanitizer reported
# something, one a line. LOG is ctest's LastTest.log.
with_reports()
{
    local log=$1
    shift

    awk -v names="$*" '
        BEGIN { n = split(names, list); for (i = 1; i <= n; i++) is[list[i]] = 1 }
        /^[0-9]+\/[0-9]+ Testing: / { name = $3 }
        /SUMMARY: [A-Za-z]+Sanitizer/ && name in is && !told[name]++ {
            print name
        }' "$log"
}

# passed_alone RESULTS NAME: did this test run, and pass? RESULTS is what
# ctest wrote for --output-junit.
passed_alone()
{
    grep -qF "<testcase name=\"$2\" " "$1" &&
        grep -F "<testcase name=\"$2\" " "$1" | grep -q 'status="run"'
}

# rerun PRESET NAME...: the tests that have just failed, by themselves; false
# unless all of them pass.
rerun()
{
    local preset=$1 name results rc=0
    shift

    say "${#} failed in $preset; again, alone, three times in a row: $*"
    results=$(mktemp)
    ctest --preset "$preset" --rerun-failed -j 1 --repeat until-fail:3 \
        --output-junit "$results" || rc=1
    for name in "$@"; do
        if passed_alone "$results" "$name"; then
            unsteady+=("$name ($preset)")
        else
            rc=1
        fi
    done
    rm -f "$results"
    return "$rc"
}

# run_tests PRESET [CTEST-OPTION...]: false if a test failed that does not pass
# alone, or of which a sanitizer reported something: what that has seen once
# is there.
run_tests()
{
    local preset=$1 folder=build/$1/Testing/Temporary failed reported rc=0
    shift

    # It is left alone by a run without failures.
    rm -f "$folder/LastTestsFailed.log"
    ctest --preset "$preset" "$@" && return 0
    mapfile -t failed < <(cut -d: -f2- "$folder/LastTestsFailed.log")
    if [ "${#failed[@]}" -eq 0 ]; then
        return 1 # it is not for a test
    fi
    if [ "${#failed[@]}" -gt "$unsteady_max" ]; then
        say "${#failed[@]} failed in $preset, which is no chance"
        return 1
    fi
    mapfile -t reported < <(with_reports "$folder/LastTest.log" "${failed[@]}")
    rerun "$preset" "${failed[@]}" || rc=1
    if [ "${#reported[@]}" -gt 0 ]; then
        say "a sanitizer reported something in: ${reported[*]}"
        rc=1
    fi
    return "$rc"
}

# tell_unsteady: a line for each, and how many. Nothing where there is none.
tell_unsteady()
{
    local name

    [ "${#unsteady[@]}" -gt 0 ] || return 0
    for name in "${unsteady[@]}"; do
        say "unsteady: $name: failed once beside others," \
            "passed 3 times alone"
    done
    say "unsteady tests: ${#unsteady[@]}"
}
