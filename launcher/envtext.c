/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/envtext.h"

#include <string.h>

#include "common/error.h"

enum { SHOWN_VALUE_BYTES = 400 };

static const char letters[] =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
static const char digits[] = "0123456789";
static const char plain_signs[] = "%+=:,./@-";

static bool is_one_of(const char *set, uint8_t byte)
{
    return byte != 0 && strchr(set, byte) != NULL;
}

static bool is_plain(uint8_t byte)
{
    return is_one_of(letters, byte) || is_one_of(digits, byte) ||
           is_one_of(plain_signs, byte);
}

static bool is_shell_name(const uint8_t *name, size_t n)
{
    if (n == 0 || !is_one_of(letters, name[0])) {
        return false;
    }
    for (size_t i = 1; i < n; i++) {
        if (!is_one_of(letters, name[i]) && !is_one_of(digits, name[i])) {
            return false;
        }
    }
    return true;
}

int envtext_quote(struct gpul_buf *out, const uint8_t *bytes, size_t n)
{
    bool needs_quotes = n == 0;
    for (size_t i = 0; i < n; i++) {
        needs_quotes |= !is_plain(bytes[i]);
    }
    if (!needs_quotes) {
        return gpul_buf_append(out, bytes, n);
    }
    gpul_buf_append_text(out, "'");
    size_t start = 0;
    for (size_t i = 0; i < n; i++) {
        if (bytes[i] == '\'') {
            gpul_buf_append(out, bytes + start, i - start);
            gpul_buf_append_text(out, "'\\''");
            start = i + 1;
        }
    }
    gpul_buf_append(out, bytes + start, n - start);
    return gpul_buf_append_text(out, "'");
}

static bool is_given(const Gpul__EnvEntry *e)
{
    return e->action != GPUL__ENV_ENTRY__ACTION__DROPPED;
}

static bool is_inherited(const Gpul__EnvEntry *e)
{
    return e->action == GPUL__ENV_ENTRY__ACTION__INHERITED;
}

int envtext_assignments(struct gpul_buf *out, Gpul__EnvEntry *const *entries,
                        size_t count, bool skips_inherited)
{
    for (size_t i = 0; i < count; i++) {
        const Gpul__EnvEntry *e = entries[i];
        if (!is_given(e) || !is_shell_name(e->name.data, e->name.len) ||
            (skips_inherited && is_inherited(e))) {
            continue;
        }
        gpul_buf_append(out, e->name.data, e->name.len);
        gpul_buf_append_text(out, "=");
        if (e->value.len > 0) {
            envtext_quote(out, e->value.data, e->value.len);
        }
        gpul_buf_append_text(out, "\n");
    }
    return out->is_failed ? GPUL_ELIMIT : 0;
}

const char *envtext_action(Gpul__EnvEntry__Action action)
{
    switch (action) {
    case GPUL__ENV_ENTRY__ACTION__SET:
        return "set";
    case GPUL__ENV_ENTRY__ACTION__KEPT:
        return "kept";
    case GPUL__ENV_ENTRY__ACTION__REPLACED:
        return "replaced";
    case GPUL__ENV_ENTRY__ACTION__DROPPED:
        return "dropped";
    case GPUL__ENV_ENTRY__ACTION__INHERITED:
        return "inherited";
    default:
        return "-";
    }
}

static void append_visible(struct gpul_buf *out, const ProtobufCBinaryData *b)
{
    size_t n = b->len < SHOWN_VALUE_BYTES ? b->len : SHOWN_VALUE_BYTES;
    for (size_t i = 0; i < n; i++) {
        if (b->data[i] < 0x20 || b->data[i] == 0x7f) {
            gpul_buf_appendf(out, "\\x%02x", b->data[i]);
        } else {
            gpul_buf_append(out, &b->data[i], 1);
        }
    }
    if (n < b->len) {
        gpul_buf_appendf(out, "... (%zu bytes)", b->len);
    }
}

int envtext_explain(struct gpul_buf *out, Gpul__EnvEntry *const *entries,
                    size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const Gpul__EnvEntry *e = entries[i];
        gpul_buf_appendf(out, "%-9s ", envtext_action(e->action));
        append_visible(out, &e->name);
        gpul_buf_append_text(out, "=");
        append_visible(out, &e->value);
        if (e->rule[0] != '\0' &&
            strcmp(e->rule, envtext_action(e->action)) != 0) {
            gpul_buf_appendf(out, "  # %s", e->rule);
        }
        gpul_buf_append_text(out, "\n");
    }
    return out->is_failed ? GPUL_ELIMIT : 0;
}
