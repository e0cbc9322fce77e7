/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/cli_value.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "common/signals.h"
#include "common/units.h"
#include "gpulaunch.pb-c.h"
#include "launcher/cli.h"
#include "proto/limits.h"
#include "proto/text.h"

enum {
    WARNING_MS = 60000, /* Slurm's default of --signal */
    SIGNAL_NAME_BYTES = 48,
    HANG_LIMIT_MS_MIN = 1000,
    SECRET_DIGITS = 64,
};

/* Closed lists: the place of a word is the value it stands for. */
struct words {
    const char *listed; /* for the message */
    const char *words[5];
};

static const struct words lists[OPTION_COUNT] = {
    [OPTION_SELF_TEST] = {"quick, full or off", {"off", "quick", "full"}},
    [OPTION_BACKEND] = {"auto, nccl or host", {"auto", "host", "nccl"}},
    [OPTION_COLOR] = {"auto, always or never", {"auto", "always", "never"}},
    [OPTION_FOLD] = {"auto, always or never", {"auto", "always", "never"}},
    [OPTION_TF_CONFIG] = {"auto, always, never or file",
                          {"auto", "always", "never", "file"}},
    [OPTION_TF_EVALUATOR] = {"absent or own", {"absent", "own"}},
    [OPTION_DEVICES] = {"auto, leave, rank or node",
                        {"auto", "leave", "rank", "node"}},
    [OPTION_BIND] = {"none, numa, gpu or core",
                     {"none", "numa", "gpu", "core"}},
    [OPTION_EMULATE] = {"slurm", {"slurm"}},
    [OPTION_ON_HANG] = {"report or stop", {"report", "stop"}},
};

static int parse_word(uint32_t *out, const struct words *list,
                      const char *value, const char *spelling,
                      struct gpul_error *err)
{
    size_t count = 0;
    for (; list->words[count] != NULL; count++) {
        if (strcmp(value, list->words[count]) == 0) {
            *out = (uint32_t)count;
            return 0;
        }
    }
    const char *near = gpul_nearest(value, list->words, count);
    if (near != NULL) {
        return gpul_fail(err, GPUL_EINVAL,
                         "%s: unknown value '%s'; did you mean %s? (%s)",
                         spelling, value, near, list->listed);
    }
    return gpul_fail(err, GPUL_EINVAL, "%s: unknown value '%s'; use %s",
                     spelling, value, list->listed);
}

static int set_word(struct plan *plan, enum option option, const char *value,
                    const char *spelling, struct gpul_error *err)
{
    uint32_t word = 0;
    int rc = parse_word(&word, &lists[option], value, spelling, err);
    if (rc != 0) {
        return rc;
    }
    switch (option) {
    case OPTION_SELF_TEST:
        plan->self_test = (enum plan_self_test)word;
        break;
    case OPTION_BACKEND:
        plan->backend = (enum plan_backend)word;
        break;
    case OPTION_COLOR:
        plan->color = (enum plan_choice)word;
        break;
    case OPTION_FOLD:
        plan->fold = (enum plan_choice)word;
        break;
    case OPTION_TF_CONFIG:
        plan->tf_config = word;
        break;
    case OPTION_TF_EVALUATOR:
        plan->has_tf_evaluator = word == 1;
        break;
    case OPTION_DEVICES:
        plan->devices = word;
        break;
    case OPTION_BIND:
        plan->bind = word;
        break;
    case OPTION_ON_HANG:
        plan->hang_stops_job = word == 1;
        break;
    default: /* --emulate has one word */
        plan->emulates_slurm = true;
        break;
    }
    return 0;
}

/* "4", or torchrun's "4:4"; a real range would be an elastic job. */
static int set_nodes(struct plan *plan, const char *value, const char *spelling,
                     struct gpul_error *err)
{
    char low[16];
    const char *colon = strchr(value, ':');
    if (colon != NULL) {
        size_t n = (size_t)(colon - value);
        if (n >= sizeof(low) || strlen(colon + 1) != n ||
            strncmp(value, colon + 1, n) != 0) {
            return gpul_fail(err, GPUL_EINVAL,
                             "%s %s: not yet: this version has no elastic "
                             "jobs; give one number",
                             spelling, value);
        }
        memcpy(low, value, n);
        low[n] = '\0';
        value = low;
    }
    int rc = gpul_parse_count(&plan->node_count, value, 1, GPUL_NODES_MAX, err);
    return rc == 0 ? 0 : gpul_wrap(err, rc, "%s", spelling);
}

static int set_per_node(struct plan *plan, const char *value,
                        const char *spelling, struct gpul_error *err)
{
    plan->ranks_per_node = 0;
    if (strcmp(value, "gpu") == 0) {
        plan->per_node = PLAN_PER_NODE_GPU;
        return 0;
    }
    if (strcmp(value, "auto") == 0) {
        plan->per_node = PLAN_PER_NODE_AUTO;
        return 0;
    }
    plan->per_node = PLAN_PER_NODE_COUNT;
    int rc = gpul_parse_count(&plan->ranks_per_node, value, 1,
                              GPUL_RANKS_PER_NODE_MAX, err);
    return rc == 0 ? 0
                   : gpul_fail(err, rc,
                               "%s: \"%.80s\" is neither gpu nor auto nor a "
                               "whole number from 1 to %u",
                               spelling, value, GPUL_RANKS_PER_NODE_MAX);
}

static int set_duration(uint32_t *out, const char *value, const char *spelling,
                        struct gpul_error *err)
{
    int rc = gpul_parse_duration_ms(out, value, err);
    return rc == 0 ? 0 : gpul_wrap(err, rc, "%s", spelling);
}

static int set_hang_timeout(struct plan *plan, const char *value,
                            const char *spelling, struct gpul_error *err)
{
    bool is_off = strcmp(value, "off") == 0;
    plan->hang_limit_ms = 0;
    if (is_off || strcmp(value, "auto") == 0) {
        plan->hang_watch =
            is_off ? GPUL__HANG__WATCH__OFF : GPUL__HANG__WATCH__LEARNED;
        return 0;
    }
    plan->hang_watch = GPUL__HANG__WATCH__GIVEN;
    int rc = set_duration(&plan->hang_limit_ms, value, spelling, err);
    if (rc == 0 && plan->hang_limit_ms < HANG_LIMIT_MS_MIN) {
        return gpul_fail(err, GPUL_EINVAL,
                         "%s %s: too short for a step; give 1s or more, auto "
                         "or off",
                         spelling, value);
    }
    return rc;
}

/* A name that a shell could use; anything else is a slip of the pen. */
static bool is_name(const char *text, size_t n)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz"
                                  "ABCDEFGHIJKLMNOPQRSTUVWXYZ_";
    static const char all[] = "abcdefghijklmnopqrstuvwxyz"
                              "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
    if (n == 0 || strchr(letters, text[0]) == NULL) {
        return false;
    }
    return strspn(text, all) >= n;
}

/* The last word for a name wins. */
static int put_variable(struct plan *plan, char *name, const char *value,
                        struct gpul_error *err)
{
    enum gpul_option_source source = plan->settings[OPTION_ENV].source;
    for (size_t i = 0; i < plan->variable_count; i++) {
        if (strcmp(plan->variables[i].name, name) == 0) {
            free(name);
            plan->variables[i].value = value;
            plan->variables[i].source = source;
            return 0;
        }
    }
    struct plan_variable *grown = realloc(
        plan->variables, (plan->variable_count + 1) * sizeof(*plan->variables));
    if (grown == NULL) {
        free(name);
        return gpul_fail(err, GPUL_ENOMEM, "out of memory");
    }
    plan->variables = grown;
    plan->variables[plan->variable_count++] =
        (struct plan_variable){.name = name, .value = value, .source = source};
    return 0;
}

static const char secret_name[] = "GPULAUNCH_SECRET";

static int add_variable(struct plan *plan, const char *text,
                        const char *spelling, gpul_getenv_fn caller,
                        void *caller_arg, struct gpul_error *err)
{
    const char *equals = strchr(text, '=');
    size_t n = equals != NULL ? (size_t)(equals - text) : strlen(text);
    if (!is_name(text, n)) {
        return gpul_fail(err, GPUL_EINVAL,
                         "%s: \"%.*s\" is not the name of a variable; "
                         "use NAME=VALUE",
                         spelling, (int)(n < 80 ? n : 80), text);
    }
    if (n == strlen(secret_name) && memcmp(text, secret_name, n) == 0) {
        return gpul_fail(err, GPUL_EINVAL,
                         "%s %s: the secret of the job is not for its ranks; "
                         "leave it out",
                         spelling, secret_name);
    }
    if (plan->variable_count >= GPUL_VARIABLES_MAX) {
        return gpul_fail(err, GPUL_EINVAL, "%s: more than %u variables",
                         spelling, GPUL_VARIABLES_MAX);
    }
    char *name = strndup(text, n);
    if (name == NULL) {
        return gpul_fail(err, GPUL_ENOMEM, "out of memory");
    }
    const char *value = equals != NULL   ? equals + 1
                        : caller != NULL ? caller(caller_arg, name)
                                         : NULL;
    if (value == NULL) {
        free(name);
        return gpul_fail(err, GPUL_EINVAL,
                         "%s %s: not set in the environment; use %s=VALUE",
                         spelling, text, text);
    }
    return put_variable(plan, name, value, err);
}

static int set_text(const char **out, const char *value, const char *what,
                    const char *spelling, struct gpul_error *err)
{
    if (value[0] == '\0') {
        return gpul_fail(err, GPUL_EINVAL, "%s: empty; give %s", spelling,
                         what);
    }
    *out = value;
    return 0;
}

/* The secret in the place of its file: what is said of it ends up in logs. */
int cli_set_secret_file(const char **out, const char *value,
                        const char *spelling, struct gpul_error *err)
{
    size_t digits = strspn(value, "0123456789abcdefABCDEF");
    if (digits >= SECRET_DIGITS && value[digits] == '\0') {
        return gpul_fail(err, GPUL_EINVAL,
                         "%s: that is a secret, not the name of a file; others "
                         "may have read it: make a new one with gpulaunch "
                         "secret FILE",
                         spelling);
    }
    return set_text(out, value, "a file", spelling, err);
}

/* Which of them a node has is known there only. */
static int set_interface(struct plan *plan, const char *value,
                         const char *spelling, struct gpul_error *err)
{
    bool is_list = value[0] != '\0' && value[0] != ',' &&
                   value[strlen(value) - 1] != ',' &&
                   strstr(value, ",,") == NULL;
    if (!is_list || strlen(value) > GPUL_TEXT_BYTES_MAX ||
        !gpul_text_is_valid(value, GPUL_TEXT_NAME)) {
        return gpul_fail(err, GPUL_EINVAL,
                         "%s: \"%.80s\" is no list of interfaces or "
                         "addresses, as in eth0,10.0.0.5",
                         spelling, value);
    }
    plan->interface = value;
    return 0;
}

static int set_roles(struct plan *plan, const char *value, const char *spelling,
                     struct gpul_error *err)
{
    plan->has_roles = true;
    int rc = gpul_rolemap_parse(&plan->roles, value, err);
    return rc == 0 ? 0 : gpul_wrap(err, rc, "%s", spelling);
}

static int set_rank(struct plan *plan, const char *value, const char *spelling,
                    struct gpul_error *err)
{
    plan->has_rank = true;
    int rc = gpul_parse_count(&plan->rank, value, 0, GPUL_RANKS_MAX - 1, err);
    return rc == 0 ? 0 : gpul_wrap(err, rc, "%s", spelling);
}

/* torchrun's --tee 1, 2 and 3 are streams, its --tee 0:3 is a stream of a
 * rank: showing one rank in their place would hide all others. */
static int refuse_torchrun_tee(const char *value, const char *spelling,
                               struct gpul_error *err)
{
    bool is_tee = strcmp(spelling, "--tee") == 0;
    bool is_stream = value[0] >= '1' && value[0] <= '3' && value[1] == '\0';
    if (is_tee && (is_stream || strchr(value, ':') != NULL)) {
        return gpul_fail(err, GPUL_EINVAL,
                         "%s %s: leave out torchrun's choice of streams: both "
                         "are shown and kept in files, see --log-dir; to show "
                         "some ranks only use --ranks LIST",
                         spelling, value);
    }
    return 0;
}

static int set_shown_ranks(struct plan *plan, const char *value,
                           const char *spelling, struct gpul_error *err)
{
    int rc = refuse_torchrun_tee(value, spelling, err);
    if (rc != 0) {
        return rc;
    }
    plan->has_shown_ranks = true;
    rc = gpul_rankset_parse(&plan->shown_ranks, value, err);
    return rc == 0 ? 0 : gpul_wrap(err, rc, "%s", spelling);
}

/* "USR1@60s", as for Slurm; its "R:" and "B:" name steps, of which there is
 * one. */
static int set_signal(struct plan *plan, const char *value,
                      const char *spelling, struct gpul_error *err)
{
    char name[SIGNAL_NAME_BYTES] = "";
    const char *at = strchr(value, '@');
    size_t n = at != NULL ? (size_t)(at - value) : strlen(value);
    plan->warning_ms = WARNING_MS;
    memcpy(name, value, n < sizeof(name) ? n : sizeof(name) - 1);
    int rc = gpul_parse_signal(&plan->warning_signal, name, err);
    if (rc == 0 && at != NULL) {
        rc = gpul_parse_duration_ms(&plan->warning_ms, at + 1, err);
    }
    return rc == 0 ? 0 : gpul_wrap(err, rc, "%s", spelling);
}

static int set_stdin(struct plan *plan, const char *value, const char *spelling,
                     struct gpul_error *err)
{
    plan->input_rank = 0;
    if (strcmp(value, "none") == 0) {
        plan->input = PLAN_INPUT_NONE;
        return 0;
    }
    if (strcmp(value, "all") == 0) {
        plan->input = PLAN_INPUT_ALL;
        return 0;
    }
    plan->input = PLAN_INPUT_RANK;
    int rc =
        gpul_parse_count(&plan->input_rank, value, 0, GPUL_RANKS_MAX - 1, err);
    return rc == 0 ? 0
                   : gpul_fail(err, rc,
                               "%s: \"%.80s\" is neither a rank nor all nor "
                               "none; a file is given by < FILE",
                               spelling, value);
}

static int set_switch(struct plan *plan, enum option option)
{
    static const struct {
        enum option option;
        size_t offset;
    } switches[] = {
        {OPTION_LOCAL, offsetof(struct plan, is_local)},
        {OPTION_INSECURE, offsetof(struct plan, is_insecure)},
        {OPTION_COPY_WORKER, offsetof(struct plan, copies_worker)},
        {OPTION_METRICS, offsetof(struct plan, wants_metrics)},
        {OPTION_TIMESTAMPS, offsetof(struct plan, has_timestamps)},
        {OPTION_JSON, offsetof(struct plan, is_json)},
        {OPTION_VERBOSE, offsetof(struct plan, is_verbose)},
        {OPTION_QUIET, offsetof(struct plan, is_quiet)},
        {OPTION_DRY_RUN, offsetof(struct plan, is_dry_run)},
        {OPTION_EXPLAIN, offsetof(struct plan, is_explained)},
        {OPTION_STRICT, offsetof(struct plan, is_strict)},
    };
    for (size_t i = 0; i < sizeof(switches) / sizeof(switches[0]); i++) {
        if (switches[i].option == option) {
            *(bool *)((char *)plan + switches[i].offset) = true;
        }
    }
    return 0;
}

/* The time that the option sets; NULL: it sets none. */
static uint32_t *find_time(struct plan *plan, enum option option)
{
    return option == OPTION_SELF_TEST_TIMEOUT ? &plan->self_test_timeout_ms
           : option == OPTION_TIMEOUT         ? &plan->timeout_ms
           : option == OPTION_JOIN_TIMEOUT    ? &plan->join_timeout_ms
           : option == OPTION_GRACE           ? &plan->grace_ms
           : option == OPTION_ORPHAN_TIMEOUT  ? &plan->orphan_timeout_ms
                                              : NULL;
}

int cli_value_set(struct plan *plan, enum option option, const char *value,
                  gpul_getenv_fn caller, void *caller_arg,
                  struct gpul_error *err)
{
    const char *spelling = plan->settings[option].spelling;
    uint32_t *time_ms = find_time(plan, option);
    if (value == NULL) {
        return set_switch(plan, option);
    }
    if (time_ms != NULL) {
        return set_duration(time_ms, value, spelling, err);
    }
    switch (option) {
    case OPTION_NODES:
        return set_nodes(plan, value, spelling, err);
    case OPTION_PER_NODE:
        return set_per_node(plan, value, spelling, err);
    case OPTION_INTERFACE:
        return set_interface(plan, value, spelling, err);
    case OPTION_ROLES:
        return set_roles(plan, value, spelling, err);
    case OPTION_NCCL_LIB:
    case OPTION_MINBYTES:
    case OPTION_MAXBYTES:
    case OPTION_STEPFACTOR:
    case OPTION_ITERS:
    case OPTION_WARMUP_ITERS:
    case OPTION_CHECK:
    case OPTION_MIN_BUSBW:
        return cli_selftest_set(plan, option, value, err);
    case OPTION_SIGNAL:
        return set_signal(plan, value, spelling, err);
    case OPTION_STDIN:
        return set_stdin(plan, value, spelling, err);
    case OPTION_HANG_TIMEOUT:
        return set_hang_timeout(plan, value, spelling, err);
    case OPTION_SECRET_FILE:
        return cli_set_secret_file(&plan->secret_file, value, spelling, err);
    case OPTION_ENV:
        return add_variable(plan, value, spelling, caller, caller_arg, err);
    case OPTION_RANKS:
        return set_shown_ranks(plan, value, spelling, err);
    case OPTION_HOSTS:
    case OPTION_NODELIST:
    case OPTION_HOSTFILE:
    case OPTION_ADVERTISE:
        return 0; /* the setting says it, see cli_nodes.c and cli_rules.c */
    case OPTION_ADDRESS:
    case OPTION_PORT:
    case OPTION_JOB:
    case OPTION_NAME:
        return cli_join_set(plan, option, value, err);
    case OPTION_WORKER_PATH:
        return set_text(&plan->worker_path, value, "a file", spelling, err);
    case OPTION_SSH_COMMAND:
        return set_text(&plan->ssh_command, value, "a command", spelling, err);
    case OPTION_LOG_DIR:
        return set_text(&plan->log_dir, value, "a directory", spelling, err);
    case OPTION_RESULT:
        return set_text(&plan->result_path, value, "a file", spelling, err);
    case OPTION_RECORD:
    case OPTION_HTML:
    case OPTION_JUNIT:
    case OPTION_PROMETHEUS:
    case OPTION_DATA_DIR:
        return cli_check_set(plan, option, value, err);
    case OPTION_RANK:
        return set_rank(plan, value, spelling, err);
    default:
        return set_word(plan, option, value, spelling, err);
    }
}
