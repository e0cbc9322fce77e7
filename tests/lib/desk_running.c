/* SPDX-License-Identifier: Apache-2.0
 *
 * What the desk says and hears while ranks run, and whether they do.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include "desk.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

void desk_credit(struct desk *d, uint64_t bytes)
{
    Gpul__Credit credit;
    gpul__credit__init(&credit);
    credit.bytes = bytes;
    Gpul__Frame frame;
    gpul__frame__init(&frame);
    frame.body_case = GPUL__FRAME__BODY_CREDIT;
    frame.credit = &credit;
    desk_send(d, &frame);
}

void desk_launch(struct desk *d, uint32_t attempt)
{
    Gpul__Launch launch;
    gpul__launch__init(&launch);
    launch.attempt = attempt;
    Gpul__Frame frame;
    gpul__frame__init(&frame);
    frame.body_case = GPUL__FRAME__BODY_LAUNCH;
    frame.launch = &launch;
    desk_send(d, &frame);
}

void desk_stop(struct desk *d, int signal, uint32_t grace_ms)
{
    Gpul__Stop stop;
    gpul__stop__init(&stop);
    stop.signal = (uint32_t)signal;
    stop.grace_ms = grace_ms;
    Gpul__Frame frame;
    gpul__frame__init(&frame);
    frame.body_case = GPUL__FRAME__BODY_STOP;
    frame.stop = &stop;
    desk_send(d, &frame);
}

static void note_exit(struct desk_exit *one, const Gpul__Exit *e)
{
    one->code = e->code;
    one->signal = e->signal;
    one->exec_errno = e->exec_errno;
    one->is_bind_error = e->is_bind_error;
    snprintf(one->text, sizeof(one->text), "%s", e->text);
    snprintf(one->log, sizeof(one->log), "%s", e->log);
}

void desk_expect_exits(struct desk *d, uint32_t ranks, struct desk_exit *one)
{
    for (uint32_t seen = 0; seen < ranks;) {
        Gpul__Frame *frame = desk_expect(d, GPUL__FRAME__BODY_EXITS);
        for (size_t i = 0; i < frame->exits->n_exits; i++) {
            const Gpul__Exit *e = frame->exits->exits[i];
            if (one == NULL) {
                assert_int_equal(e->code, 0);
                assert_int_equal(e->signal, 0);
                assert_int_equal(e->exec_errno, 0);
                assert_string_equal(e->log, "");
            } else if (e->rank == one->rank) {
                note_exit(one, e);
            }
        }
        seen += (uint32_t)frame->exits->n_exits;
        gpul_message_release(frame);
    }
}

void desk_expect_idle(struct desk *d, size_t unclean)
{
    Gpul__Frame *idle = desk_expect(d, GPUL__FRAME__BODY_IDLE);
    assert_int_equal(idle->idle->n_unclean, unclean);
    gpul_message_release(idle);
}

static bool file_has(const char *pid, const char *file, const char *text)
{
    static char line[64 << 10];
    char path[300];
    snprintf(path, sizeof(path), "/proc/%s/%s", pid, file);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    ssize_t n = read(fd, line, sizeof(line));
    close(fd);
    return n > 0 && memmem(line, (size_t)n, text, strlen(text)) != NULL;
}

/* Processes with this text in a file of theirs below /proc. */
static unsigned count_processes(const char *file, const char *text)
{
    DIR *proc = opendir("/proc");
    unsigned count = 0;
    for (struct dirent *e; (e = readdir(proc)) != NULL;) {
        bool is_other = e->d_name[0] > '0' && e->d_name[0] <= '9' &&
                        atoi(e->d_name) != getpid();
        count += is_other && file_has(e->d_name, file, text) ? 1 : 0;
    }
    closedir(proc);
    return count;
}

bool desk_sees_process(const char *text)
{
    return count_processes("cmdline", text) > 0;
}

unsigned desk_count_processes(const char *text)
{
    return count_processes("environ", text);
}
