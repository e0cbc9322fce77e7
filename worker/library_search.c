/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library_search.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- prefixes ----------------------------------------------------------- */

static const char *variable(const struct library_search *in, const char *name)
{
    size_t n = strlen(name);
    for (size_t i = 0; in->environment != NULL && in->environment[i]; i++) {
        const char *entry = in->environment[i];
        if (strncmp(entry, name, n) == 0 && entry[n] == '=') {
            return entry[n + 1] != 0 ? entry + n + 1 : NULL;
        }
    }
    return NULL;
}

struct prefixes {
    struct library_prefix *list;
    size_t count;
};

/* The first `n` bytes of `path` and `rest`, unless they are there already or
 * are no absolute path: where a relative one leads depends on the rank. */
static void add_prefix(struct prefixes *p, const char *path, size_t n,
                       const char *rest)
{
    while (n > 1 && path[n - 1] == '/') {
        n--;
    }
    struct library_prefix *prefix = &p->list[p->count];
    if (p->count == LIBRARY_PREFIXES_MAX || n == 0 || path[0] != '/' ||
        n + strlen(rest) >= sizeof(prefix->path)) {
        return;
    }
    memcpy(prefix->path, path, n);
    memcpy(prefix->path + n, rest, strlen(rest) + 1);
    prefix->python_count = 0;
    for (size_t i = 0; i < p->count; i++) {
        if (strcmp(p->list[i].path, prefix->path) == 0) {
            return;
        }
    }
    p->count++;
}

/* Every machine has these; a command that stands there (bash, srun) says
 * nothing about the Python that training will use. */
static bool is_of_system(const char *prefix, size_t n)
{
    return n == 0 || (n == 4 && memcmp(prefix, "/usr", 4) == 0) ||
           (n == 10 && memcmp(prefix, "/usr/local", 10) == 0);
}

/* <prefix>/bin/python3 and <prefix>/bin/torchrun alike. */
static void add_program(struct prefixes *p, const char *program)
{
    const char *slash = program != NULL ? strrchr(program, '/') : NULL;
    static const char folder[] = "/bin";
    size_t n = slash != NULL ? (size_t)(slash - program) : 0;
    if (n < strlen(folder) ||
        memcmp(slash - strlen(folder), folder, strlen(folder)) != 0) {
        return;
    }
    n -= strlen(folder);
    if (!is_of_system(program, n)) {
        add_prefix(p, program, n, "");
    }
}

static void add_variable(struct prefixes *p, const struct library_search *in,
                         const char *name, const char *rest)
{
    const char *value = variable(in, name);
    if (value != NULL) {
        add_prefix(p, value, strlen(value), rest);
    }
}

size_t library_search_prefixes(struct library_prefix *out,
                               const struct library_search *in)
{
    struct prefixes p = {out, 0};
    add_program(&p, in->program);
    add_variable(&p, in, "VIRTUAL_ENV", "");
    add_variable(&p, in, "CONDA_PREFIX", "");
    add_variable(&p, in, "HOME", "/.local");
    add_prefix(&p, "/usr/local", strlen("/usr/local"), "");
    add_prefix(&p, "/usr", strlen("/usr"), "");
    return p.count;
}

/* ---- candidates --------------------------------------------------------- */

static int add_path(struct library_candidates *c, const char *path,
                    struct gpul_error *err)
{
    if (c->count == LIBRARY_CANDIDATES_MAX) {
        return gpul_fail(err, GPUL_ELIMIT,
                         "over %d places to look for a library: is "
                         "LD_LIBRARY_PATH right?",
                         LIBRARY_CANDIDATES_MAX);
    }
    c->paths[c->count] = strdup(path);
    if (c->paths[c->count] == NULL) {
        return gpul_fail(err, GPUL_ENOMEM,
                         "out of memory for places to look for a library");
    }
    c->count++;
    return 0;
}

/* Each name in one folder. A path that is too long cannot be opened either,
 * so it is left out. */
static int add_folder(struct library_candidates *c, const char *folder,
                      const struct library_search *in, struct gpul_error *err)
{
    char path[PATH_MAX];
    int rc = 0;
    for (size_t i = 0; in->names[i] != NULL && rc == 0; i++) {
        int n = snprintf(path, sizeof(path), "%s/%s", folder, in->names[i]);
        if (n > 0 && (size_t)n < sizeof(path)) {
            rc = add_path(c, path, err);
        }
    }
    return rc;
}

/* pip uses site-packages, the packages of Debian dist-packages. */
static int add_python(struct library_candidates *c,
                      const struct library_search *in, const char *prefix,
                      const char *python, struct gpul_error *err)
{
    static const char *const kinds[] = {"site-packages", "dist-packages"};
    char folder[PATH_MAX];
    int rc = 0;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]) && rc == 0; i++) {
        int n = snprintf(folder, sizeof(folder), "%s/lib/%s/%s/%s", prefix,
                         python, kinds[i], in->wheel);
        if (n > 0 && (size_t)n < sizeof(folder)) {
            rc = add_folder(c, folder, in, err);
        }
    }
    return rc;
}

static int add_prefixes(struct library_candidates *c,
                        const struct library_search *in,
                        const struct library_prefix *prefixes, size_t count,
                        struct gpul_error *err)
{
    const char *conda = variable(in, "CONDA_PREFIX");
    int rc = 0;
    for (size_t i = 0; i < count && rc == 0; i++) {
        const struct library_prefix *prefix = &prefixes[i];
        for (size_t k = 0; k < prefix->python_count && rc == 0; k++) {
            rc = add_python(c, in, prefix->path, prefix->pythons[k], err);
        }
        if (rc == 0 && conda != NULL && strcmp(conda, prefix->path) == 0) {
            char folder[PATH_MAX + sizeof("/lib")];
            snprintf(folder, sizeof(folder), "%s/lib", prefix->path);
            rc = add_folder(c, folder, in, err);
        }
    }
    return rc;
}

/* ld.so(8): entries are parted by ':' or ';', an empty one is the working
 * directory, and those with '$' are templates that it alone can fill in. */
static int add_linker_path(struct library_candidates *c,
                           const struct library_search *in,
                           struct gpul_error *err)
{
    const char *rest = variable(in, "LD_LIBRARY_PATH");
    char folder[PATH_MAX];
    int rc = 0;
    while (rest != NULL && rc == 0) {
        size_t n = strcspn(rest, ":;");
        if (n < sizeof(folder) && memchr(rest, '$', n) == NULL) {
            memcpy(folder, rest, n);
            folder[n] = 0;
            rc = add_folder(c, n > 0 ? folder : ".", in, err);
        }
        rest = rest[n] != 0 ? rest + n + 1 : NULL;
    }
    return rc;
}

static int add_all(struct library_candidates *c,
                   const struct library_search *in,
                   const struct library_prefix *prefixes, size_t prefix_count,
                   struct gpul_error *err)
{
    if (in->chosen != NULL) {
        return add_path(c, in->chosen, err);
    }
    int rc = 0;
    if (in->wheel != NULL) {
        rc = add_prefixes(c, in, prefixes, prefix_count, err);
    }
    if (rc == 0) {
        rc = add_linker_path(c, in, err);
    }
    for (size_t i = 0; in->names[i] != NULL && rc == 0; i++) {
        rc = add_path(c, in->names[i], err);
    }
    return rc;
}

int library_search(struct library_candidates *out,
                   const struct library_search *in,
                   const struct library_prefix *prefixes, size_t prefix_count,
                   struct gpul_error *err)
{
    *out = (struct library_candidates){0};
    out->paths = calloc(LIBRARY_CANDIDATES_MAX, sizeof(*out->paths));
    if (out->paths == NULL) {
        return gpul_fail(err, GPUL_ENOMEM,
                         "out of memory for places to look for a library");
    }
    int rc = add_all(out, in, prefixes, prefix_count, err);
    if (rc != 0) {
        library_candidates_release(out);
    }
    return rc;
}

void library_candidates_release(struct library_candidates *c)
{
    for (size_t i = 0; i < c->count; i++) {
        free(c->paths[i]);
    }
    free(c->paths);
    *c = (struct library_candidates){0};
}
