# SPDX-License-Identifier: Apache-2.0
#
# What the framework tests share on top of tests/lib/e2e.sh.
# shellcheck shell=bash
. "$(dirname "$0")/../lib/e2e.sh"

framework_python=$project/.venv/bin/python

# needs MODULE: skip the test, with one line, where it cannot be imported.
needs()
{
    "$framework_python" -c "import $1" 2>/dev/null ||
        skip "$1 is not installed (scripts/setup-frameworks, scripts/test)"
}

# expect_equal_weights COUNT WHO: so many lines of stdout begin with WHO, all
# end with the same digest.
expect_equal_weights()
{
    local digests

    digests=$(grep -oE "$2: loss [0-9.]+, weights [0-9a-f]{16}" "$out" |
        sed 's/.* //')
    [ "$(wc -l <<<"$digests")" -eq "$1" ] ||
        fail "not $1 lines with weights on stdout"
    [ "$(sort -u <<<"$digests" | wc -l)" -eq 1 ] || fail "the weights differ"
}
