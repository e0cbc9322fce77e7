/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/table.h"

#include <inttypes.h>
#include <stdio.h>

#include "common/error.h"

enum { NUMBER_BYTES = 32 };

/* Eight columns: as many digits after the point as fit. */
static const char *microseconds(char *text, uint64_t ns)
{
    double us = (double)ns / 1e3;
    int digits = us < 1e3 ? 2 : us < 1e6 ? 1 : 0;
    snprintf(text, NUMBER_BYTES, "%.*f", digits, us);
    return text;
}

static const char *bandwidth(char *text, double gbps)
{
    int digits = gbps < 100 ? 2 : gbps < 1000 ? 1 : 0;
    snprintf(text, NUMBER_BYTES, "%.*f", digits, gbps);
    return text;
}

static void append_full(struct gpul_buf *out, const Gpul__SelfTestRow *r)
{
    char time[NUMBER_BYTES], min[NUMBER_BYTES], max[NUMBER_BYTES];
    char algbw[NUMBER_BYTES], busbw[NUMBER_BYTES];
    gpul_buf_appendf(out,
                     "%9" PRIu64 " %8" PRIu64 " %5s %5s %8s %8s %8s %6s %6s "
                     "%6" PRIu64 "\n",
                     r->bytes, r->count, "float", "sum",
                     microseconds(time, r->median_ns),
                     microseconds(min, r->min_ns), microseconds(max, r->max_ns),
                     bandwidth(algbw, r->algbw_gbps),
                     bandwidth(busbw, r->busbw_gbps), r->wrong_elements);
}

static void append_narrow(struct gpul_buf *out, const Gpul__SelfTestRow *r)
{
    char time[NUMBER_BYTES], busbw[NUMBER_BYTES];
    gpul_buf_appendf(out, "%9" PRIu64 " %10s %7s %6" PRIu64 "\n", r->bytes,
                     microseconds(time, r->median_ns),
                     bandwidth(busbw, r->busbw_gbps), r->wrong_elements);
}

int table_self_test(struct gpul_buf *out, Gpul__SelfTestRow *const *rows,
                    size_t count, uint32_t node_count, size_t width)
{
    bool is_full = width >= TABLE_WIDTH_FULL;
    gpul_buf_appendf(out, "# all-reduce, %" PRIu32 " nodes, slowest rank\n",
                     node_count);
    if (is_full) {
        gpul_buf_appendf(out, "%9s %8s %5s %5s %8s %8s %8s %6s %6s %6s\n",
                         "#    size", "count", "type", "redop", "time", "min",
                         "max", "algbw", "busbw", "#wrong");
        gpul_buf_appendf(out, "%9s %8s %5s %5s %8s %8s %8s %6s %6s %6s\n",
                         "#     (B)", "(elem)", "", "", "(us)", "(us)", "(us)",
                         "(GB/s)", "(GB/s)", "");
    } else {
        gpul_buf_appendf(out, "%9s %10s %7s %6s\n", "#    size", "time",
                         "busbw", "#wrong");
        gpul_buf_appendf(out, "%9s %10s %7s\n", "#     (B)", "(us)", "(GB/s)");
    }
    for (size_t i = 0; i < count; i++) {
        if (is_full)
            append_full(out, rows[i]);
        else
            append_narrow(out, rows[i]);
    }
    return out->is_failed ? GPUL_ELIMIT : 0;
}
