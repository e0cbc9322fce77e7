/* SPDX-License-Identifier: Apache-2.0
 *
 * Files below a root that tests replace.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "worker/survey_themes.h"

__attribute__((format(printf, 3, 0))) static void make_path(char path[PATH_MAX],
                                                            const char *root,
                                                            const char *format,
                                                            va_list arguments)
{
    size_t used = (size_t)snprintf(path, PATH_MAX, "%s", root);
    int n = used < PATH_MAX
                ? vsnprintf(path + used, PATH_MAX - used, format, arguments)
                : PATH_MAX;
    if (n < 0 || used + (size_t)n >= PATH_MAX) {
        path[0] = 0;
    }
}

/* The path of the arguments behind `format`, as a statement. */
#define MAKE_PATH(path, root, format)                                          \
    do {                                                                       \
        va_list arguments;                                                     \
        va_start(arguments, format);                                           \
        make_path(path, root, format, arguments);                              \
        va_end(arguments);                                                     \
    } while (0)

void survey_path(char path[PATH_MAX], const char *root, const char *format, ...)
{
    MAKE_PATH(path, root, format);
}

static int read_file(char *text, size_t bytes, const char *path)
{
    size_t have = 0;
    ssize_t n = 1;
    text[0] = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        return errno;
    }
    while (have < bytes - 1 && n > 0) {
        n = read(fd, text + have, bytes - 1 - have);
        have += n > 0 ? (size_t)n : 0;
    }
    int why = n < 0 ? errno : 0;
    text[have] = 0;
    close(fd);
    return why;
}

int survey_file(char *text, size_t bytes, const char *root, const char *format,
                ...)
{
    char path[PATH_MAX];
    MAKE_PATH(path, root, format);
    return read_file(text, bytes, path);
}

const char *survey_line(char line[SURVEY_LINE_BYTES], const char *root,
                        const char *format, ...)
{
    char path[PATH_MAX];
    MAKE_PATH(path, root, format);
    read_file(line, SURVEY_LINE_BYTES, path);
    line[strcspn(line, "\n")] = 0;
    return line;
}

bool survey_exists(const char *root, const char *format, ...)
{
    char path[PATH_MAX];
    MAKE_PATH(path, root, format);
    return path[0] != 0 && access(path, F_OK) == 0;
}

const char *survey_link(char name[SURVEY_LINE_BYTES], const char *root,
                        const char *format, ...)
{
    char path[PATH_MAX];
    char target[PATH_MAX];
    MAKE_PATH(path, root, format);
    ssize_t n = readlink(path, target, sizeof(target) - 1);
    target[n > 0 ? n : 0] = 0;
    const char *slash = strrchr(target, '/');
    snprintf(name, SURVEY_LINE_BYTES, "%.255s",
             slash != NULL ? slash + 1 : target);
    return name;
}

/* ---- folders ------------------------------------------------------------- */

static int is_entry(const struct dirent *e)
{
    return e->d_name[0] != '.';
}

void survey_folder(struct survey_names *out, const char *root,
                   const char *format, ...)
{
    char path[PATH_MAX];
    struct dirent **entries;
    MAKE_PATH(path, root, format);
    *out = (struct survey_names){0};
    int n = scandir(path, &entries, is_entry, versionsort);
    if (n <= 0) {
        if (n == 0) {
            free(entries);
        }
        return;
    }
    out->names = calloc((size_t)n, sizeof(*out->names));
    for (int i = 0; i < n; i++) {
        char *copy = out->names != NULL ? strdup(entries[i]->d_name) : NULL;
        if (copy != NULL) {
            out->names[out->count++] = copy;
        }
        free(entries[i]);
    }
    free(entries);
}

void survey_names_release(struct survey_names *names)
{
    for (size_t i = 0; i < names->count; i++) {
        free(names->names[i]);
    }
    free(names->names);
    *names = (struct survey_names){0};
}

/* ---- facts --------------------------------------------------------------- */

void survey_say_file(struct survey *s, const char *key, const char *root,
                     const char *path)
{
    char line[SURVEY_LINE_BYTES];
    int why = survey_file(line, sizeof(line), root, "%s", path);
    line[strcspn(line, "\n")] = 0;
    if (why != 0) {
        survey_unknown(s, key, "%s: %s", path, strerror(why));
    } else {
        survey_say(s, key, "%s", line);
    }
}

const char *survey_variable(const struct survey_request *r, const char *name)
{
    size_t n = strlen(name);
    const char *const *environment = r->environment;
    for (size_t i = 0; environment != NULL && environment[i] != NULL; i++) {
        if (strncmp(environment[i], name, n) == 0 && environment[i][n] == '=' &&
            environment[i][n + 1] != 0) {
            return environment[i] + n + 1;
        }
    }
    return NULL;
}
