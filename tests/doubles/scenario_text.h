/* SPDX-License-Identifier: Apache-2.0
 *
 * Lines of words, with the column of each, so that whatever is wrong in a
 * scenario can be pointed at. */
#ifndef DOUBLES_SCENARIO_TEXT_H
#define DOUBLES_SCENARIO_TEXT_H

#include <stdint.h>

#include "tests/doubles/scenario.h"

enum { LINE_WORDS = 64, LINE_BYTES = 1024 };

struct line {
    char text[LINE_BYTES]; /* the words, each with its NUL */
    const char *words[LINE_WORDS];
    int columns[LINE_WORDS]; /* from 1 */
    int count;
    int next; /* the word that is to be read */
    int number;
    char *error; /* SCENARIO_ERROR bytes */
};

/* Cuts the line at *text, moves *text behind it. Words are parted by blanks;
 * "..." is one word; a word that begins with # ends the line. 0, or -1. */
int line_cut(struct line *line, const char **text);

/* The next word, or NULL with "missing WHAT" said. */
const char *line_word(struct line *line, const char *what);

/* Says what is wrong with the word last read; always -1. */
int line_fail(struct line *line, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Each reads the next word; 0, or -1 with the error said. */
int line_number(struct line *line, const char *what, uint64_t most,
                uint64_t *value);
int line_size(struct line *line, const char *what, uint64_t *bytes);
int line_duration(struct line *line, const char *what, uint64_t *ns);
int line_rate(struct line *line, const char *what, uint64_t *bytes_per_s);
int line_factor(struct line *line, const char *what, double *factor);
int line_text(struct line *line, const char *what, char text[SCENARIO_TEXT]);

/* One of the words in `names`: its index, or -1. */
int line_choice(struct line *line, const char *what, const char *const names[],
                int count);

/* A duration in whole milliseconds. */
int line_ms(struct line *line, uint64_t *ms);

/* A pattern of node names: 1 when `node` is one of them, 0, or -1. */
int line_node(struct line *line, const char *node, char pattern[SCENARIO_TEXT]);

/* The kinds of lines, from their second word on; 0, or -1. */
int scenario_node_line(struct line *line, struct scenario *scenario);
int scenario_gpu_line(struct line *line, struct scenario *scenario);
int scenario_fault_line(struct line *line, struct scenario *scenario);

#endif
