/* SPDX-License-Identifier: Apache-2.0
 *
 * The themes of a survey, one function each, and how they read files. Each may
 * hang or crash: worker/survey_read.h runs it in a process of its own. Edge.
 *
 * Sources: Linux, Documentation/ABI, cgroup-v2.rst, proc(5); the PCI
 * Express base specification for the configuration space.
 */
#ifndef WORKER_SURVEY_THEMES_H
#define WORKER_SURVEY_THEMES_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "worker/survey.h"
#include "worker/survey_read.h"

void survey_os(struct survey *s, const struct survey_request *r);
void survey_cpu(struct survey *s, const struct survey_request *r);
void survey_memory(struct survey *s, const struct survey_request *r);
void survey_limits(struct survey *s, const struct survey_request *r);
void survey_cgroups(struct survey *s, const struct survey_request *r);
void survey_pci(struct survey *s, const struct survey_request *r);
void survey_gpu(struct survey *s, const struct survey_request *r);
void survey_nvidia(struct survey *s, const struct survey_request *r);
void survey_rdma(struct survey *s, const struct survey_request *r);
void survey_net(struct survey *s, const struct survey_request *r);
void survey_names(struct survey *s, const struct survey_request *r);
void survey_environment(struct survey *s, const struct survey_request *r);
void survey_software(struct survey *s, const struct survey_request *r);
void survey_storage(struct survey *s, const struct survey_request *r);

/* ---- files below the root -------------------------------------------------
 */

enum { SURVEY_FILE_BYTES = 16384, SURVEY_LINE_BYTES = 256 };

/* The path below the root; "" for one that is too long. */
void survey_path(char path[PATH_MAX], const char *root, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The first bytes of a file as text. Returns 0 or the errno, with "". */
int survey_file(char *text, size_t bytes, const char *root, const char *format,
                ...) __attribute__((format(printf, 4, 5)));

/* The first line without its end; "" where there is none. */
const char *survey_line(char line[SURVEY_LINE_BYTES], const char *root,
                        const char *format, ...)
    __attribute__((format(printf, 3, 4)));

bool survey_exists(const char *root, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The last part of what a link points to; "" where there is none. */
const char *survey_link(char name[SURVEY_LINE_BYTES], const char *root,
                        const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Entries of a folder, in the order of their numbers. */
struct survey_names {
    char **names;
    size_t count;
};
void survey_folder(struct survey_names *out, const char *root,
                   const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void survey_names_release(struct survey_names *names);

/* Say the first line of a file, or why there is none. */
void survey_say_file(struct survey *s, const char *key, const char *root,
                     const char *path);

/* The value of NAME in the environment; NULL: not set, or empty. */
const char *survey_variable(const struct survey_request *r, const char *name);

/* Half of a SHA-256 over salt, name and bytes, as hexadecimal digits: equal on
 * nodes that have the same, and of no use to find the bytes. */
enum { SURVEY_DIGEST_BYTES = 33 };
void survey_digest(char out[SURVEY_DIGEST_BYTES], const char *salt,
                   const char *name, const void *bytes, size_t n);

#endif
