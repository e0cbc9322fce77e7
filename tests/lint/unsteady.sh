#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What scripts/unsteady.sh makes of tests that fail, once or always, on a
# project of such tests.
set -euo pipefail
. "$(dirname "$0")/../../scripts/lib.sh"
. "$project/scripts/unsteady.sh"

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
said=$scratch/said
cases=0

cat >CMakePresets.json <<'PRESETS'
{
  "version": 6,
  "configurePresets": [
    {"name": "dev", "generator": "Ninja", "binaryDir": "${sourceDir}/build/dev"}
  ],
  "testPresets": [
    {
      "name": "dev", "configurePreset": "dev",
      "execution": {"noTestsAction": "error"}
    }
  ]
}
PRESETS

# The runs of a test are counted in a file of its name. It fails in those whose
# numbers follow; 77 is what it fails with after a "skip".
cat >deed <<'DEED'
#!/bin/sh
name=$1
shift
echo run >>"count-$name"
run=$(wc -l <"count-$name")
code=1
for word; do
    case $word in
    report) [ "$run" -gt 1 ] || echo "SUMMARY: AddressSanitizer: heap" ;;
    skip) code=77 ;;
    "$run") exit "$code" ;;
    always) exit 1 ;;
    esac
done
DEED
chmod +x deed

# tests NAME DEEDS...: a project of such tests.
tests()
{
    rm -rf build count-*
    {
        echo 'cmake_minimum_required(VERSION 3.25)'
        echo 'project(scratch LANGUAGES NONE)'
        echo 'enable_testing()'
        while [ "$#" -gt 0 ]; do
            echo "add_test(NAME $1 COMMAND \${CMAKE_SOURCE_DIR}/deed $1 $2" \
                "WORKING_DIRECTORY \${CMAKE_SOURCE_DIR})"
            echo "set_tests_properties($1 PROPERTIES SKIP_RETURN_CODE 77)"
            shift 2
        done
    } >CMakeLists.txt
    cmake --preset dev >/dev/null
}

# expect CODE UNSTEADY: how run_tests ends, and which tests it calls so.
expect()
{
    local code=0 names

    cases=$((cases + 1))
    unsteady=()
    run_tests dev -j 2 >"$said" 2>&1 || code=1
    names=${unsteady[*]-}
    [ "$code:$names" = "$1:$2" ] ||
        die "case $cases: ended with $code, unsteady: $names: $(cat "$said")"
}

# expect_runs NAME COUNT
expect_runs()
{
    [ "$(wc -l <"count-$1")" -eq "$2" ] ||
        die "case $cases: $1 ran $(wc -l <"count-$1") times, not $2"
}

expect_said()
{
    grep -qE "$1" "$said" || die "case $cases: not said: $1: $(cat "$said")"
}

tests good "" other ""
expect 0 ""
expect_runs good 1
expect_said '^100% tests passed'

tests good "" once "1"
expect 0 "once (dev)"
expect_runs good 1
expect_runs once 4
expect_said '[0-9] - once \(Failed\)'
expect_said '^100% tests passed'
tell_unsteady 2>"$said"
expect_said '^unsteady.sh: unsteady: once \(dev\): failed once beside others,'
expect_said 'passed 3 times alone$'
expect_said '^unsteady.sh: unsteady tests: 1$'

# What failed last time is not what fails now.
expect 0 ""
expect_runs once 5

tests bad "always" good ""
expect 1 ""
expect_runs bad 2
expect_said 'bad \(Failed\)'

tests again "1 4" once "1"
expect 1 "once (dev)"
expect_runs again 4

# Skipped is not passed, and what cannot be run is not either.
tests later "1 skip 2 3 4"
expect 1 ""
tests gone "always"
cmake --preset dev >/dev/null
expect 1 ""

tests seen "report 1"
expect 1 "seen (dev)"
expect_said 'a sanitizer reported something in: seen$'
tests shown "report" once "1"
expect 0 "once (dev)"

# Many at once.
many=()
for i in $(seq "$((unsteady_max + 1))"); do
    many+=("many$i" 1)
done
tests "${many[@]}"
expect 1 ""
expect_runs many1 1
expect_said 'which is no chance$'

# No test at all, and no project.
rm -rf build
expect 1 ""

unsteady=()
[ -z "$(tell_unsteady 2>&1)" ] || die "says something of nothing"
echo "$cases cases hold"
