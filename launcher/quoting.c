/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/quoting.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

static bool is_printable_ascii(const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text < ' ' || *text > '~') {
            return false;
        }
    }
    return true;
}

static int append_single_quoted(struct gpul_buf *out, const char *text)
{
    gpul_buf_append_text(out, "'");
    for (; *text != '\0'; text++) {
        if (*text == '\'') {
            gpul_buf_append_text(out, "'\\''");
        } else {
            gpul_buf_append(out, text, 1);
        }
    }
    return gpul_buf_append_text(out, "'");
}

int quoting_shell(struct gpul_buf *out, const char *text)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyz"
                                "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "0123456789/._-+@%:,=";
    if (text[0] != '\0' && text[0] != '=' &&
        text[strspn(text, plain)] == '\0') {
        return gpul_buf_append_text(out, text);
    }
    if (is_printable_ascii(text)) {
        return append_single_quoted(out, text);
    }
    gpul_buf_append_text(out, "$'");
    for (; *text != '\0'; text++) {
        if (*text < ' ' || *text > '~') {
            /* Three digits always: what follows may be one. */
            gpul_buf_appendf(out, "\\%03o", (unsigned)(unsigned char)*text);
        } else {
            gpul_buf_appendf(out, "%s%c",
                             *text == '\'' || *text == '\\' ? "\\" : "", *text);
        }
    }
    return gpul_buf_append_text(out, "'");
}

/* Within single quotes csh replaces `!`, and fish takes a backslash away; what
 * is behind a backslash outside of them means the same to all. */
int quoting_any_shell(struct gpul_buf *out, const char *text)
{
    static const char special[] = "'\\!";
    int rc = text[0] == '\0' ? gpul_buf_append_text(out, "''") : 0;
    while (rc == 0 && *text != '\0') {
        size_t n = strcspn(text, special);
        rc = n > 0 ? gpul_buf_appendf(out, "'%.*s'", (int)n, text)
                   : gpul_buf_appendf(out, "\\%c", *text);
        text += n > 0 ? n : 1;
    }
    return rc;
}

int quoting_shell_words(struct gpul_buf *out, char *const *words, size_t count)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < count; i++) {
        gpul_buf_append_text(out, " ");
        rc = quoting_shell(out, words[i]);
    }
    return rc;
}

enum { CODEPOINT_MAX = 0x10FFFF };

/* The code point at `text` and its bytes; 0 bytes: this is not UTF-8. */
static size_t decode(uint32_t *code, const char *text)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *b = (const unsigned char *)text;
    if (b[0] < 0x80) {
        *code = b[0];
        return 1;
    }
    size_t n = (b[0] & 0xE0) == 0xC0   ? 2
               : (b[0] & 0xF0) == 0xE0 ? 3
               : (b[0] & 0xF8) == 0xF0 ? 4
                                       : 0;
    *code = n == 0 ? 0 : b[0] & (0x7Fu >> n);
    for (size_t i = 1; i < n; i++) {
        if ((b[i] & 0xC0) != 0x80) {
            return 0; /* the end, too */
        }
        *code = *code << 6 | (b[i] & 0x3Fu);
    }
    bool is_surrogate = *code >= 0xD800 && *code <= 0xDFFF;
    return n == 0 || *code < least[n] || *code > CODEPOINT_MAX || is_surrogate
               ? 0
               : n;
}

/* Those that every reader of YAML takes as they are. */
static bool is_plain_in_yaml(uint32_t code)
{
    return (code >= ' ' && code <= '~') ||
           (code >= 0xA1 && code <= 0xD7FF && code != 0x2028 &&
            code != 0x2029) ||
           (code >= 0xE000 && code <= 0xFFFD && code != 0xFEFF);
}

static void append_yaml(struct gpul_buf *out, uint32_t code, const char *bytes,
                        size_t n)
{
    if (code == '"' || code == '\\') {
        gpul_buf_appendf(out, "\\%c", (char)code);
    } else if (is_plain_in_yaml(code)) {
        gpul_buf_append(out, bytes, n);
    } else if (code == '\n') {
        gpul_buf_append_text(out, "\\n");
    } else if (code == '\t') {
        gpul_buf_append_text(out, "\\t");
    } else if (code <= 0xFF) {
        gpul_buf_appendf(out, "\\x%02" PRIX32, code);
    } else if (code <= 0xFFFF) {
        gpul_buf_appendf(out, "\\u%04" PRIX32, code);
    } else {
        gpul_buf_appendf(out, "\\U%08" PRIX32, code);
    }
}

/* Must this dollar be doubled, so that one is left? */
static bool is_doubled(const char *at, enum quoting_dollar dollar)
{
    return dollar == QUOTING_DOLLAR_COMPOSE ||
           (dollar == QUOTING_DOLLAR_KUBERNETES &&
            (at[1] == '$' || at[1] == '('));
}

int quoting_yaml(struct gpul_buf *out, const char *text,
                 enum quoting_dollar dollar, struct gpul_error *err)
{
    gpul_buf_append_text(out, "\"");
    for (const char *at = text; *at != '\0';) {
        uint32_t code;
        size_t n = decode(&code, at);
        if (n == 0) {
            return gpul_fail(err, GPUL_EINVAL,
                             "byte %zu of \"%.60s\" is not UTF-8, and YAML "
                             "holds nothing else; put what needs it into a "
                             "script",
                             (size_t)(at - text) + 1, text);
        }
        if (code == '$' && is_doubled(at, dollar)) {
            gpul_buf_append_text(out, "$");
        }
        append_yaml(out, code, at, n);
        at += n;
    }
    gpul_buf_append_text(out, "\"");
    return 0;
}

int quoting_hcl(struct gpul_buf *out, const char *text, struct gpul_error *err)
{
    gpul_buf_append_text(out, "\"");
    for (const char *at = text; *at != '\0'; at++) {
        if ((unsigned char)*at >= 0x7F) {
            return gpul_fail(err, GPUL_EINVAL,
                             "byte %zu of \"%.60s\" is not ASCII, and "
                             "Terraform would not keep it as it is",
                             (size_t)(at - text) + 1, text);
        }
        if (*at < ' ') {
            gpul_buf_appendf(out, "\\u%04X", (unsigned)*at);
        } else if (*at == '"' || *at == '\\') {
            gpul_buf_appendf(out, "\\%c", *at);
        } else {
            bool begins = (*at == '$' || *at == '%') && at[1] == '{';
            gpul_buf_append(out, at, 1);
            gpul_buf_append(out, at, begins ? 1 : 0);
        }
    }
    gpul_buf_append_text(out, "\"");
    return 0;
}
