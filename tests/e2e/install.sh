#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The programs find each other, wherever they are and are called from.
. "$(dirname "$0")/../lib/e2e.sh"

it "from the build folder, called from elsewhere by a relative path"
cd "$scratch"
run "$(realpath --relative-to=. "$bin")/gpulaunch" --local --nodes 2 -q \
    --no-label -- pwd
expect_status 0
expect_out "$(printf '%s\n%s' "$PWD" "$PWD")"

it "from an installed prefix, by PATH"
prefix=$scratch/prefix
cmake --install "$bin/.." --prefix "$prefix" >/dev/null
[ "$(ls "$prefix/bin")" = gpulaunch ] ||
    fail "bin has more than the front door: $(ls "$prefix/bin")"
run env PATH="$prefix/bin:$PATH" gpulaunch --local --nodes 2 -q -- true
expect_status 0
expect_nothing_left

it "through a symbolic link"
ln -s "$prefix/bin/gpulaunch" "$scratch/gpl"
run "$scratch/gpl" --local --nodes 2 -q -- true
expect_status 0

it "the manual page is installed"
find "$prefix/share/man/man1" -name 'gpulaunch.1*' | grep -q . ||
    fail "no manual page"

done_stories
