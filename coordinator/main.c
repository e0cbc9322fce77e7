/* SPDX-License-Identifier: Apache-2.0
 *
 * gpulaunch-coordinator: what it is called with, and what it leaves with.
 */
#include <errno.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/options.h"
#include "common/startup.h"
#include "common/units.h"
#include "common/writeall.h"
#include "coordinator/log.h"
#include "coordinator/server.h"
#include "proto/keypipe.h"

enum {
    OPERATOR_FD = 3,
    LISTEN_FD = 4,
    MORE_LISTEN_FD = 6, /* behind the secret's */
    EXIT_OWN_FAILURE = 125,
    HELP_BYTES_MAX = 16 << 10,
};

enum option {
    OPTION_EPOCH,
    OPTION_LISTENERS,
    OPTION_INSECURE,
    OPTION_VERBOSE,
    OPTION_HELP,
    OPTION_VERSION,
};

static const struct gpul_option table[] = {
    [OPTION_EPOCH] = {.name = "epoch",
                      .group = "Options",
                      .value = "N",
                      .help = "How often this coordinator has been started, "
                              "from 1; agents ignore older ones."},
    [OPTION_LISTENERS] = {.name = "listeners",
                          .group = "Options",
                          .value = "N",
                          .help = "Listening sockets that were handed over: "
                                  "descriptor 4, and from 6 on (default 1)."},
    [OPTION_INSECURE] = {.name = "insecure",
                         .group = "Options",
                         .help = "Let nodes in without a key; for a listener "
                                 "on loopback only."},
    [OPTION_VERBOSE] = {.name = "verbose",
                        .group = "Options",
                        .letter = 'v',
                        .help = "Tell on stderr what is decided, and why."},
    [OPTION_HELP] = {.name = "help",
                     .group = "Options",
                     .letter = 'h',
                     .help = "Print this text."},
    [OPTION_VERSION] = {.name = "version",
                        .group = "Options",
                        .letter = 'V',
                        .help = "Print the version."},
};

struct arguments {
    uint32_t epoch;
    uint32_t listener_count;
    bool is_insecure;
    bool is_verbose;
    bool wants_help;
    bool wants_version;
};

static int on_option(void *arg, size_t index, const char *value,
                     const char *spelling, enum gpul_option_source source,
                     struct gpul_error *err)
{
    struct arguments *a = arg;
    (void)source;
    switch ((enum option)index) {
    case OPTION_EPOCH: {
        int rc = gpul_parse_count(&a->epoch, value, 1, UINT32_MAX, err);
        return rc == 0 ? 0 : gpul_wrap(err, rc, "%s", spelling);
    }
    case OPTION_LISTENERS: {
        int rc = gpul_parse_count(&a->listener_count, value, 1,
                                  GPUL_COORDINATORS_MAX, err);
        return rc == 0 ? 0 : gpul_wrap(err, rc, "%s", spelling);
    }
    case OPTION_INSECURE:
        a->is_insecure = true;
        return 0;
    case OPTION_VERBOSE:
        a->is_verbose = true;
        return 0;
    case OPTION_HELP:
        a->wants_help = true;
        return 0;
    case OPTION_VERSION:
        a->wants_version = true;
        return 0;
    }
    return 0;
}

static const struct gpul_options options = {
    .table = table,
    .count = sizeof(table) / sizeof(table[0]),
    .on_value = on_option,
};

static int parse(struct arguments *a, int argc, char *argv[],
                 struct gpul_error *err)
{
    struct gpul_options o = options;
    int rest;
    bool has_separator;
    o.arg = a;
    int rc =
        gpul_options_parse(&o, argc - 1, argv + 1, &rest, &has_separator, err);
    if (rc == 0 && rest < argc - 1) {
        rc = gpul_fail(err, GPUL_EINVAL, "unexpected argument \"%s\"",
                       argv[1 + rest]);
    }
    return rc;
}

static int judge_output(int why, struct gpul_error *err)
{
    if (why == 0) {
        return 0;
    }
    gpul_fail_errno(err, why, "cannot write to standard output");
    return EXIT_OWN_FAILURE;
}

static int print_help(struct gpul_error *err)
{
    struct gpul_buf text;
    gpul_buf_init(&text, HELP_BYTES_MAX);
    gpul_buf_append_text(
        &text, "gpulaunch-coordinator [--epoch N] [--listeners N] [--insecure] "
               "[-v]\n\n"
               "The part of gpulaunch that decides: which nodes are in, which "
               "ranks they get,\nwhether the command may start and how the "
               "job ended. gpulaunch starts it, with\na socket pair to itself "
               "as descriptor 3, a listening TCP socket as\ndescriptor 4 and "
               "the job's secret in a pipe as descriptor 5; there is no use "
               "in\nstarting it by hand.\n\n");
    gpul_options_help(&text, &options);
    int why = text.is_failed
                  ? ENOMEM
                  : gpul_write_all(STDOUT_FILENO, text.data, text.used);
    gpul_buf_release(&text);
    return judge_output(why, err);
}

static bool is_socket(int fd)
{
    struct stat status;
    return fstat(fd, &status) == 0 && S_ISSOCK(status.st_mode);
}

static bool is_listening(int fd)
{
    int listens = 0;
    socklen_t n = sizeof(listens);
    return getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &n) == 0 &&
           listens != 0;
}

static int check_descriptors(struct server_config *config,
                             struct gpul_error *err)
{
    bool are_good = is_socket(OPERATOR_FD) && !is_listening(OPERATOR_FD);
    for (uint32_t i = 0; i < config->listen_count; i++) {
        int fd = i == 0 ? LISTEN_FD : MORE_LISTEN_FD + (int)i - 1;
        config->listen_fds[i] = fd;
        are_good = are_good && is_listening(fd);
    }
    if (!are_good) {
        return gpul_fail(err, GPUL_EINVAL,
                         "descriptors 3 and 4 are not the sockets that "
                         "gpulaunch hands over; run gpulaunch instead");
    }
    return 0;
}

/* One descriptor a node: take all that may be had. */
static void raise_descriptor_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static int serve(const struct arguments *a, struct gpul_error *err)
{
    int exit_code = EXIT_OWN_FAILURE;
    struct gpul_secret secret;
    struct server_config config = {.operator_fd = OPERATOR_FD,
                                   .listen_count = a->listener_count,
                                   .secret = a->is_insecure ? NULL : &secret,
                                   .epoch = a->epoch,
                                   .is_verbose = a->is_verbose};
    int rc = check_descriptors(&config, err);
    if (rc == 0 && !a->is_insecure) {
        rc =
            gpul_keypipe_take_secret(&secret, GPUL_KEYPIPE_OF_COORDINATOR, err);
    }
    if (rc != 0) {
        return EXIT_OWN_FAILURE;
    }
    raise_descriptor_limit();
    rc = server_run(&exit_code, &config, err);
    gpul_wipe(&secret, sizeof(secret));
    return rc == 0 ? exit_code : EXIT_OWN_FAILURE;
}

int main(int argc, char *argv[])
{
    struct arguments a = {.epoch = 1, .listener_count = 1};
    struct gpul_error err = {0};
    int exit_code = EXIT_OWN_FAILURE;
    gpul_startup_signals();
    gpul_startup_private();
    if (parse(&a, argc, argv, &err) != 0) {
        /* said below */
    } else if (a.wants_help) {
        exit_code = print_help(&err);
    } else if (a.wants_version) {
        static const char version[] =
            "gpulaunch-coordinator " GPULAUNCH_VERSION "\n";
        exit_code = judge_output(
            gpul_write_all(STDOUT_FILENO, version, sizeof(version) - 1), &err);
    } else {
        exit_code = serve(&a, &err);
    }
    if (err.status != 0) {
        log_line(err.text);
    }
    return exit_code;
}
