/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/scaling.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <regex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/units.h"
#include "common/writeall.h"
#include "launcher/cli_scale.h"
#include "launcher/dossier_json.h"
#include "launcher/drawing.h"
#include "launcher/json.h"
#include "launcher/scalebook.h"
#include "launcher/scalechild.h"
#include "launcher/scaleresult.h"
#include "launcher/scaletable.h"
#include "launcher/session.h"
#include "proto/secret.h"

enum {
    TEXT_BYTES_MAX = 64 << 20,
    NODES_BYTES = 32,
    MESSAGE_BYTES = 600,
    SIGNAL_BASE = 128,
};

#define SECRET "GPULAUNCH_SECRET="

struct scaling {
    const struct plan *plan;
    struct scalebook book;
    regex_t metric;
    bool has_metric;
    char self[PATH_MAX];
    char folder[PATH_MAX];
    char result[PATH_MAX];
    char nodes[NODES_BYTES];
    char option[PATH_MAX + NODES_BYTES]; /* --result=... */
    char *secret;       /* owned; NULL: none. "GPULAUNCH_SECRET=..." */
    char **environment; /* owned; what is in it is borrowed */
    char **arguments;   /* likewise */
    int signal_fd;
    sigset_t before;
    uint64_t started_ms;
    int64_t started_unix_s;
    struct scalebook_end end;
    char message[MESSAGE_BYTES];
};

static void say(const struct scaling *s, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void say(const struct scaling *s, const char *format, ...)
{
    va_list arguments;
    if (s->plan->is_quiet) {
        return;
    }
    va_start(arguments, format);
    dprintf(STDERR_FILENO, "gpulaunch: scale: ");
    vdprintf(STDERR_FILENO, format, arguments);
    dprintf(STDERR_FILENO, "\n");
    va_end(arguments);
}

/* ---- before the first run ------------------------------------------------ */

static int compile(struct scaling *s, struct gpul_error *err)
{
    const char *text = s->plan->scale.metric;
    char why[MESSAGE_BYTES / 4];
    if (text == NULL) {
        return 0;
    }
    int rc = regcomp(&s->metric, text, REG_EXTENDED);
    if (rc != 0) {
        regerror(rc, &s->metric, why, sizeof(why));
        return gpul_fail(err, GPUL_EINVAL, "--metric: \"%.80s\": %s", text,
                         why);
    }
    s->has_metric = true;
    if (s->metric.re_nsub != 1) {
        return gpul_fail(err, GPUL_EINVAL,
                         "--metric: \"%.80s\" has %zu groups; one is needed, "
                         "around the number, as in ([0-9.]+) images/s",
                         text, s->metric.re_nsub);
    }
    return 0;
}

static int make_folder(struct scaling *s, struct gpul_error *err)
{
    const char *parent = getenv("TMPDIR");
    ssize_t n = readlink("/proc/self/exe", s->self, sizeof(s->self) - 1);
    if (n < 0) {
        return gpul_fail_errno(err, errno, "cannot read /proc/self/exe");
    }
    s->self[n] = '\0';
    snprintf(s->folder, sizeof(s->folder), "%s/gpulaunch-scale-XXXXXX",
             parent != NULL && parent[0] != '\0' ? parent : "/tmp");
    if (mkdtemp(s->folder) == NULL) {
        int why = errno;
        gpul_fail_errno(err, why, "cannot make the folder %s", s->folder);
        s->folder[0] = '\0';
        return GPUL_ESYS;
    }
    int length =
        snprintf(s->result, sizeof(s->result), "%s/result.json", s->folder);
    return length < (int)sizeof(s->result)
               ? 0
               : gpul_fail(err, GPUL_ESYS, "%s: the path is too long",
                           s->folder);
}

/* Is this variable for scale to say? */
static bool is_owned(const char *variable)
{
    size_t count, n = strcspn(variable, "=");
    const struct gpul_option *table = option_table(&count);
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        const char *name = table[i].environment;
        if (name != NULL && cli_scale_owns((enum option)i) &&
            strlen(name) == n && strncmp(name, variable, n) == 0) {
            return true;
        }
    }
    return false;
}

static int make_environment(struct scaling *s, struct gpul_error *err)
{
    size_t count = 0, used = 0;
    const char *text = s->plan->secret_text;
    while (environ[count] != NULL) {
        count++;
    }
    s->environment = calloc(count + 2, sizeof(*s->environment));
    if (s->environment == NULL) {
        return gpul_fail(err, GPUL_ENOMEM, "out of memory");
    }
    for (size_t i = 0; i < count; i++) {
        if (!is_owned(environ[i])) {
            s->environment[used++] = environ[i];
        }
    }
    if (text == NULL) {
        return 0;
    }
    size_t n = sizeof(SECRET) + strlen(text);
    s->secret = malloc(n);
    if (s->secret == NULL) {
        return gpul_fail(err, GPUL_ENOMEM, "out of memory");
    }
    snprintf(s->secret, n, SECRET "%s", text);
    s->environment[used] = s->secret;
    return 0;
}

static int make_arguments(struct scaling *s, struct gpul_error *err)
{
    static char run[] = "run", label[] = "--label", fold[] = "--fold=never",
                color[] = "--color=never", metrics[] = "--metrics",
                quiet[] = "--quiet", dashes[] = "--";
    enum { OTHERS = 12 };
    const struct plan *plan = s->plan;
    char *const first[] = {s->self, run,   s->nodes, label,
                           fold,    color, metrics,  s->option};
    size_t used = sizeof(first) / sizeof(first[0]);
    s->arguments = calloc(plan->handed_on_count + plan->command_count + OTHERS,
                          sizeof(*s->arguments));
    if (s->arguments == NULL) {
        return gpul_fail(err, GPUL_ENOMEM, "out of memory");
    }
    memcpy(s->arguments, first, sizeof(first));
    if (plan->is_quiet) {
        s->arguments[used++] = quiet;
    }
    for (size_t i = 0; i < plan->handed_on_count; i++) {
        s->arguments[used++] = plan->handed_on[i];
    }
    s->arguments[used++] = dashes;
    for (size_t i = 0; i < plan->command_count; i++) {
        s->arguments[used++] = plan->command[i];
    }
    snprintf(s->option, sizeof(s->option), "--result=%s", s->result);
    return 0;
}

/* A signal that the caller ignores stays ignored: it does not get here. */
static int hear_signals(struct scaling *s, struct gpul_error *err)
{
    sigset_t heard;
    sigemptyset(&heard);
    sigaddset(&heard, SIGINT);
    sigaddset(&heard, SIGTERM);
    sigaddset(&heard, SIGHUP);
    sigaddset(&heard, SIGCHLD);
    sigprocmask(SIG_BLOCK, &heard, &s->before);
    s->signal_fd = signalfd(-1, &heard, SFD_NONBLOCK | SFD_CLOEXEC);
    return s->signal_fd >= 0
               ? 0
               : gpul_fail_errno(err, errno, "cannot wait for signals");
}

static int prepare(struct scaling *s, struct gpul_error *err)
{
    int rc = compile(s, err);
    if (rc == 0) {
        rc = drawing_check(&s->plan->drawings, err);
    }
    if (rc == 0) {
        rc = make_folder(s, err);
    }
    if (rc == 0) {
        rc = make_environment(s, err);
    }
    if (rc == 0) {
        rc = make_arguments(s, err);
    }
    return rc != 0 ? rc : hear_signals(s, err);
}

/* ---- the runs ------------------------------------------------------------ */

static void stop(struct scaling *s, int code, const char *reason)
{
    s->end.exit_code = code;
    s->end.reason = reason;
    s->end.message = s->message;
}

static void stop_by_signal(struct scaling *s, int number, size_t done)
{
    size_t all = scaleplan_run_count(&s->plan->scale);
    snprintf(s->message, sizeof(s->message),
             "stopped by SIG%s after %zu of %zu runs", sigabbrev_np(number),
             done, all);
    stop(s, SIGNAL_BASE + number, "canceled");
}

static void tell(const struct scaling *s)
{
    const struct scalebook_sample *sample = &s->book.samples[s->book.count - 1];
    if (sample->note != NULL) {
        say(s, "no figure: %s", sample->note);
    } else {
        say(s, "throughput %.6g%s%s", sample->rate,
            s->plan->scale.unit != NULL ? " " : "",
            s->plan->scale.unit != NULL ? s->plan->scale.unit : "");
    }
}

/* What one run has left. */
static void take_result(struct scaling *s, const struct scaleplan_run *run,
                        struct scalechild_end *end)
{
    struct scaleresult result;
    struct gpul_error err = {0};
    if (scaleresult_read(&result, s->result, &err) != 0) {
        snprintf(s->message, sizeof(s->message),
                 "the run on %" PRIu32 " node%s ended with exit code %d and "
                 "left no result; its own words are above",
                 run->nodes, gpul_plural(run->nodes), end->exit_code);
        stop(s, end->exit_code != 0 ? end->exit_code : SESSION_EXIT_INTERNAL,
             "no_result");
    } else {
        result.outcome.exit_code = end->exit_code;
        result.outcome.figures = end->figures;
        result.outcome.figure_count = end->figure_count;
        if (scalebook_take(&s->book, run, &result.outcome, &err) != 0) {
            snprintf(s->message, sizeof(s->message), "%s", err.text);
            stop(s, SESSION_EXIT_INTERNAL, "no_figure");
        } else {
            tell(s);
        }
    }
    scaleresult_release(&result);
}

static int run_one(struct scaling *s, size_t i, struct gpul_error *err)
{
    struct scaleplan_run run = scaleplan_run_at(&s->plan->scale, i);
    struct scalechild child = {.path = s->self,
                               .arguments = s->arguments,
                               .environment = s->environment,
                               .signal_fd = s->signal_fd,
                               .metric = s->has_metric ? &s->metric : NULL,
                               .is_quiet = s->plan->is_quiet};
    struct scalechild_end end;
    snprintf(s->nodes, sizeof(s->nodes), "--nodes=%" PRIu32, run.nodes);
    say(s, "run %zu of %zu: %" PRIu32 " node%s, repeat %" PRIu32, i + 1,
        scaleplan_run_count(&s->plan->scale), run.nodes, gpul_plural(run.nodes),
        run.repeat);
    int rc = scalechild_run(&end, &child, err);
    if (rc == 0 && end.signal != 0) {
        stop_by_signal(s, end.signal, i);
    } else if (rc == 0) {
        take_result(s, &run, &end);
    }
    free(end.figures);
    unlink(s->result);
    return rc;
}

static void run_all(struct scaling *s)
{
    struct gpul_error err = {0};
    size_t count = scaleplan_run_count(&s->plan->scale);
    for (size_t i = 0; i < count && s->end.exit_code == 0; i++) {
        if (run_one(s, i, &err) != 0) {
            snprintf(s->message, sizeof(s->message), "%s", err.text);
            stop(s, SESSION_EXIT_INTERNAL, "internal");
        }
    }
}

/* ---- behind the last run ------------------------------------------------- */

static int print(const struct scaling *s, struct gpul_error *err)
{
    struct gpul_buf text;
    gpul_buf_init(&text, TEXT_BYTES_MAX);
    int rc = 0;
    if (s->plan->is_json) {
        json_t *object = dossier_object(&s->book.record);
        rc = object != NULL ? json_print(&text, object) : GPUL_ENOMEM;
        json_decref(object);
    } else {
        rc = scaletable_print(&text, &s->book.record,
                              scalebook_source_text(&s->book));
    }
    int why = rc == 0 ? gpul_write_all(STDOUT_FILENO, text.data, text.used) : 0;
    gpul_buf_release(&text);
    if (rc != 0) {
        return gpul_fail(err, rc, "scale: %s", gpul_status_text(rc));
    }
    return why == 0
               ? 0
               : gpul_fail_errno(err, why, "cannot write to standard output");
}

static int conclude(struct scaling *s, int *code, struct gpul_error *err)
{
    s->end.started_unix_s = s->started_unix_s;
    s->end.duration_s = (double)(gpul_clock_ms() - s->started_ms) / 1e3;
    s->end.command = s->plan->command;
    s->end.command_count = s->plan->command_count;
    *code = scalebook_finish(&s->book, &s->end);
    if (s->book.record.is_failed) {
        return gpul_fail(err, GPUL_ENOMEM, "out of memory");
    }
    int rc = print(s, err);
    int rc_record = drawing_write(&s->plan->drawings, &s->book.record,
                                  rc == 0 ? err : NULL);
    if (*code != 0) {
        dprintf(STDERR_FILENO, "gpulaunch: scale: %s\n",
                dossier_end(&s->book.record)->message);
    }
    return rc != 0 ? rc : rc_record;
}

static void release(struct scaling *s)
{
    if (s->signal_fd >= 0) {
        close(s->signal_fd);
        sigprocmask(SIG_SETMASK, &s->before, NULL);
    }
    if (s->folder[0] != '\0') {
        rmdir(s->folder);
    }
    if (s->has_metric) {
        regfree(&s->metric);
    }
    if (s->secret != NULL) {
        gpul_wipe(s->secret, strlen(s->secret));
    }
    free(s->secret);
    free(s->environment);
    free(s->arguments);
    scalebook_release(&s->book);
    free(s);
}

int scaling_run(const struct plan *plan, int *code, struct gpul_error *err)
{
    struct scaling *s = calloc(1, sizeof(*s));
    if (s == NULL) {
        return gpul_fail(err, GPUL_ENOMEM, "out of memory");
    }
    s->plan = plan;
    s->signal_fd = -1;
    s->started_ms = gpul_clock_ms();
    s->started_unix_s = (int64_t)time(NULL);
    scalebook_init(&s->book, &plan->scale);
    int rc = prepare(s, err);
    if (rc == 0) {
        run_all(s);
        rc = conclude(s, code, err);
    }
    release(s);
    return rc;
}
