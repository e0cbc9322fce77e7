/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/exception.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "proto/text.h"

/* Torch's own frame, around the decorated function. */
static const char WRAPPER[] = "/elastic/multiprocessing/errors/";

/* The first line of `text`, `n` bytes of it at most. */
static void copy_line(char *out, size_t bytes, const char *text, size_t n)
{
    size_t length = 0;
    while (length < n && length < bytes - 1 && text[length] != '\n') {
        length++;
    }
    memcpy(out, text, length);
    out[length] = 0;
    gpul_text_clean_line(out, bytes - 1);
}

/* "torch.cuda.OutOfMemoryError: CUDA out of memory": a dotted name, and what
 * it says. */
static void split_message(struct exception *e, const char *text)
{
    size_t n = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwx"
                            "yz0123456789_.");
    bool has_class = n > 0 && n < sizeof(e->type) &&
                     (text[n] == ':' || text[n] == 0 || text[n] == '\n');
    if (has_class) {
        copy_line(e->type, sizeof(e->type), text, n);
        text += n + (text[n] == ':' ? 1 : 0);
    }
    text += strspn(text, " ");
    copy_line(e->message, sizeof(e->message), text, strlen(text));
}

/* A line as `  File "train.py", line 12, in main`. */
static bool read_frame(char out[EXCEPTION_FRAME_BYTES], const char *line)
{
    static const char begin[] = "  File \"";
    if (strncmp(line, begin, sizeof(begin) - 1) != 0) {
        return false;
    }
    const char *path = line + sizeof(begin) - 1;
    const char *quote = strstr(path, "\", line ");
    const char *end = strchr(path, '\n');
    if (quote == NULL || (end != NULL && quote > end)) {
        return false;
    }
    const char *number = quote + strlen("\", line ");
    const char *after = strstr(number, ", in ");
    bool has_place = after != NULL && (end == NULL || after < end);
    int place = has_place && end != NULL ? (int)(end - after) : 256;
    snprintf(out, EXCEPTION_FRAME_BYTES, "%.*s:%.*s%.*s", (int)(quote - path),
             path, (int)strspn(number, "0123456789"), number,
             has_place ? place - 1 : 0, has_place ? after + 1 : "");
    gpul_text_clean_line(out, EXCEPTION_FRAME_BYTES - 1);
    return true;
}

/* Of several tracebacks ("During handling of ...") the last counts. */
static void find_frames(struct exception *e, const char *stack)
{
    char frame[EXCEPTION_FRAME_BYTES];
    const char *line = stack;
    while (line != NULL) {
        if (strncmp(line, "Traceback ", strlen("Traceback ")) == 0) {
            e->first[0] = 0;
            e->last[0] = 0;
        } else if (read_frame(frame, line) && strstr(frame, WRAPPER) == NULL) {
            if (e->first[0] == 0) {
                memcpy(e->first, frame, sizeof(frame));
            }
            memcpy(e->last, frame, sizeof(frame));
        }
        line = strchr(line, '\n');
        line = line != NULL ? line + 1 : NULL;
    }
}

static void take_stack(struct exception *e, const char *stack)
{
    find_frames(e, stack);
    snprintf(e->traceback, sizeof(e->traceback), "%s", stack);
    gpul_text_clean(e->traceback, sizeof(e->traceback) - 1);
}

bool exception_parse(struct exception *out, const uint8_t *json, size_t n)
{
    json_t *root = json_loadb((const char *)json, n, 0, NULL);
    json_t *message = json_object_get(root, "message");
    json_t *extra = json_object_get(message, "extraInfo");
    json_t *words =
        json_is_string(message) ? message : json_object_get(message, "message");
    json_t *stack = json_object_get(extra, "py_callstack");
    *out = (struct exception){0};
    if (json_is_string(words)) {
        split_message(out, json_string_value(words));
    }
    if (json_is_string(stack)) {
        take_stack(out, json_string_value(stack));
    }
    json_decref(root);
    return out->type[0] != 0 || out->message[0] != 0;
}
