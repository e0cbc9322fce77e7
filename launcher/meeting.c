/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/meeting.h"

#include <stdio.h>
#include <string.h>

#include "proto/text.h"

static const char first_line[] = "gpulaunch-meeting 1", last_line[] = "end";

int meeting_format(struct gpul_buf *out, const struct meeting *m)
{
    gpul_buf_appendf(out, "%s\nrun %s\njob %s\n", first_line, m->run,
                     m->job_id);
    for (uint32_t i = 0; i < m->count; i++) {
        gpul_buf_append_text(out, "address ");
        gpul_hostport_append(out, m->at[i].host, m->at[i].port);
        gpul_buf_append_text(out, "\n");
    }
    if (m->secret[0] != '\0') {
        gpul_buf_appendf(out, "secret %s\n", m->secret);
    }
    gpul_buf_append_text(out, last_line);
    gpul_buf_append_text(out, "\n");
    return out->is_failed ? GPUL_ELIMIT : 0;
}

/* "word value"; NULL: another word. */
static const char *value_of(const char *line, const char *word)
{
    size_t n = strlen(word);
    return strncmp(line, word, n) == 0 && line[n] == ' ' ? line + n + 1 : NULL;
}

/* Once, and not empty. */
static bool take_text(char *out, size_t bytes, const char *value)
{
    if (out[0] != '\0' || strlen(value) >= bytes ||
        !gpul_text_is_valid(value, GPUL_TEXT_NAME)) {
        return false;
    }
    snprintf(out, bytes, "%s", value);
    return out[0] != '\0';
}

static bool take_line(struct meeting *m, const char *line)
{
    struct gpul_error why;
    const char *value;
    if ((value = value_of(line, "run")) != NULL) {
        return take_text(m->run, sizeof(m->run), value);
    }
    if ((value = value_of(line, "job")) != NULL) {
        return take_text(m->job_id, sizeof(m->job_id), value);
    }
    if ((value = value_of(line, "secret")) != NULL) {
        return take_text(m->secret, sizeof(m->secret), value);
    }
    if ((value = value_of(line, "address")) != NULL) {
        return m->count < GPUL_COORDINATORS_MAX &&
               gpul_hostport_parse(&m->at[m->count++], value, &why) == 0;
    }
    return false;
}

/* Cut the next line out; NULL: there is none, or it is not text. *at moves
 * behind it. */
static const char *next_line(char **at, const char *end)
{
    char *line = *at;
    char *newline =
        line < end ? memchr(line, '\n', (size_t)(end - line)) : NULL;
    if (newline == NULL || memchr(line, '\0', (size_t)(newline - line))) {
        return NULL;
    }
    *newline = '\0';
    *at = newline + 1;
    return line;
}

static bool is_whole(const struct meeting *m)
{
    return m->run[0] != '\0' && m->job_id[0] != '\0' && m->count > 0;
}

int meeting_parse(struct meeting *m, char *text, size_t n,
                  struct gpul_error *err)
{
    char *at = text, *end = text + n;
    unsigned number = 1;
    memset(m, 0, sizeof(*m));
    const char *line = next_line(&at, end);
    bool is_right = line != NULL && strcmp(line, first_line) == 0;
    while (is_right) {
        number++;
        line = next_line(&at, end);
        if (line != NULL && strcmp(line, last_line) == 0 && at == end &&
            is_whole(m)) {
            return 0;
        }
        is_right = line != NULL && take_line(m, line);
    }
    memset(m, 0, sizeof(*m));
    return gpul_fail(err, GPUL_EINVAL,
                     "line %u is not what another task of this gpulaunch "
                     "writes; is it the same release on all nodes?",
                     number);
}
