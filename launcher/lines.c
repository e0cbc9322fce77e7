/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/lines.h"

#include "common/error.h"

void lines_init(struct lines *l)
{
    *l = (struct lines){0};
    gpul_buf_init(&l->held, LINES_HELD_BYTES_MAX);
}

void lines_release(struct lines *l)
{
    gpul_buf_release(&l->held);
}

/* One whole line: what was held, and the n bytes that complete it. */
static void put_line(struct lines *l, struct gpul_buf *out, const char *label,
                     const uint8_t *bytes, size_t n)
{
    gpul_buf_append_text(out, label);
    gpul_buf_append(out, l->held.data, l->held.used);
    gpul_buf_append(out, bytes, n);
    gpul_buf_append(out, "\n", 1);
    gpul_buf_clear(&l->held);
}

static void end_at_newline(struct lines *l, struct gpul_buf *out,
                           const char *label, const uint8_t *bytes, size_t n)
{
    bool is_rest_of_crlf =
        l->is_after_cr && l->has_printed_at_cr && n == 0 && l->held.used == 0;
    l->is_after_cr = false;
    if (!is_rest_of_crlf) {
        put_line(l, out, label, bytes, n);
    }
}

/* An empty line that ends in CR is how most progress bars begin theirs. */
static void end_at_return(struct lines *l, struct gpul_buf *out,
                          const char *label, const uint8_t *bytes, size_t n)
{
    l->is_after_cr = true;
    l->has_printed_at_cr = l->held.used + n > 0;
    if (l->has_printed_at_cr) {
        put_line(l, out, label, bytes, n);
    }
}

static int hold(struct lines *l, struct gpul_buf *out, const char *label,
                const uint8_t *bytes, size_t n)
{
    if (n == 0) {
        return 0;
    }
    l->is_after_cr = false;
    while (l->held.used + n > LINES_HELD_BYTES_MAX) {
        size_t fits = LINES_HELD_BYTES_MAX - l->held.used;
        put_line(l, out, label, bytes, fits);
        bytes += fits;
        n -= fits;
    }
    return gpul_buf_append(&l->held, bytes, n);
}

int lines_feed(struct lines *l, struct gpul_buf *out, const char *label,
               const uint8_t *bytes, size_t n)
{
    size_t start = 0;
    for (size_t i = 0; i < n; i++) {
        if (bytes[i] == '\n') {
            end_at_newline(l, out, label, bytes + start, i - start);
        } else if (bytes[i] == '\r') {
            end_at_return(l, out, label, bytes + start, i - start);
        } else {
            continue;
        }
        start = i + 1;
    }
    int rc = hold(l, out, label, bytes + start, n - start);
    return out->is_failed ? GPUL_ELIMIT : rc;
}

int lines_finish(struct lines *l, struct gpul_buf *out, const char *label)
{
    l->is_after_cr = false;
    if (l->held.used > 0) {
        put_line(l, out, label, NULL, 0);
    }
    return out->is_failed ? GPUL_ELIMIT : 0;
}
