/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/makesecret.h"
#include "proto/secret.h"

static char folder[64];
static char path[PATH_MAX], other[PATH_MAX];

static int set_up(void **state)
{
    (void)state;
    snprintf(folder, sizeof(folder), "/tmp/test-makesecret-XXXXXX");
    if (mkdtemp(folder) == NULL) {
        return -1;
    }
    snprintf(path, sizeof(path), "%s/job.secret", folder);
    snprintf(other, sizeof(other), "%s/other", folder);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    unlink(path);
    unlink(other);
    return rmdir(folder);
}

/* Whatever the umask: 0600, and read back as a secret. */
static void test_file(void **state)
{
    (void)state;
    static const mode_t masks[] = {0, 022, 077, 0777};
    for (size_t i = 0; i < sizeof(masks) / sizeof(masks[0]); i++) {
        struct gpul_secret secret;
        struct gpul_error err = {0};
        struct stat st;
        mode_t kept = umask(masks[i]);
        int rc = makesecret_file(path, &err);
        umask(kept);
        assert_string_equal(err.text, "");
        assert_int_equal(rc, 0);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode, S_IFREG | 0600);
        assert_int_equal(st.st_size, GPUL_SECRET_TEXT_BYTES - 1);
        assert_int_equal(gpul_secret_read_file(&secret, path, NULL), 0);
        assert_int_equal(unlink(path), 0);
    }
}

/* A file, a link to one, and a link to nothing stay as they are. */
static void test_exists(void **state)
{
    (void)state;
    char expected[PATH_MAX + 100], text[16] = {0};
    snprintf(expected, sizeof(expected),
             "%s exists, and others may hold the same secret; name a new file, "
             "or remove it first",
             path);
    for (int kind = 0; kind < 3; kind++) {
        struct gpul_error err = {0};
        if (kind < 2) {
            int fd = open(kind == 0 ? path : other, O_CREAT | O_WRONLY, 0644);
            assert_true(fd >= 0);
            assert_int_equal(write(fd, "theirs", 6), 6);
            close(fd);
        }
        if (kind > 0) {
            assert_int_equal(symlink(other, path), 0);
        }
        assert_int_equal(makesecret_file(path, &err), GPUL_EINVAL);
        assert_string_equal(err.text, expected);
        int fd = open(path, O_RDONLY);
        assert_int_equal(fd < 0, kind == 2);
        if (fd >= 0) {
            assert_int_equal(read(fd, text, sizeof(text)), 6);
            close(fd);
        }
        unlink(path);
        unlink(other);
    }
}

static void test_no_place(void **state)
{
    (void)state;
    struct gpul_error err = {0};
    assert_int_equal(makesecret_file("/nowhere/job.secret", &err), GPUL_ESYS);
    assert_string_equal(err.text, "cannot create /nowhere/job.secret: No such "
                                  "file or directory");
}

/* makesecret_print; what it said goes to `said`. */
static int print(int fd, int *why, char said[1024])
{
    int fds[2], kept = dup(STDERR_FILENO);
    assert_int_equal(pipe(fds), 0);
    dup2(fds[1], STDERR_FILENO);
    int rc = makesecret_print(fd, why, NULL);
    dup2(kept, STDERR_FILENO);
    close(fds[1]);
    close(kept);
    ssize_t n = read(fds[0], said, 1023);
    said[n > 0 ? n : 0] = '\0';
    close(fds[0]);
    return rc;
}

/* A file is warned of where others may use it, a pipe and a private file are
 * not; the secret is there in any case. */
static void test_print(void **state)
{
    (void)state;
    static const struct {
        mode_t mode;
        const char *said;
    } cases[] = {
        {0600, ""},
        {0644, "gpulaunch: warning: others may use the file that this goes to "
               "(mode 644), so --secret-file will refuse it; run umask 077 "
               "first, or: gpulaunch secret FILE\n"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char said[1024];
        int why = -1;
        struct gpul_secret secret;
        int fd = open(path, O_CREAT | O_WRONLY | O_TRUNC, 0600);
        assert_true(fd >= 0);
        assert_int_equal(fchmod(fd, cases[i].mode), 0);
        assert_int_equal(print(fd, &why, said), 0);
        assert_int_equal(why, 0);
        close(fd);
        assert_string_equal(said, cases[i].said);
        assert_int_equal(chmod(path, 0600), 0);
        assert_int_equal(gpul_secret_read_file(&secret, path, NULL), 0);
    }
}

static void test_terminal(void **state)
{
    (void)state;
    char said[1024];
    int why = -1, fd = posix_openpt(O_RDWR | O_NOCTTY);
    assert_true(fd >= 0);
    assert_true(grantpt(fd) == 0 && unlockpt(fd) == 0);
    int screen = open(ptsname(fd), O_RDWR | O_NOCTTY);
    assert_true(screen >= 0);
    assert_int_equal(print(screen, &why, said), 0);
    assert_string_equal(said, "gpulaunch: note: to keep a secret off the "
                              "screen write it to a file: gpulaunch secret "
                              "FILE\n");
    close(screen);
    close(fd);
}

/* Nobody reads it: the errno says so, which makes an exit code. */
static void test_closed(void **state)
{
    (void)state;
    char said[1024];
    int fds[2], why = 0;
    signal(SIGPIPE, SIG_IGN);
    assert_int_equal(pipe(fds), 0);
    close(fds[0]);
    assert_int_equal(print(fds[1], &why, said), GPUL_ESYS);
    assert_int_equal(why, EPIPE);
    assert_string_equal(said, "");
    close(fds[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_file, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_exists, set_up, tear_down),
        cmocka_unit_test(test_no_place),
        cmocka_unit_test_setup_teardown(test_print, set_up, tear_down),
        cmocka_unit_test(test_terminal),
        cmocka_unit_test(test_closed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
