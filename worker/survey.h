/* SPDX-License-Identifier: Apache-2.0
 *
 * What a node says of itself in a check: facts, each a key and a value, or a
 * key and the reason why there is no value. docs/checks.md lists the keys.
 * Pure; worker/survey_read.h fills one.
 *
 * Values are decimal numbers of base units (bytes, seconds, bytes a second),
 * lists of words, or short texts. "none" says that there is none of it, or no
 * limit. All of it fits one Survey message.
 */
#ifndef WORKER_SURVEY_H
#define WORKER_SURVEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"
#include "proto/message.h"

struct survey;

/* A fact was added: it is the last of the survey. */
typedef void (*survey_fn)(void *arg, const Gpul__Fact *fact);

/* An all-zero one is empty. */
struct survey {
    Gpul__Survey message; /* owned */
    size_t bytes;         /* of all texts */
    bool is_short;        /* of memory: some fact is missing */
    survey_fn on_fact;    /* NULL: nobody is told */
    void *arg;
};

void survey_release(struct survey *s);

/* Add a fact. The first with a key counts, and others are left out. A value is
 * made fit for the wire; one that is too long is cut, with a number behind it
 * by which two are told apart. */
void survey_say(struct survey *s, const char *key, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void survey_say_number(struct survey *s, const char *key, uint64_t value);

/* There is no value, and why. */
void survey_unknown(struct survey *s, const char *key, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

bool survey_has(const struct survey *s, const char *key);

/* Append a fact as bytes; take the whole ones at the beginning of others.
 * Returns how many bytes they had, SIZE_MAX: they are no facts. */
int survey_encode(struct gpul_buf *out, const Gpul__Fact *fact);
size_t survey_decode(struct survey *s, const char *bytes, size_t n);

/* A list of words that is being made: each once. */
enum { SURVEY_LIST_BYTES = 4096 };
struct survey_list {
    char text[SURVEY_LIST_BYTES]; /* "": empty */
};
void survey_list_add(struct survey_list *list, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The list; "none" for an empty one. */
const char *survey_list_text(const struct survey_list *list);

#endif
