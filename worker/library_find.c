/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library_find.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/spawn.h"

static int compare_names(const void *a, const void *b)
{
    return strverscmp(b, a); /* the newest first */
}

static void list_pythons(struct library_prefix *prefix)
{
    static const char stem[] = "python3";
    char folder[PATH_MAX + sizeof("/lib")];
    snprintf(folder, sizeof(folder), "%s/lib", prefix->path);
    DIR *directory = opendir(folder);
    if (directory == NULL) {
        return;
    }
    const struct dirent *entry;
    while (prefix->python_count < LIBRARY_PYTHONS_MAX &&
           (entry = readdir(directory)) != NULL) {
        if (strncmp(entry->d_name, stem, strlen(stem)) == 0) {
            snprintf(prefix->pythons[prefix->python_count++],
                     sizeof(prefix->pythons[0]), "%s", entry->d_name);
        }
    }
    closedir(directory);
    qsort(prefix->pythons, prefix->python_count, sizeof(prefix->pythons[0]),
          compare_names);
}

static const char *path_of(const char *const *environment)
{
    for (size_t i = 0; environment != NULL && environment[i] != NULL; i++) {
        if (strncmp(environment[i], "PATH=", strlen("PATH=")) == 0) {
            return environment[i] + strlen("PATH=");
        }
    }
    return NULL;
}

int library_find(struct library_candidates *out,
                 const struct library_search *in, const char *command,
                 struct gpul_error *err)
{
    *out = (struct library_candidates){0};
    struct library_search search = *in;
    struct library_prefix *prefixes =
        calloc(LIBRARY_PREFIXES_MAX, sizeof(*prefixes));
    if (prefixes == NULL) {
        return gpul_fail(err, GPUL_ENOMEM,
                         "out of memory for places to look for a library");
    }
    char *program = NULL;
    int exec_errno = 0;
    if (command != NULL) {
        /* A command that does not exist is reported where it is started. */
        (void)gpul_spawn_find(&program, &exec_errno, command,
                              path_of(in->environment), NULL, NULL);
    }
    search.program = program;
    size_t count = library_search_prefixes(prefixes, &search);
    for (size_t i = 0; i < count; i++) {
        list_pythons(&prefixes[i]);
    }
    int rc = library_search(out, &search, prefixes, count, err);
    free(program);
    free(prefixes);
    return rc;
}
