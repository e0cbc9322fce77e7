/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/unit/launcher/cli_line.h"

#include <string.h>

#include <cmocka.h>

static int cut(char **words, char *text)
{
    int count = 0;
    for (char *word = strtok(text, " "); word != NULL;
         word = strtok(NULL, " ")) {
        assert_true(count < WORDS_MAX);
        words[count++] = word;
    }
    return count;
}

static const char *look_up(void *arg, const char *name)
{
    struct line *l = arg;
    size_t n = strlen(name);
    for (int i = 0; i < l->environment_count; i++) {
        if (strncmp(l->environment[i], name, n) == 0 &&
            l->environment[i][n] == '=') {
            return l->environment[i] + n + 1;
        }
    }
    return NULL;
}

int cli_line_parse(struct line *l, const char *environment, const char *text)
{
    memset(l, 0, sizeof(*l));
    strncpy(l->text, text, sizeof(l->text) - 1);
    strncpy(l->variables, environment, sizeof(l->variables) - 1);
    l->argc = cut(l->argv, l->text);
    l->environment_count = cut(l->environment, l->variables);
    return cli_parse(&l->plan, l->argc, l->argv, look_up, l, &l->err);
}
