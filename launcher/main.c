/* SPDX-License-Identifier: Apache-2.0
 *
 * gpulaunch: the user's words in, the job's outcome out.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/startup.h"
#include "common/writeall.h"
#include "launcher/cli.h"
#include "launcher/drawing.h"
#include "launcher/jobsecret.h"
#include "launcher/joining.h"
#include "launcher/makesecret.h"
#include "launcher/readfile.h"
#include "launcher/scaling.h"
#include "launcher/session.h"
#include "launcher/srunjoin.h"
#include "proto/text.h"

enum {
    HELP_BYTES_MAX = 64 << 10,
    MANIFEST_BYTES_MAX = 64 << 20,
    NAME_BYTES = 64,
    NODES_FILE_BYTES_MAX = 64 << 20,
};

static const char *look_up(void *arg, const char *name)
{
    (void)arg;
    return getenv(name);
}

/* A caller may have closed 0, 1 or 2; nothing else may take their place. */
static void ensure_standard_fds(void)
{
    int fd;
    do {
        fd = open("/dev/null", O_RDWR);
    } while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd > STDERR_FILENO) {
        close(fd);
    }
}

/* What the user wrote may stand in it: still one line, and harmless. */
static int fail(struct gpul_error *err)
{
    gpul_text_clean_line(err->text, sizeof(err->text) - 1);
    dprintf(STDERR_FILENO, "gpulaunch: %s\n", err->text);
    return SESSION_EXIT_INTERNAL;
}

static int print(const char *text)
{
    int why = gpul_write_all(STDOUT_FILENO, text, strlen(text));
    if (why == 0) {
        return 0;
    }
    if (why == EPIPE) {
        return SESSION_EXIT_PIPE;
    }
    struct gpul_error err = {0};
    gpul_fail_errno(&err, why, "cannot write to standard output");
    return fail(&err);
}

static int print_help(enum plan_verb topic)
{
    struct gpul_buf out;
    gpul_buf_init(&out, HELP_BYTES_MAX);
    int code = cli_help(&out, topic) == 0 ? print(gpul_buf_text(&out))
                                          : SESSION_EXIT_INTERNAL;
    gpul_buf_release(&out);
    return code;
}

static int print_manifest(const struct manifest *manifest)
{
    struct gpul_error err = {0};
    struct gpul_buf out;
    gpul_buf_init(&out, MANIFEST_BYTES_MAX);
    int code = manifest_write(&out, manifest, &err) == 0
                   ? print(gpul_buf_text(&out))
                   : fail(&err);
    gpul_buf_release(&out);
    return code;
}

static int make_secret(const char *path)
{
    struct gpul_error err = {0};
    int why = 0;
    int rc = path != NULL ? makesecret_file(path, &err)
                          : makesecret_print(STDOUT_FILENO, &why, &err);
    return rc == 0 ? 0 : why == EPIPE ? SESSION_EXIT_PIPE : fail(&err);
}

static int draw_record(const struct plan *plan)
{
    struct gpul_error err = {0};
    struct dossier d;
    dossier_init(&d);
    int rc = drawing_read(&d, plan->records[0], &err);
    if (rc == 0) {
        rc = drawing_write(&plan->drawings, &d, &err);
    }
    dossier_release(&d);
    return rc == 0 ? 0 : fail(&err);
}

static int compare_records(const struct plan *plan)
{
    struct gpul_error err = {0};
    bool is_same = false;
    int rc =
        drawing_compare(&is_same, plan->records[0], plan->records[1], &err);
    return rc != 0 ? fail(&err) : is_same ? 0 : 1;
}

static int run(const struct plan *plan)
{
    struct gpul_error err = {0};
    int code = SESSION_EXIT_INTERNAL;
    switch (plan->verb) {
    case PLAN_HELP:
        return print_help(plan->help_topic);
    case PLAN_SECRET:
        return make_secret(plan->secret_path);
    case PLAN_JOIN:
        code = joining_run(plan, NULL, &err);
        fail(&err);
        return code;
    case PLAN_MANIFEST:
        return print_manifest(&plan->manifest);
    case PLAN_REPORT:
        return draw_record(plan);
    case PLAN_DIFF:
        return compare_records(plan);
    case PLAN_SCALE:
        return scaling_run(plan, &code, &err) == 0 ? code : fail(&err);
    case PLAN_VERSION:
        return print("gpulaunch " GPULAUNCH_VERSION "\n");
    default: /* run, env, check, doctor */
        if (sruntask_is_guest(&plan->sruntask)) {
            code = srunjoin_run(plan, &err);
            fail(&err);
            return code;
        }
        return session_run(plan, &code, &err) == 0 ? code : fail(&err);
    }
}

/* A flag that is misspelt is refused; a variable may be of another version.
 * Within a job there are those that gpulaunch itself gave to its ranks. */
static void note_misspelt_variables(void)
{
    if (getenv("GPULAUNCH_JOB_ID") != NULL) {
        return;
    }
    for (char **at = environ; *at != NULL; at++) {
        char name[NAME_BYTES];
        size_t n = strcspn(*at, "=");
        if (n >= sizeof(name)) {
            continue;
        }
        snprintf(name, sizeof(name), "%.*s", (int)n, *at);
        const char *near = cli_nearest_variable(name);
        if (near == NULL) {
            continue;
        }
        gpul_text_clean_line(name, sizeof(name) - 1);
        dprintf(STDERR_FILENO,
                "gpulaunch: note: %s is ignored; did you mean %s?\n", name,
                near);
    }
}

/* The nodes are in a file: one that is not there is an error, and never "this
 * machine only". */
static int settle(struct plan *plan, struct gpul_error *err)
{
    struct gpul_buf text;
    gpul_buf_init(&text, NODES_FILE_BYTES_MAX);
    int rc = readfile(&text, plan->nodes_file, err);
    if (rc != 0) {
        rc = gpul_wrap(err, rc, "%s",
                       plan->hosts_option == OPTION_HOSTFILE
                           ? plan->settings[OPTION_HOSTFILE].spelling
                           : plan->allocation.variable);
    } else {
        const char *bytes = text.used > 0 ? (const char *)text.data : "";
        rc = cli_settle(plan, bytes, text.used, err);
    }
    gpul_buf_release(&text);
    return rc;
}

int main(int argc, char **argv)
{
    ensure_standard_fds();
    gpul_startup_signals();
    gpul_startup_private();
    struct plan plan;
    struct gpul_error err = {0};
    char secret[JOBSECRET_TEXT_BYTES];
    char *taken = jobsecret_take(secret);
    int rc = cli_parse(&plan, argc - 1, argv + 1, look_up, NULL, &err);
    plan.secret_text = taken;
    if (rc == 0 && plan.nodes_file != NULL) {
        rc = settle(&plan, &err);
    }
    if (rc == 0) {
        rc = cli_limit(&plan, (uint64_t)time(NULL), &err);
    }
    if (rc == 0 && !plan.is_quiet && !sruntask_is_guest(&plan.sruntask) &&
        (plan.verb == PLAN_RUN || plan.verb == PLAN_ENV ||
         plan_is_check(&plan))) {
        note_misspelt_variables();
    }
    int code = rc == 0 ? run(&plan) : fail(&err);
    plan_release(&plan);
    gpul_wipe(secret, sizeof(secret));
    return code;
}
