/* SPDX-License-Identifier: Apache-2.0
 *
 * What the way over ssh finds out before anything is started: ssh itself, the
 * command there, and where the nodes are to find the coordinator.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/ownaddr.h"
#include "launcher/quoting.h"
#include "launcher/reach_ssh_internal.h"
#include "proto/sockaddr.h"

enum {
    WORDS_MAX = 32,
    COPY_BYTES = 768,
    SCRIPT_BYTES_MAX = 4 * PATH_MAX + COPY_BYTES,
};

/* ---- ssh itself ---------------------------------------------------------- */

void ssh_free_words(char **words)
{
    for (size_t i = 0; words != NULL && words[i] != NULL; i++) {
        free(words[i]);
    }
    free(words);
}

static int cut(char **words, const char *text, struct gpul_error *err)
{
    size_t count = 0;
    while (*(text += strspn(text, " \t")) != '\0') {
        size_t n = strcspn(text, " \t");
        if (count == WORDS_MAX) {
            return gpul_fail(err, GPUL_EINVAL,
                             "--ssh-command: more than %d words", WORDS_MAX);
        }
        words[count] = strndup(text, n);
        if (words[count++] == NULL) {
            return gpul_fail(err, GPUL_ENOMEM, "out of memory");
        }
        text += n;
    }
    return count > 0 ? 0
                     : gpul_fail(err, GPUL_EINVAL,
                                 "--ssh-command: empty; give a command");
}

int ssh_command_words(char ***words, const struct plan *plan,
                      struct gpul_error *err)
{
    int why = 0;
    char *path = NULL;
    *words = calloc(WORDS_MAX + 1, sizeof(**words));
    if (*words == NULL) {
        return gpul_fail(err, GPUL_ENOMEM, "out of memory");
    }
    int rc =
        cut(*words, plan->ssh_command != NULL ? plan->ssh_command : "ssh", err);
    if (rc != 0) {
        return rc;
    }
    if (gpul_spawn_find(&path, &why, (*words)[0], getenv("PATH"), NULL, NULL) !=
        0) {
        return gpul_fail(err, GPUL_ENOTFOUND,
                         "no program %.80s here (%s); install openssh-client, "
                         "or name another with --ssh-command",
                         (*words)[0], strerror(why));
    }
    free((*words)[0]);
    (*words)[0] = path;
    return 0;
}

/* ---- the command there --------------------------------------------------- */

/* A control character cannot be quoted for every shell, nor would other bytes
 * mean the same in each locale. */
static int check_path(const char *path, const char *what,
                      struct gpul_error *err)
{
    for (const char *at = path; *at != '\0'; at++) {
        if (*at < ' ' || *at > '~') {
            return gpul_fail(err, GPUL_EINVAL,
                             "%s %.200s: a shell could misread this path; name "
                             "one of printable ASCII with --worker-path",
                             what, path);
        }
    }
    return 0;
}

static int map_program(struct ssh_way *way, struct gpul_error *err)
{
    const char *path = way->reach->worker_path;
    struct stat info;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &info) != 0) {
        int why = errno;
        if (fd >= 0) {
            close(fd);
        }
        return gpul_fail_errno(err, why, "cannot read %s", path);
    }
    way->program_bytes = (size_t)info.st_size;
    void *bytes = mmap(NULL, way->program_bytes, PROT_READ, MAP_PRIVATE, fd, 0);
    int why = errno;
    close(fd);
    if (bytes == MAP_FAILED) {
        return gpul_fail_errno(err, why, "cannot read %s", path);
    }
    way->program = bytes;
    return 0;
}

/* `text` runs in /bin/sh, whatever the user's login shell there is, with `path`
 * as $0 if there is one. Without a quote, `!` and backslash in it, single
 * quotes hold it in every shell. */
static int wrap(struct ssh_way *way, const char *text, const char *path,
                struct gpul_error *err)
{
    struct gpul_buf script;
    gpul_buf_init(&script, SCRIPT_BYTES_MAX);
    gpul_buf_appendf(&script, "exec /bin/sh -c '%s'", text);
    if (path != NULL) {
        gpul_buf_append_text(&script, " ");
        quoting_any_shell(&script, path);
    }
    const char *whole = gpul_buf_text(&script);
    way->script = whole != NULL ? strdup(whole) : NULL;
    gpul_buf_release(&script);
    return way->script != NULL
               ? 0
               : gpul_fail(err, GPUL_ENOMEM, "out of memory for a command");
}

/* What came is run only if it is whole: the session may be cut, or the disk
 * full. However the shell ends, nothing of it stays. SSH_NOT_COPIED is what
 * ssh_judge looks for. */
static int make_copying_script(struct ssh_way *way, struct gpul_error *err)
{
    char text[COPY_BYTES];
    int rc = map_program(way, err);
    size_t bytes = way->program_bytes;
    snprintf(text, sizeof(text),
             "umask 077; d=; r() { test -z \"$d\" || rm -rf \"$d\"; }; "
             "x() { echo \"" SSH_NOT_COPIED ": $1\" >&2; exit 125; }; "
             "trap r 0; trap \"exit 125\" 1 2 13 15; "
             "d=$(mktemp -d \"${TMPDIR:-/tmp}/gpulaunch-XXXXXX\") || "
             "x \"no directory for it\"; f=$d/gpulaunch-worker; "
             "head -c %zu >\"$f\"; n=$(wc -c <\"$f\"); "
             "test \"$n\" -eq %zu || x \"$n of %zu bytes came\"; "
             "chmod 700 \"$f\" && \"$f\" remote --copy",
             bytes, bytes, bytes);
    return rc != 0 ? rc : wrap(way, text, NULL, err);
}

/* No word of it depends on the job: what does, is written to it. */
static int make_script(struct ssh_way *way, struct gpul_error *err)
{
    const char *path = way->plan->worker_path;
    if (way->plan->copies_worker) {
        return make_copying_script(way, err);
    }
    if (path != NULL) {
        int rc = check_path(path, "--worker-path", err);
        return rc != 0 ? rc : wrap(way, "exec \"$0\" remote", path, err);
    }
    path = way->reach->worker_path;
    int rc = check_path(path, "this machine's", err);
    return rc != 0 ? rc
                   : wrap(way,
                          "if test -x \"$0\"; then exec \"$0\" remote; "
                          "else exec gpulaunch-worker remote; fi",
                          path, err);
}

/* ---- addresses ----------------------------------------------------------- */

/* Nobody over there could be told where we are. */
static int refuse_all(const struct ssh_way *way, struct gpul_error *err)
{
    const struct localaddr *first = &way->addresses[0];
    const char *name = way->plan->nodes.list[0].name;
    struct gpul_buf words;
    gpul_buf_init(&words, GPUL_ERROR_TEXT_BYTES);
    ssh_explain(&words, first->is_known ? SSH_FAULT_ROUTE : SSH_FAULT_NAME,
                name, first->words);
    gpul_fail(err, GPUL_ENOTFOUND,
              "node %s: %s; if ssh knows a way of its own, give --address ADDR",
              name, gpul_buf_text(&words));
    gpul_buf_release(&words);
    return GPUL_ENOTFOUND;
}

static int find_addresses(struct ssh_way *way, struct listening *listening,
                          struct gpul_error *err)
{
    const struct plan *plan = way->plan;
    struct sockaddr_storage unused;
    if (plan->advertised.host[0] != '\0' &&
        gpul_sockaddr_parse(&unused, plan->advertised.host, 1, NULL) != 0) {
        return gpul_fail(err, GPUL_EINVAL,
                         "--advertise: \"%.80s\" is no literal address; nodes "
                         "that are reached by ssh look no name up",
                         plan->advertised.host);
    }
    int rc = localaddr_find(way->addresses, &plan->nodes, way->ssh, err);
    if (rc != 0) {
        return rc;
    }
    if (plan->address != NULL) {
        return ownaddr_find(listening, plan->address, err);
    }
    for (uint32_t i = 0; i < plan->nodes.count; i++) {
        if (way->addresses[i].address[0] != '\0') {
            listening_add(listening, way->addresses[i].address);
        }
    }
    listening_drop_loopback(listening);
    if (plan->advertised.host[0] != '\0') {
        /* It leads to any of them. */
        return ownaddr_find(listening, NULL, err);
    }
    return listening->count > 0 ? 0 : refuse_all(way, err);
}

int ssh_prepare(struct reach *r, const struct plan *plan,
                struct listening *listening, struct gpul_error *err)
{
    uint32_t count = plan->nodes.count;
    struct ssh_way *way = calloc(1, sizeof(*way));
    r->state = way;
    if (way == NULL) {
        return gpul_fail(err, GPUL_ENOMEM, "out of memory");
    }
    way->reach = r;
    way->plan = plan;
    way->nodes = calloc(count, sizeof(*way->nodes));
    way->addresses = calloc(count, sizeof(*way->addresses));
    if (way->nodes == NULL || way->addresses == NULL) {
        return gpul_fail(err, GPUL_ENOMEM, "out of memory");
    }
    for (uint32_t i = 0; i < count; i++) {
        way->nodes[i].way = way;
        way->nodes[i].index = i;
    }
    int rc = ssh_command_words(&way->ssh, plan, err);
    if (rc == 0) {
        rc = make_script(way, err);
    }
    return rc != 0 ? rc : find_addresses(way, listening, err);
}
