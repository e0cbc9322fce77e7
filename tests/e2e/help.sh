#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Help and versions.
. "$(dirname "$0")/../lib/e2e.sh"

for program in gpulaunch gpulaunch-coordinator gpulaunch-worker; do
    it "$program --help: on stdout, 80 columns, exit 0"
    run "$bin/$program" --help
    expect_status 0
    expect_empty "$err"
    expect_has "$out" "$program"
    [ "$(awk '{ if (length > most) most = length } END { print most }' \
        "$out")" -le 80 ] || fail "a line is wider than 80 columns"

    it "$program --version: its name and version"
    run "$bin/$program" --version
    expect_status 0
    expect_empty "$err"
    expect_lines "$out" 1
    expect_has "$out" "^$program [0-9]+\\.[0-9]+\\.[0-9]+"
done

it "gpulaunch without arguments says how to use it"
run "$bin/gpulaunch"
expect_status 125
expect_has "$err" '--help'

it "gpulaunch help run and help env name their options"
run "$bin/gpulaunch" help run
expect_status 0
expect_has "$out" '--nodes'
expect_has "$out" '--join-timeout'
run "$bin/gpulaunch" help env
expect_status 0
expect_has "$out" '--rank'

it "every option of the help has its place in the manual page"
run "$bin/gpulaunch" --help
page=$(sed 's/\\-/-/g' "$project/docs/man/gpulaunch.1")
options=$(grep -oE '(^|[ ,])--[a-z][a-z-]+' "$out" | tr -d ' ,' | sort -u)
[ "$(wc -l <<<"$options")" -gt 20 ] || fail "the help has too few options"
for option in $options; do
    grep -qF -- "$option" <<<"$page" ||
        fail "the manual page does not have $option"
done

done_stories
