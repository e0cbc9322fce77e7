/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/srunjoin.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/ownfolder.h"
#include "common/units.h"
#include "launcher/jobfile.h"
#include "launcher/joining.h"
#include "launcher/meeting.h"
#include "launcher/session.h"

enum {
    PAUSE_FIRST_MS = 20,
    PAUSE_LAST_MS = 500,
    DURATION_BYTES = 32,
};

enum look { FOUND, ABSENT, STALE };

struct search {
    const struct plan *plan;
    char folder[PATH_MAX];
    enum look last;
};

/* ---- one look ------------------------------------------------------------ */

/* Of this user, and nobody else can read or write it: it has a secret. */
static int check_file(int fd, const char *name, struct gpul_error *err)
{
    struct stat st;
    if (fstat(fd, &st) != 0) {
        return gpul_fail_errno(err, errno, "cannot look at %s", name);
    }
    if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
        (st.st_mode & 077) != 0 || st.st_size > MEETING_BYTES_MAX) {
        return gpul_fail(err, GPUL_EINVAL,
                         "%s is not a file of this user that others may not "
                         "read; remove it",
                         name);
    }
    return 0;
}

static int read_file(struct meeting *m, int fd, const char *name,
                     struct gpul_error *err)
{
    char text[MEETING_BYTES_MAX];
    size_t used = 0;
    ssize_t n;
    while (used < sizeof(text) &&
           (n = read(fd, text + used, sizeof(text) - used)) != 0) {
        if (n < 0 && errno != EINTR) {
            gpul_wipe(text, sizeof(text));
            return gpul_fail_errno(err, errno, "cannot read %s", name);
        }
        used += n > 0 ? (size_t)n : 0;
    }
    int rc = meeting_parse(m, text, used, err);
    gpul_wipe(text, sizeof(text));
    return rc;
}

/* The folder is opened anew each time: only that makes NFS look again. It may
 * not be there yet, or no more. */
static int open_file(const struct search *s)
{
    int folder = gpul_open_own_folder(AT_FDCWD, s->folder);
    if (folder < 0) {
        return -1;
    }
    int fd = openat(folder, s->plan->sruntask.name,
                    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    int why = errno;
    close(folder);
    errno = why;
    return fd;
}

static int look(struct search *s, struct meeting *m, struct gpul_error *err)
{
    const char *name = s->plan->sruntask.name;
    s->last = ABSENT;
    int fd = open_file(s);
    if (fd < 0) {
        return errno == ENOENT || errno == ESTALE
                   ? 0
                   : gpul_fail_errno(err, errno, "cannot open %s/%s", s->folder,
                                     name);
    }
    int rc = check_file(fd, name, err);
    if (rc == 0) {
        rc = read_file(m, fd, name, err);
    }
    close(fd);
    if (rc != 0) {
        return gpul_wrap(err, rc, "%s", s->folder);
    }
    s->last = strcmp(m->run, s->plan->sruntask.run) == 0 ? FOUND : STALE;
    return 0;
}

/* ---- the wait ------------------------------------------------------------ */

static int fail_late(const struct search *s, struct gpul_error *err)
{
    const struct plan *plan = s->plan;
    char waited[DURATION_BYTES];
    gpul_format_duration(waited, plan->join_timeout_ms);
    return gpul_fail(
        err, GPUL_ETIMEOUT,
        "%.80s: task 0, on %.80s unless srun was told another order, has not "
        "told this node within %s where the job is: there is no %s%s in "
        "%.300s; that must be on a file system that all nodes share: set "
        "XDG_STATE_HOME to a directory that is",
        plan->sruntask.node_name, plan->nodes.list[0].name, waited,
        plan->sruntask.name,
        s->last == STALE ? " but that of an earlier run" : "", s->folder);
}

static int wait_for(struct search *s, struct meeting *m, struct gpul_error *err)
{
    uint64_t end_ms = gpul_clock_ms() + s->plan->join_timeout_ms;
    int pause_ms = PAUSE_FIRST_MS;
    for (;;) {
        int rc = look(s, m, err);
        if (rc != 0 || s->last == FOUND) {
            return rc;
        }
        gpul_wipe(m, sizeof(*m));
        uint64_t now_ms = gpul_clock_ms();
        if (now_ms >= end_ms) {
            return fail_late(s, err);
        }
        uint64_t left_ms = end_ms - now_ms;
        poll(NULL, 0, left_ms < (uint64_t)pause_ms ? (int)left_ms : pause_ms);
        pause_ms = pause_ms < PAUSE_LAST_MS / 2 ? 2 * pause_ms : PAUSE_LAST_MS;
    }
}

/* ---- becoming the node --------------------------------------------------- */

/* Returns only on failure. */
static int join(const struct plan *plan, struct meeting *m, uint32_t left_ms,
                struct gpul_error *err)
{
    struct gpul_secret secret;
    bool is_sealed = m->secret[0] != '\0';
    int rc = is_sealed
                 ? gpul_secret_parse(&secret, m->secret, strlen(m->secret), err)
                 : 0;
    gpul_wipe(m->secret, sizeof(m->secret));
    if (rc != 0) {
        return SESSION_EXIT_INTERNAL;
    }
    /* Borrowed strings only: nothing of it is to be released. */
    struct plan joining = {
        .verb = PLAN_JOIN,
        .job_id = m->job_id,
        .node_name = plan->sruntask.node_name,
        .coordinator_count = m->count,
        .join_timeout_ms = left_ms,
        .is_insecure = !is_sealed,
        .is_quiet = !plan->is_verbose,
    };
    memcpy(joining.coordinators, m->at, sizeof(joining.coordinators));
    int code = joining_run(&joining, is_sealed ? &secret : NULL, err);
    gpul_wipe(&secret, sizeof(secret));
    return code;
}

int srunjoin_run(const struct plan *plan, struct gpul_error *err)
{
    struct search s = {.plan = plan};
    struct meeting m;
    uint64_t begin_ms = gpul_clock_ms();
    int rc = jobfile_default_folder(s.folder, err);
    if (rc == 0) {
        rc = wait_for(&s, &m, err);
    }
    if (rc != 0) {
        return joining_exit_code(rc);
    }
    uint64_t gone_ms = gpul_clock_ms() - begin_ms;
    uint32_t left_ms = gone_ms < plan->join_timeout_ms
                           ? plan->join_timeout_ms - (uint32_t)gone_ms
                           : 1;
    return join(plan, &m, left_ms, err);
}
