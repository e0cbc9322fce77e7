/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "worker/ulimits.h"

/* Only what is too low for what the machine has is worth a line. */
static void test_notices(void **state)
{
    (void)state;
    char text[ULIMITS_NOTICES_MAX][ULIMITS_NOTICE_BYTES];
    struct ulimits u = {.files = 4096, .locked_memory = 8 << 20};
    assert_int_equal(ulimits_notices(text, &u), 0);
    u.has_rdma = true;
    assert_int_equal(ulimits_notices(text, &u), 1);
    assert_string_equal(text[0],
                        "locked memory (ulimit -l) could only be raised to 8 "
                        "MiB, the hard limit; RDMA needs it unlimited: set "
                        "memlock in limits.conf, or LimitMEMLOCK= of the "
                        "service");
    u.files = 1024;
    assert_int_equal(ulimits_notices(text, &u), 2);
    u.locked_memory = UINT64_MAX;
    assert_int_equal(ulimits_notices(text, &u), 1);
    assert_string_equal(text[0],
                        "open files (ulimit -n) could only be raised to 1024, "
                        "the hard limit; training often needs more: set nofile "
                        "in limits.conf, or LimitNOFILE= of the service");
    u.files = UINT64_MAX;
    assert_int_equal(ulimits_notices(text, &u), 0);
}

static void test_read(void **state)
{
    (void)state;
    char root[] = "/tmp/gpul-ulimits-XXXXXX";
    char path[3][64];
    static const char *const folders[] = {"/sys", "/sys/class",
                                          "/sys/class/infiniband"};
    struct ulimits u;
    struct rlimit files;
    assert_non_null(mkdtemp(root));
    ulimits_read(&u, root);
    assert_false(u.has_rdma);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
    assert_true(u.files == (files.rlim_max == RLIM_INFINITY
                                ? UINT64_MAX
                                : (uint64_t)files.rlim_max));
    for (size_t i = 0; i < 3; i++) {
        snprintf(path[i], sizeof(path[i]), "%s%s", root, folders[i]);
        assert_int_equal(mkdir(path[i], 0700), 0);
    }
    ulimits_read(&u, root);
    assert_false(u.has_rdma); /* the folder alone is no card */
    char card[128];
    snprintf(card, sizeof(card), "%s/mlx5_0", path[2]);
    assert_int_equal(mkdir(card, 0700), 0);
    ulimits_read(&u, root);
    assert_true(u.has_rdma);
    rmdir(card);
    for (size_t i = 3; i-- > 0;) {
        rmdir(path[i]);
    }
    assert_int_equal(rmdir(root), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_notices),
        cmocka_unit_test(test_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
