/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/rankexits.h"

#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proto/limits.h"
#include "proto/text.h"
#include "worker/cgroup.h"
#include "worker/evidence.h"
#include "worker/failure.h"
#include "worker/leftovers.h"
#include "worker/ports.h"

void rankexits_init(struct rankexits *x, struct output *output,
                    struct ranklogs *logs)
{
    *x = (struct rankexits){.output = output, .logs = logs};
    kernlog_open_fd(&x->kernlog, -1);
}

static void free_exits(struct rankexits *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        gpul__exit__free_unpacked(x->list[i], NULL);
    }
    x->count -= n;
    if (n > 0) {
        memmove(x->list, x->list + n, x->count * sizeof(*x->list));
    }
    x->taken = 0;
}

void rankexits_release(struct rankexits *x)
{
    free_exits(x, x->count);
    while (x->spare_count > 0) {
        free(x->spare[--x->spare_count]);
    }
    free(x->spare);
    free(x->list);
    x->spare = NULL;
    x->list = NULL;
    kernlog_close(&x->kernlog);
}

/* What no rank may end without: it must not fail when one does. */
static bool make_room(struct rankexits *x, uint32_t ranks)
{
    x->list = calloc(ranks, sizeof(*x->list));
    x->spare = calloc(ranks, sizeof(*x->spare));
    bool has_room = x->list != NULL && x->spare != NULL;
    while (has_room && x->spare_count < ranks) {
        Gpul__Exit *e = malloc(sizeof(*e));
        has_room = e != NULL;
        if (has_room) {
            x->spare[x->spare_count++] = e;
        }
    }
    return has_room;
}

int rankexits_begin(struct rankexits *x, uint32_t ranks, bool are_held,
                    struct gpul_error *err)
{
    rankexits_release(x);
    kernlog_open(&x->kernlog);
    x->has_missed_some = are_held;
    x->evidence_count = 0;
    return make_room(x, ranks) ? 0
                               : gpul_fail(err, GPUL_ENOMEM,
                                           "out of memory for %u ranks", ranks);
}

bool rankexits_wait(const struct rankexits *x)
{
    return x->count > x->taken;
}

size_t rankexits_take(struct rankexits *x, Gpul__Exit ***exits)
{
    free_exits(x, x->taken);
    *exits = x->list;
    x->taken = x->count;
    return x->count;
}

/* ---- one exit ------------------------------------------------------------ */

static Gpul__Exit *add(struct rankexits *x, uint32_t rank)
{
    assert(x->spare_count > 0);
    Gpul__Exit *e = x->spare[--x->spare_count];
    gpul__exit__init(e);
    e->rank = rank;
    x->list[x->count++] = e;
    return e;
}

/* Text that the schema's own free can free. */
static void set_text(char **slot, const char *text)
{
    char copy[GPUL_TEXT_BYTES_MAX + 1];
    snprintf(copy, sizeof(copy), "%s", text);
    gpul_text_clean(copy, GPUL_TEXT_BYTES_MAX);
    char *owned = copy[0] != 0 ? strdup(copy) : NULL;
    if (owned != NULL) {
        *slot = owned;
    }
}

void rankexits_add_refused(struct rankexits *x, uint32_t rank, int exec_errno,
                           const char *text)
{
    Gpul__Exit *e = add(x, rank);
    e->exec_errno = (uint32_t)exec_errno;
    set_text(&e->text, text);
}

void rankexits_add_port_taken(struct rankexits *x, uint32_t rank, uint16_t port)
{
    char text[96];
    snprintf(text, sizeof(text),
             "port %u was taken by another program before the start", port);
    Gpul__Exit *e = add(x, rank);
    e->code = 1;
    e->is_bind_error = true;
    set_text(&e->text, text);
}

static bool is_bind_error(const struct lastwords *words,
                          const struct launch *launch, uint32_t local_rank,
                          uint64_t ran_ms)
{
    uint16_t ports[LAUNCH_PORTS_MAX];
    struct failure_end end = {.ran_ms = ran_ms,
                              .tail = words->tail,
                              .tail_bytes = words->used,
                              .ports = ports};
    if (ran_ms > FAILURE_EARLY_MS || end.tail_bytes == 0) {
        return false;
    }
    end.port_count = launch_ports(launch, local_rank, ports);
    /* The job's shared ports are rightly taken while other ranks run. */
    end.is_port_taken = !ports_check_free(ports[0]);
    return failure_is_bind_error(&end);
}

/* Where the user may read on. */
static void add_log(struct rankexits *x, Gpul__Exit *e, uint32_t local_rank)
{
    char path[GPUL_PATH_BYTES_MAX + 1];
    output_touch_log(x->output, local_rank);
    ranklogs_path(x->logs, path, sizeof(path), e->rank, RANKLOG_ERR);
    if (access(path, F_OK) != 0) {
        return;
    }
    char *copy = strdup(path);
    if (copy != NULL) {
        e->log = copy;
    }
}

/* Is there a counter that the keeper has looked at? It is in our cgroup. */
static bool has_counter(void)
{
    struct cgroup_oom counter;
    cgroup_oom_open(&counter, "");
    bool is_there = counter.fd != 0;
    cgroup_oom_close(&counter);
    return is_there;
}

static Gpul__Exit__OutOfMemory judge_memory(struct rankexits *x,
                                            const struct rankend *end)
{
    bool is_killed =
        WIFSIGNALED(end->status) && WTERMSIG(end->status) == SIGKILL;
    const struct evidence_memory known = {
        .is_killed = is_killed,
        .has_counted = end->is_out_of_memory,
        .has_counter = has_counter(),
        .is_in_log = is_killed && kernlog_has_killed(&x->kernlog, end->pid),
        .is_log_whole = x->kernlog.is_whole && !x->has_missed_some,
    };
    return evidence_judge_memory(&known);
}

static void add_failure(struct rankexits *x, Gpul__Exit *e,
                        const struct launch *launch, uint32_t local_rank,
                        const struct rankend *end)
{
    struct lastwords *words = output_words(x->output, local_rank);
    e->is_bind_error =
        e->code != 0 && is_bind_error(words, launch, local_rank, end->ran_ms);
    e->out_of_memory = judge_memory(x, end);
    add_log(x, e, local_rank);
    if (x->evidence_count < GPUL_EVIDENCES_MAX) {
        e->evidence = leftovers_collect(words, x->logs, e->rank);
        x->evidence_count += e->evidence != NULL ? 1 : 0;
    }
}

void rankexits_add_ended(struct rankexits *x, const struct launch *launch,
                         uint32_t local_rank, const struct rankend *end)
{
    Gpul__Exit *e = add(x, launch->first_rank + local_rank);
    e->pid = (uint32_t)end->pid;
    e->ran_ms = end->ran_ms;
    e->cpu_ms = end->cpu_ms;
    e->rss_bytes = end->rss_bytes;
    e->steps = end->steps;
    e->steps_ms = end->steps_ms;
    set_text(&e->metric, end->metric);
    if (WIFSIGNALED(end->status)) {
        e->signal = (uint32_t)WTERMSIG(end->status);
    } else {
        e->code = (uint32_t)WEXITSTATUS(end->status);
    }
    if (end->status != 0) {
        add_failure(x, e, launch, local_rank, end);
    }
}
