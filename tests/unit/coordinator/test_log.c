/* SPDX-License-Identifier: Apache-2.0
 *
 * What gpulaunch reads of a coordinator that has died: the bytes before the
 * offset of the memory file that was its standard error.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <unistd.h>

#include "coordinator/log.h"

enum { FILE_BYTES = 4096, LINES = 200, TEXT_BYTES = 8192 };

#define STRANGER "closed a connection from 10.0.0.7 without the job's key: HTTP"
#define LAST "gpulaunch-coordinator: out of memory\n"

/* Log many lines and a last one into a memory file; the last bytes before its
 * offset, as many as LAST has. Returns the offset. */
static off_t log_into(char end[sizeof(LAST)], bool is_sealed)
{
    int fd = memfd_create("words", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    int kept = dup(STDERR_FILENO);
    assert_true(fd >= 0 && kept >= 0);
    if (is_sealed) {
        assert_int_equal(ftruncate(fd, FILE_BYTES), 0);
        assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_GROW), 0);
    }
    dup2(fd, STDERR_FILENO);
    for (int i = 0; i < LINES; i++) {
        log_line(STRANGER);
    }
    log_line("out of memory");
    dup2(kept, STDERR_FILENO);
    close(kept);
    off_t at = lseek(fd, 0, SEEK_CUR);
    memset(end, 0, sizeof(LAST));
    ssize_t n = pread(fd, end, sizeof(LAST) - 1, at - (off_t)sizeof(LAST) + 1);
    close(fd);
    assert_int_equal(n, sizeof(LAST) - 1);
    return at;
}

/* Strangers have filled it: the last line is there all the same. */
static void test_full(void **state)
{
    (void)state;
    char end[sizeof(LAST)];
    assert_true(log_into(end, true) <= FILE_BYTES);
    assert_string_equal(end, LAST);
}

/* A file that may grow keeps every line. */
static void test_growing(void **state)
{
    (void)state;
    char end[sizeof(LAST)];
    off_t line_bytes = sizeof("gpulaunch-coordinator: " STRANGER "\n") - 1;
    assert_int_equal(log_into(end, false),
                     LINES * line_bytes + (off_t)sizeof(LAST) - 1);
    assert_string_equal(end, LAST);
}

/* What is too long is cut, and is a line still. */
static void test_long(void **state)
{
    (void)state;
    char text[TEXT_BYTES], line[TEXT_BYTES];
    int ends[2], kept = dup(STDERR_FILENO);
    memset(text, 'a', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    dup2(ends[1], STDERR_FILENO);
    log_line(text);
    dup2(kept, STDERR_FILENO);
    close(kept);
    close(ends[1]);
    ssize_t n = read(ends[0], line, sizeof(line));
    close(ends[0]);
    assert_true(n > 2048 && n < TEXT_BYTES);
    assert_int_equal(line[n - 1], '\n');
    assert_int_equal(line[n - 2], 'a');
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_full),
        cmocka_unit_test(test_growing),
        cmocka_unit_test(test_long),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
