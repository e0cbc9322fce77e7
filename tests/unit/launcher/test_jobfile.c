/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "launcher/jobfile.h"

static char folder[64];

static int set_up(void **state)
{
    (void)state;
    snprintf(folder, sizeof(folder), "/tmp/test-jobfile-XXXXXX");
    return mkdtemp(folder) != NULL && setenv("XDG_STATE_HOME", folder, 1) == 0
               ? 0
               : -1;
}

/* Fails where something was left in it. */
static int tear_down(void **state)
{
    (void)state;
    return rmdir(folder);
}

static const char *below(const char *name)
{
    static char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return path;
}

/* Who waits for a file makes nothing, and looks where another would put it. */
static void test_looking(void **state)
{
    (void)state;
    char found[PATH_MAX], elsewhere[PATH_MAX];
    assert_int_equal(jobfile_default_folder(found, NULL), 0);
    assert_string_equal(found, below("gpulaunch/jobs"));
    assert_int_equal(access(below("gpulaunch"), F_OK), -1);
    struct jobfile f;
    assert_int_equal(jobfile_create(&f, NULL, "job-1", "text", 4, NULL), 0);
    assert_int_equal(jobfile_default_folder(found, NULL), 0);
    assert_memory_equal(f.path, found, strlen(found));
    jobfile_remove(&f);

    /* No place for it: both take the other one. */
    setenv("TMPDIR", folder, 1);
    setenv("XDG_STATE_HOME", "/dev/null", 1);
    assert_int_equal(jobfile_default_folder(found, NULL), 0);
    snprintf(elsewhere, sizeof(elsewhere), "%s/gpulaunch-%lu/jobs", folder,
             (unsigned long)getuid());
    assert_string_equal(found, elsewhere);
    assert_int_equal(jobfile_create(&f, NULL, "job-1", "text", 4, NULL), 0);
    assert_memory_equal(f.path, found, strlen(found));
    jobfile_remove(&f);
    unsetenv("TMPDIR");
    setenv("XDG_STATE_HOME", folder, 1);
}

/* In gpulaunch/jobs, and no other folder is made; all of it goes again. */
static void test_default(void **state)
{
    (void)state;
    struct jobfile f;
    struct stat st;
    assert_int_equal(jobfile_create(&f, NULL, "job-1", "text", 4, NULL), 0);
    assert_string_equal(f.path, below("gpulaunch/jobs/job-1"));
    assert_int_equal(stat(f.path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(st.st_size, 4);
    assert_int_equal(access(below("gpulaunch/logs"), F_OK), -1);
    jobfile_remove(&f);
    assert_string_equal(f.path, "");
    assert_int_equal(access(below("gpulaunch"), F_OK), -1);
    jobfile_remove(&f);
}

/* What was there stays, and so does what another job has made. */
static void test_others_stay(void **state)
{
    (void)state;
    struct jobfile a, b;
    assert_int_equal(jobfile_create(&a, NULL, "job-1", "a", 1, NULL), 0);
    assert_int_equal(jobfile_create(&b, NULL, "job-2", "b", 1, NULL), 0);
    jobfile_remove(&a);
    assert_int_equal(access(b.path, F_OK), 0);
    jobfile_remove(&b);
    assert_int_equal(access(below("gpulaunch/jobs"), F_OK), -1);
    assert_int_equal(rmdir(below("gpulaunch")), 0); /* not b's */
}

/* A second file of the name is refused, and nothing is taken away by that. */
static void test_there_already(void **state)
{
    (void)state;
    struct jobfile a, b;
    assert_int_equal(jobfile_create(&a, NULL, "job-1", "a", 1, NULL), 0);
    assert_int_not_equal(jobfile_create(&b, NULL, "job-1", "b", 1, NULL), 0);
    assert_string_equal(b.path, "");
    assert_int_equal(access(a.path, F_OK), 0);
    jobfile_remove(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_looking, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_default, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_others_stay, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_there_already, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
