/* SPDX-License-Identifier: Apache-2.0
 *
 * Command lines for the tests of launcher/cli.h.
 */
#ifndef TESTS_CLI_LINE_H
#define TESTS_CLI_LINE_H

#include "launcher/cli.h"

enum { WORDS_MAX = 64, TEXT_BYTES = 512 };

/* A command line and an environment ("NAME=VALUE NAME=VALUE") cut at blanks;
 * the plan points into them. */
struct line {
    char text[TEXT_BYTES];
    char *argv[WORDS_MAX];
    int argc;
    char variables[TEXT_BYTES];
    char *environment[WORDS_MAX];
    int environment_count;
    struct plan plan;
    struct gpul_error err;
};

/* Cut and parse both; what cli_parse returns. */
int cli_line_parse(struct line *l, const char *environment, const char *text);

#endif
