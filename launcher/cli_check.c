/* SPDX-License-Identifier: Apache-2.0
 *
 * The verbs check and doctor: which options they have, and what they come to.
 */
#include "launcher/cli.h"
#include "launcher/cli_value.h"

/* Of both. */
static const enum option shared[] = {
    OPTION_TIMEOUT, OPTION_JOIN_TIMEOUT, OPTION_LOG_DIR, OPTION_JSON,
    OPTION_COLOR,   OPTION_VERBOSE,      OPTION_QUIET,   OPTION_EXPLAIN,
    OPTION_STRICT,  OPTION_DATA_DIR,     OPTION_RECORD,  OPTION_HTML,
    OPTION_JUNIT,   OPTION_PROMETHEUS,   OPTION_HELP,    OPTION_VERSION,
};

/* Of check alone: where the nodes are, and the self-test. */
static const enum option own[] = {
    OPTION_LOCAL,
    OPTION_HOSTS,
    OPTION_NODELIST,
    OPTION_HOSTFILE,
    OPTION_NODES,
    OPTION_INTERFACE,
    OPTION_ADDRESS,
    OPTION_PORT,
    OPTION_JOB,
    OPTION_WORKER_PATH,
    OPTION_COPY_WORKER,
    OPTION_SSH_COMMAND,
    OPTION_SELF_TEST,
    OPTION_BACKEND,
    OPTION_NCCL_LIB,
    OPTION_MINBYTES,
    OPTION_MAXBYTES,
    OPTION_STEPFACTOR,
    OPTION_ITERS,
    OPTION_WARMUP_ITERS,
    OPTION_CHECK,
    OPTION_MIN_BUSBW,
    OPTION_SELF_TEST_TIMEOUT,
    OPTION_GRACE,
    OPTION_SECRET_FILE,
    OPTION_INSECURE,
    OPTION_ENV,
};

static bool has(const enum option *list, size_t count, enum option option)
{
    for (size_t i = 0; i < count; i++) {
        if (list[i] == option) {
            return true;
        }
    }
    return false;
}

bool cli_check_has(enum plan_verb verb, enum option option)
{
    return has(shared, sizeof(shared) / sizeof(shared[0]), option) ||
           (verb == PLAN_CHECK &&
            has(own, sizeof(own) / sizeof(own[0]), option));
}

bool cli_verb_has(enum plan_verb verb, enum option option)
{
    switch (verb) {
    case PLAN_JOIN:
        return cli_join_has(option);
    case PLAN_CHECK:
    case PLAN_DOCTOR:
        return cli_check_has(verb, option);
    default:
        return cli_run_has(option);
    }
}

/* A doctor looks at this machine, and at nothing between machines. */
void cli_doctor_apply(struct plan *plan)
{
    plan->is_local = true;
    plan->hosts_option = OPTION_LOCAL;
    plan->self_test = PLAN_SELF_TEST_OFF;
}

static const char **drawing_of(struct drawings *all, enum option option)
{
    return option == OPTION_RECORD  ? &all->record
           : option == OPTION_HTML  ? &all->html
           : option == OPTION_JUNIT ? &all->junit
                                    : &all->prometheus;
}

static int set_drawing(const char **path, const char *value,
                       const char *spelling, struct gpul_error *err)
{
    *path = value;
    return value[0] != '\0' ? 0
                            : gpul_fail(err, GPUL_EINVAL,
                                        "%s: empty; give a file", spelling);
}

int cli_check_set(struct plan *plan, enum option option, const char *value,
                  struct gpul_error *err)
{
    const char *spelling = plan->settings[option].spelling;
    if (option != OPTION_DATA_DIR) {
        return set_drawing(drawing_of(&plan->drawings, option), value, spelling,
                           err);
    }
    if (value[0] != '/') {
        return gpul_fail(err, GPUL_EINVAL,
                         "%s: \"%.80s\" is no absolute path; nodes have "
                         "working directories of their own",
                         spelling, value);
    }
    plan->data_dir = value;
    return 0;
}
