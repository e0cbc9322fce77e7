/* SPDX-License-Identifier: Apache-2.0
 *
 * The verb join: which options it has, and what they come to.
 */
#include <stdio.h>
#include <string.h>

#include "common/units.h"
#include "launcher/cli.h"
#include "launcher/cli_value.h"
#include "proto/limits.h"
#include "proto/text.h"

/* Of join, several with commas between them. */
enum { ADDRESSES_BYTES_MAX = GPUL_COORDINATORS_MAX * (GPUL_HOST_BYTES + 16) };

static const enum option options[] = {
    OPTION_ADDRESS,      OPTION_PORT,        OPTION_JOB,      OPTION_NAME,
    OPTION_JOIN_TIMEOUT, OPTION_SECRET_FILE, OPTION_INSECURE, OPTION_VERBOSE,
    OPTION_QUIET,        OPTION_EXPLAIN,     OPTION_HELP,     OPTION_VERSION,
};

bool cli_join_has(enum option option)
{
    for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
        if (options[i] == option) {
            return true;
        }
    }
    return false;
}

bool cli_run_has(enum option option)
{
    return option != OPTION_NAME && option != OPTION_STRICT &&
           option != OPTION_DATA_DIR &&
           (option < OPTION_RECORD || option > OPTION_PROMETHEUS);
}

static int set_name(const char **out, const char *value, size_t bytes_max,
                    const char *spelling, struct gpul_error *err)
{
    if (value[0] == '\0' || strlen(value) > bytes_max ||
        !gpul_text_is_valid(value, GPUL_TEXT_NAME)) {
        return gpul_fail(err, GPUL_EINVAL,
                         "%s: not 1 to %zu printable characters without spaces",
                         spelling, bytes_max);
    }
    *out = value;
    return 0;
}

/* It is the name of a folder of logs, too. */
static int set_job(struct plan *plan, const char *value, const char *spelling,
                   struct gpul_error *err)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz"
                                  "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789._-";
    size_t n = strlen(value);
    if (n == 0 || n > GPUL_JOB_ID_BYTES_MAX || strspn(value, letters) != n ||
        value[0] == '.' || value[0] == '-') {
        return gpul_fail(err, GPUL_EINVAL,
                         "%s: \"%.80s\" is not 1 to %u letters, digits, ., _ "
                         "and -, the first neither . nor -",
                         spelling, value, GPUL_JOB_ID_BYTES_MAX);
    }
    plan->job_id = value;
    return 0;
}

int cli_join_set(struct plan *plan, enum option option, const char *value,
                 struct gpul_error *err)
{
    const char *spelling = plan->settings[option].spelling;
    uint32_t port;
    switch (option) {
    case OPTION_ADDRESS:
        return set_name(&plan->address, value, ADDRESSES_BYTES_MAX, spelling,
                        err);
    case OPTION_JOB:
        return set_job(plan, value, spelling, err);
    case OPTION_NAME:
        return set_name(&plan->node_name, value, GPUL_NAME_BYTES_MAX, spelling,
                        err);
    default: /* OPTION_PORT */
        if (gpul_parse_count(&port, value, 1, UINT16_MAX, err) != 0) {
            return gpul_wrap(err, GPUL_EINVAL, "%s", spelling);
        }
        plan->port = (uint16_t)port;
        return 0;
    }
}

int cli_hostport(struct gpul_hostport *out, const char *text, uint16_t port,
                 struct gpul_error *err)
{
    char with_port[GPUL_HOST_BYTES + 16];
    struct gpul_error why = {0};
    if (gpul_hostport_parse(out, text, &why) == 0) {
        return 0;
    }
    const char *colon = strchr(text, ':');
    bool is_bare = colon != NULL && text[0] != '['; /* an IPv6 literal */
    if (port == 0 || (is_bare && strchr(colon + 1, ':') == NULL)) {
        return gpul_fail(err, GPUL_EINVAL, "%s", why.text);
    }
    int n =
        snprintf(with_port, sizeof(with_port), "%s%s%s:%u", is_bare ? "[" : "",
                 text, is_bare ? "]" : "", (unsigned)port);
    return n < (int)sizeof(with_port)
               ? gpul_hostport_parse(out, with_port, err)
               : gpul_fail(err, GPUL_EINVAL, "the address is too long");
}

static int take_address(struct plan *plan, const char *text,
                        struct gpul_error *err)
{
    if (plan->coordinator_count == GPUL_COORDINATORS_MAX) {
        return gpul_fail(err, GPUL_ELIMIT, "join: more than %u addresses",
                         GPUL_COORDINATORS_MAX);
    }
    struct gpul_hostport *out = &plan->coordinators[plan->coordinator_count++];
    int rc = cli_hostport(out, text, plan->port, err);
    if (rc != 0) {
        return gpul_wrap(err, rc, "join");
    }
    if (plan->port > 0 && plan->port != out->port) {
        return gpul_fail(err, GPUL_EINVAL,
                         "join: %s and %s %u contradict each other; give the "
                         "port once",
                         text, plan->settings[OPTION_PORT].spelling,
                         (unsigned)plan->port);
    }
    return 0;
}

/* One, or several with commas between them. */
static int take_addresses(struct plan *plan, struct gpul_error *err)
{
    char one[GPUL_HOST_BYTES + 16];
    const char *at =
        plan->join_address != NULL ? plan->join_address : plan->address;
    if (at == NULL) {
        return gpul_fail(err, GPUL_EINVAL,
                         "join: where is the job? gpulaunch join ADDR:PORT "
                         "--job ID --secret-file FILE, as the gpulaunch that "
                         "waits for its nodes prints it");
    }
    int rc = 0;
    for (bool is_last = false; rc == 0 && !is_last;) {
        size_t n = strcspn(at, ",");
        is_last = at[n] == '\0';
        snprintf(one, sizeof(one), "%.*s", (int)n, at);
        rc = n < sizeof(one)
                 ? take_address(plan, one, err)
                 : gpul_fail(err, GPUL_EINVAL, "join: an address is too long");
        at += n + !is_last;
    }
    return rc;
}

int cli_join_apply(struct plan *plan, struct gpul_error *err)
{
    int rc = take_addresses(plan, err);
    if (rc == 0) {
        rc = cli_rules_loudness(plan, err);
    }
    if (rc == 0) {
        rc = cli_rules_secrecy(plan, err);
    }
    if (rc == 0 && plan->job_id == NULL) {
        rc = gpul_fail(err, GPUL_EINVAL,
                       "join: which job? --job ID, as the gpulaunch that waits "
                       "for its nodes prints it");
    }
    return rc;
}
