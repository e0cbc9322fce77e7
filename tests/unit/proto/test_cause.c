/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "proto/cause.h"

static char missing[] = "x: No such file or directory";
static char port[] = "port 20000 was taken";
static char none[] = "";

/* Each fate has its words. */
static void test_causes(void **state)
{
    (void)state;
    static const struct {
        uint32_t code, signal, exec_errno;
        Gpul__Exit__OutOfMemory out_of_memory;
        int is_stopped;
        char *text;
        const char *expected;
    } cases[] = {
        {7, 0, 0, 0, 0, none, "exited with code 7"},
        {1, 0, 0, 0, 0, port, "exited with code 1: port 20000 was taken"},
        {1, 0, 0, GPUL__EXIT__OUT_OF_MEMORY__CGROUP, 0, none,
         "exited with code 1; a process in its cgroup was killed for want of "
         "memory"},
        {0, 0, 2, 0, 0, missing,
         "could not start: x: No such file or directory"},
        {0, SIGSEGV, 0, 0, 0, none,
         "was ended by signal 11 (SIGSEGV): segmentation fault"},
        {0, SIGABRT, 0, 0, 0, none,
         "was ended by signal 6 (SIGABRT): it aborted itself"},
        {0, SIGTERM, 0, 0, 0, none, "was ended by signal 15 (SIGTERM)"},
        {0, 50, 0, 0, 0, none, "was ended by signal 50"},
        {0, SIGKILL, 0, GPUL__EXIT__OUT_OF_MEMORY__UNKNOWN, 0, none,
         "was ended by signal 9 (SIGKILL): killed by somebody outside the job, "
         "or by the kernel for want of memory"},
        {0, SIGKILL, 0, GPUL__EXIT__OUT_OF_MEMORY__NO, 0, none,
         "was ended by signal 9 (SIGKILL): killed by somebody outside the job, "
         "not for want of memory"},
        {0, SIGKILL, 0, GPUL__EXIT__OUT_OF_MEMORY__CGROUP, 0, none,
         "was ended by signal 9 (SIGKILL): out of memory, as its cgroup's "
         "counter says"},
        {0, SIGKILL, 0, GPUL__EXIT__OUT_OF_MEMORY__KERNEL, 0, none,
         "was ended by signal 9 (SIGKILL): out of memory, as the kernel's log "
         "says"},
        {0, SIGKILL, 0, 0, 1, none, "was ended by signal 9 (SIGKILL)"},
        {0, SIGSEGV, 0, 0, 1, none, "was ended by signal 11 (SIGSEGV)"},
        {0, 4000, 0, 0, 0, none, "was ended by signal 4000"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char out[GPUL_CAUSE_BYTES];
        Gpul__Exit fate = GPUL__EXIT__INIT;
        fate.code = cases[i].code;
        fate.signal = cases[i].signal;
        fate.exec_errno = cases[i].exec_errno;
        fate.out_of_memory = cases[i].out_of_memory;
        fate.is_stopped = cases[i].is_stopped;
        fate.text = cases[i].text;
        assert_string_equal(gpul_exit_cause(out, &fate), cases[i].expected);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_causes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
