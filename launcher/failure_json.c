/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/failure_json.h"

#include <stdlib.h>
#include <string.h>

#include "launcher/exception.h"
#include "launcher/json.h"
#include "proto/cause.h"

static json_t *known(uint64_t number)
{
    return number != 0 ? json_integer((json_int_t)number) : json_null();
}

static json_t *seconds(uint64_t ms)
{
    return json_real((double)ms / 1e3);
}

/* null: it cannot be known, or it is no question. */
static json_t *out_of_memory_json(const Gpul__Exit *e)
{
    if (e->out_of_memory == GPUL__EXIT__OUT_OF_MEMORY__UNKNOWN) {
        return json_null();
    }
    return json_boolean(e->out_of_memory != GPUL__EXIT__OUT_OF_MEMORY__NO);
}

static json_t *lines_json(const char *text)
{
    json_t *lines = json_array();
    while (text[0] != 0) {
        size_t n = strcspn(text, "\n");
        json_array_append_new(lines, json_stringn(text, n));
        text += n + (text[n] != 0 ? 1 : 0);
    }
    return lines;
}

static json_t *warnings_json(const Gpul__Evidence *e)
{
    json_t *lines = json_array();
    for (size_t i = 0; i < e->n_nccl_warnings; i++) {
        json_array_append_new(lines, json_string(e->nccl_warnings[i]));
    }
    return lines;
}

static json_t *exception_json(const Gpul__Evidence *e)
{
    struct exception *x = malloc(sizeof(*x));
    json_t *o = json_null();
    if (x != NULL &&
        exception_parse(x, e->error_file.data, e->error_file.len)) {
        o = json_object();
        json_put_text(o, "type", x->type);
        json_put_text(o, "message", x->message);
        json_put_text(o, "first_frame", x->first);
        json_put_text(o, "last_frame", x->last);
        json_object_set_new(o, "traceback", lines_json(x->traceback));
    }
    free(x);
    return o;
}

static void put_evidence(json_t *o, const Gpul__Evidence *e)
{
    static const char *const keys[] = {"stderr_tail", "nccl_warnings",
                                       "exception", "error_file_bytes"};
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        json_object_set_new(o, keys[i], json_null());
    }
    if (e != NULL) {
        json_object_set_new(o, "stderr_tail", lines_json(e->tail));
        json_object_set_new(o, "nccl_warnings", warnings_json(e));
        json_object_set_new(o, "exception", exception_json(e));
        json_object_set_new(o, "error_file_bytes", known(e->error_file_bytes));
    }
}

json_t *failure_json(const struct record *r, const Gpul__Exit *e)
{
    char cause[GPUL_CAUSE_BYTES];
    const Gpul__Member *m = record_member(r, e->rank);
    json_t *o = json_object();
    json_object_set_new(o, "rank", json_integer(e->rank));
    json_put_text(o, "node", m != NULL ? m->node_name : NULL);
    json_object_set_new(o, "pid", known(e->pid));
    json_object_set_new(o, "exit_code", json_integer(e->code));
    json_object_set_new(o, "signal", json_integer(e->signal));
    json_object_set_new(o, "exec_errno", json_integer(e->exec_errno));
    json_put_text(o, "text", e->text);
    json_put_text(o, "cause", gpul_exit_cause(cause, e));
    json_object_set_new(o, "out_of_memory", out_of_memory_json(e));
    json_object_set_new(o, "stopped", json_boolean(e->is_stopped));
    json_object_set_new(o, "after_seconds", seconds(e->after_ms));
    json_object_set_new(o, "ran_seconds", seconds(e->ran_ms));
    json_object_set_new(o, "cpu_seconds", seconds(e->cpu_ms));
    json_object_set_new(o, "max_rss_bytes", known(e->rss_bytes));
    json_put_text(o, "log", e->log);
    put_evidence(o, e->evidence);
    return o;
}
