/* SPDX-License-Identifier: Apache-2.0
 *
 * gpulaunch-worker: keeper and agent of a node, or what an agent starts: a
 * probe, or hwloc or NVML in a process of its own.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include "common/buf.h"
#include "common/hostport.h"
#include "common/options.h"
#include "common/startup.h"
#include "common/units.h"
#include "common/writeall.h"
#include "proto/keypipe.h"
#include "proto/limits.h"
#include "proto/text.h"
#include "worker/agent.h"
#include "worker/client.h"
#include "worker/gpuwatch.h"
#include "worker/keeper.h"
#include "worker/probe.h"
#include "worker/remote.h"
#include "worker/topology.h"

enum { JOIN_TIMEOUT_MS = 600000, HELP_BYTES_MAX = 64 << 10 };

enum option {
    CONNECT,
    JOB,
    NAME,
    JOIN_TIMEOUT,
    INSECURE,
    VERBOSE,
    HELP,
    VERSION
};

static const struct gpul_option table[] = {
    [CONNECT] = {.name = "connect",
                 .value = "ADDR:PORT",
                 .group = "Options",
                 .repeats = true,
                 .help = "Where the coordinator listens: a literal address. "
                         "Several are tried in turn."},
    [JOB] = {.name = "job",
             .value = "ID",
             .group = "Options",
             .help = "The job to take part in."},
    [NAME] = {.name = "name",
              .value = "NODE",
              .group = "Options",
              .help = "Name of this node, unique within the job."},
    [JOIN_TIMEOUT] = {.name = "join-timeout",
                      .value = "SECONDS",
                      .group = "Options",
                      .help = "Give up if the coordinator has not let this "
                              "node in by then (default 600)."},
    [INSECURE] = {.name = "insecure",
                  .group = "Options",
                  .help = "Talk to a coordinator that asks for no key. Else "
                          "descriptor 3 is a pipe with the key of this node."},
    [VERBOSE] = {.name = "verbose",
                 .letter = 'v',
                 .group = "Options",
                 .help = "Say what keeps this node from joining."},
    [HELP] = {.name = "help",
              .letter = 'h',
              .group = "Options",
              .help = "Show this help."},
    [VERSION] = {.name = "version",
                 .letter = 'V',
                 .group = "Options",
                 .help = "Show the version."},
};

struct arguments {
    struct client_config config;
    struct gpul_key key;
    bool is_insecure;
    bool wants_help;
    bool wants_version;
};

static int check_name(const char *what, const char *value, size_t bytes_max,
                      struct gpul_error *err)
{
    if (value[0] == 0 || strlen(value) > bytes_max ||
        !gpul_text_is_valid(value, GPUL_TEXT_NAME)) {
        return gpul_fail(err, GPUL_EINVAL,
                         "%s: not 1 to %zu printable characters without spaces",
                         what, bytes_max);
    }
    return 0;
}

/* A name would have to be looked up, and could mean another machine here
 * than it did to whoever started us. */
static int parse_coordinator(struct gpul_hostport *out, const char *value,
                             struct gpul_error *err)
{
    struct sockaddr_storage address;
    int rc = gpul_hostport_parse(out, value, err);
    if (rc != 0) {
        return rc;
    }
    if (uv_ip4_addr(out->host, out->port, (struct sockaddr_in *)&address) &&
        uv_ip6_addr(out->host, out->port, (struct sockaddr_in6 *)&address)) {
        return gpul_fail(err, GPUL_EINVAL, "\"%s\" is not a literal address",
                         out->host);
    }
    return 0;
}

static int add_coordinator(struct client_config *config, const char *value,
                           struct gpul_error *err)
{
    if (config->coordinator_count == GPUL_COORDINATORS_MAX) {
        return gpul_fail(err, GPUL_ELIMIT, "more than %u addresses",
                         GPUL_COORDINATORS_MAX);
    }
    return parse_coordinator(&config->coordinators[config->coordinator_count++],
                             value, err);
}

static int on_option(void *arg, size_t index, const char *value,
                     const char *spelling, enum gpul_option_source source,
                     struct gpul_error *err)
{
    struct arguments *a = arg;
    (void)source;
    int rc = 0;
    switch ((enum option)index) {
    case CONNECT:
        rc = add_coordinator(&a->config, value, err);
        break;
    case JOB:
        a->config.job_id = value;
        return check_name(spelling, value, GPUL_JOB_ID_BYTES_MAX, err);
    case NAME:
        a->config.node_name = value;
        return check_name(spelling, value, GPUL_NAME_BYTES_MAX, err);
    case JOIN_TIMEOUT:
        rc = gpul_parse_duration_ms(&a->config.join_timeout_ms, value, err);
        break;
    case INSECURE:
        a->is_insecure = true;
        break;
    case VERBOSE:
        a->config.tells_delay = true;
        break;
    case HELP:
        a->wants_help = true;
        break;
    case VERSION:
        a->wants_version = true;
        break;
    }
    return rc != 0 ? gpul_wrap(err, rc, "%s", spelling) : 0;
}

static const struct gpul_options options = {
    .table = table,
    .count = sizeof(table) / sizeof(table[0]),
    .on_value = on_option,
};

static int complain(const char *text)
{
    fprintf(stderr, "gpulaunch-worker: %s\n", text);
    return AGENT_EXIT_FAILED;
}

static int print(const char *text)
{
    int why = text == NULL ? ENOMEM
                           : gpul_write_all(STDOUT_FILENO, text, strlen(text));
    if (why == 0) {
        return AGENT_EXIT_OK;
    }
    struct gpul_error err;
    gpul_fail_errno(&err, why, "cannot write to standard output");
    return complain(err.text);
}

static int show_help(void)
{
    struct gpul_buf help;
    gpul_buf_init(&help, HELP_BYTES_MAX);
    gpul_buf_append_text(
        &help, "Usage: gpulaunch-worker --connect ADDR:PORT --job ID --name "
               "NODE\n\n"
               "The agent of one node of a job. gpulaunch starts it; it is not "
               "meant to be\nstarted by hand.\n\n");
    gpul_options_help(&help, &options);
    int rc = print(gpul_buf_text(&help));
    gpul_buf_release(&help);
    return rc;
}

static int parse(struct arguments *a, int argc, char *argv[],
                 struct gpul_error *err)
{
    struct gpul_options o = options;
    o.arg = a;
    int rest;
    bool has_separator;
    int rc =
        gpul_options_parse(&o, argc - 1, argv + 1, &rest, &has_separator, err);
    if (rc != 0 || a->wants_help || a->wants_version) {
        return rc;
    }
    if (rest < argc - 1) {
        return gpul_fail(err, GPUL_EINVAL, "unexpected argument \"%s\"",
                         argv[1 + rest]);
    }
    if (a->config.coordinator_count == 0 || a->config.job_id == NULL ||
        a->config.node_name == NULL) {
        return gpul_fail(err, GPUL_EINVAL,
                         "--connect, --job and --name are needed; gpulaunch "
                         "starts this program itself");
    }
    return 0;
}

/* In the keeper's fork. */
static int run_agent(void *arg, int keeper)
{
    const struct arguments *a = arg;
    return client_run(&a->config, keeper);
}

static void forget_key(void *arg)
{
    struct arguments *a = arg;
    gpul_wipe(&a->key, sizeof(a->key));
}

static int run_keeper(struct arguments *a)
{
    const struct keeper_config keeper = {
        .agent_main = run_agent,
        .forget = forget_key,
        .arg = a,
        .node_name = a->config.node_name,
    };
    int code = keeper_run(&keeper);
    forget_key(a);
    return code;
}

/* What options say of a worker that was started here, orders say of one that
 * a remote shell has started. */
static int follow(struct arguments *a, const struct gpul_orders *orders,
                  struct gpul_error *err)
{
    struct gpul_secret form = {{0}};
    a->config.job_id = orders->job_id;
    a->config.node_name = orders->node_name;
    a->config.join_timeout_ms = orders->join_timeout_ms;
    a->config.coordinator_count = orders->coordinator_count;
    a->config.hears_orders = true;
    memcpy(a->config.coordinators, orders->coordinators,
           sizeof(orders->coordinators));
    if (orders->is_insecure) {
        return 0;
    }
    int rc = gpul_secret_parse(&form, orders->key, strlen(orders->key), err);
    memcpy(a->key.bytes, form.bytes, sizeof(form.bytes));
    gpul_wipe(&form, sizeof(form));
    a->config.key = &a->key;
    return rc;
}

static int run_remote(const char *option)
{
    struct arguments a = {0};
    struct gpul_orders orders;
    struct gpul_error err = {0};
    if (option != NULL && strcmp(option, REMOTE_COPY) == 0) {
        remote_remove_copy();
    }
    int rc = remote_take_orders(&orders, &err);
    if (rc == 0) {
        rc = follow(&a, &orders, &err);
    }
    gpul_wipe(orders.key, sizeof(orders.key));
    return rc == 0 ? run_keeper(&a) : complain(err.text);
}

int main(int argc, char *argv[])
{
    gpul_startup_signals();
    if (argc > 1 && strcmp(argv[1], "probe") == 0) {
        return probe_main(argc > 2 ? argv[2] : NULL);
    }
    if (argc > 1 && strcmp(argv[1], TOPOLOGY_VERB) == 0) {
        return topology_main(argc > 2 ? argv[2] : "");
    }
    if (argc > 1 && strcmp(argv[1], GPUWATCH_VERB) == 0) {
        return gpuwatch_main();
    }
    gpul_startup_private();
    if (argc > 1 && strcmp(argv[1], REMOTE_VERB) == 0) {
        return run_remote(argc > 2 ? argv[2] : NULL);
    }
    struct arguments a = {.config.join_timeout_ms = JOIN_TIMEOUT_MS};
    struct gpul_error err;
    if (parse(&a, argc, argv, &err) != 0) {
        return complain(err.text);
    }
    if (a.wants_help) {
        return show_help();
    }
    if (a.wants_version) {
        return print("gpulaunch-worker " GPULAUNCH_VERSION "\n");
    }
    if (!a.is_insecure) {
        if (gpul_keypipe_take_key(&a.key, GPUL_KEYPIPE_OF_NODE, &err) != 0) {
            return complain(err.text);
        }
        a.config.key = &a.key;
    }
    return run_keeper(&a);
}
