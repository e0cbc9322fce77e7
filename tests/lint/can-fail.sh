#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A check that cannot fail proves nothing. This plants one fault after the
# other in a copy of the sources and expects the named check to refuse each,
# with a message that names the fault.
#
# Usage: tests/lint/can-fail.sh CHECK [BUILD_DIR]
set -euo pipefail
. "$(dirname "$0")/../../scripts/lib.sh"
check=$1
build=${2:-}

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
copy=$scratch/source
planted=0

# A fresh copy of what the checks read.
fresh_copy()
{
    rm -rf "$copy"
    mkdir "$copy"
    (cd "$project" && cp -r "${layers[@]}" scripts tests docs .ci "$copy")
    cp "$project/.clang-format" "$project/.shellcheckrc" "$copy"
}

# refuses PATTERN [ARGUMENT...]: the check, run on the copy, fails and says
# PATTERN. Then the copy is made new.
refuses()
{
    local pattern=$1 output
    shift

    if output=$("$project/scripts/$check" "$@" "$copy" 2>&1); then
        die "$check passed what it must refuse: $pattern"
    fi
    grep -qE "$pattern" <<<"$output" ||
        die "$check refused, but did not say '$pattern': $output"
    planted=$((planted + 1))
    fresh_copy
}

# lines COUNT TEXT: TEXT that many times, a line each.
lines()
{
    yes "$2" | head -n "$1" || true
}

plant_for_format()
{
    echo 'int  twice( int a ){return a*2;}' >>"$copy/common/error.c"
    refuses 'common/error\.c'
    echo 'int  twice( int a );' >>"$copy/tests/unit/common/test_buf.c"
    refuses 'tests/unit/common/test_buf\.c'
}

plant_for_headers()
{
    printf '#ifndef A_H\n#define A_H\nsize_t a_count(void);\n#endif\n' \
        >"$copy/common/a.h"
    refuses 'common/a\.h does not compile alone with gcc'
    printf '#include <stddef.h>\nstruct a {\n    size_t n;\n};\n' \
        >"$copy/worker/a.h"
    refuses 'worker/a\.h does not compile alone with clang'
}

plant_for_functions()
{
    {
        printf 'void long_one(void)\n{\n'
        lines 71 '    ;'
        printf '}\n'
    } >"$copy/proto/long.c"
    refuses 'proto/long\.c:2: function of 71 lines'
    lines 501 '/* a line */' >"$copy/launcher/long.h"
    refuses 'launcher/long\.h: file of 501 lines'
}

plant_for_shell()
{
    printf '#!/usr/bin/env bash\nrm -r $1\n' >"$copy/scripts/careless"
    refuses 'SC2086'
    printf 'cd $1\n' >"$copy/tests/lint/careless.sh"
    refuses 'careless\.sh'
}

# A fresh copy of what check-layers reads of the build.
fresh_build()
{
    rm -rf "$scratch/build"
    mkdir -p "$scratch/build/CMakeFiles"
    cp -r "$build/lib" "$build/bin" "$build/pure-targets.txt" \
        "$build/build.ninja" "$scratch/build"
    cp "$build"/CMakeFiles/*.ninja "$scratch/build/CMakeFiles"
}

# program_linking PROGRAM LAYER: adds LAYER's archive to PROGRAM's link line.
program_linking()
{
    fresh_build
    sed -i "s|^build bin/$1: [^ ]* |&lib/libgpul_$2.a |" \
        "$scratch/build/build.ninja"
}

# archive_calling NAME STATEMENT: adds to the pure archive NAME of the copied
# build a function that does STATEMENT.
archive_calling()
{
    fresh_build
    printf '#include <time.h>\n#include <stdio.h>\n#include <stdlib.h>\n%s\n' \
        "void planted(void);void planted(void){$2;}" |
        gcc -x c -c - -o "$scratch/planted.o"
    ar r "$scratch/build/lib/lib$1.a" "$scratch/planted.o"
}

plant_for_layers()
{
    local call name

    echo '#include "proto/frame.h"' >>"$copy/common/error.h"
    refuses 'common may not include these'
    echo '#include "gpulaunch.pb-c.h"' >>"$copy/common/error.c"
    refuses 'common may not include these'
    echo '#include "worker/env.h"' >>"$copy/proto/frame.h"
    refuses 'proto may not include these'
    echo '#include "worker/env.h"' >"$copy/coordinator/a.c"
    refuses 'coordinator may not include these'
    echo '#include "coordinator/rendezvous.h"' >"$copy/launcher/a.h"
    refuses 'launcher may not include these'
    echo '#include <uv.h>' >>"$copy/common/error.c"
    refuses 'common/error\.c includes uv\.h but is not an edge file'

    for name in gpulaunch-worker:coordinator gpulaunch:worker \
        gpulaunch-coordinator:launcher; do
        program_linking "${name%:*}" "${name#*:}"
        refuses "${name%:*} links the ${name#*:}" --build "$scratch/build"
    done
    for call in 'time(0)' 'printf("a")' 'getenv("A")' 'rand()' 'exit(1)'; do
        archive_calling gpul_common "$call"
        refuses "libgpul_common\.a is pure but calls (${call%%(*}|putchar)" \
            --build "$scratch/build"
    done
}

fresh_copy
plant_"for_${check#check-}"
[ "$planted" -gt 0 ] || die "nothing was planted"
echo "$check refused all $planted planted faults"
