/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/metricline.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/rankset.h"
#include "common/stats.h"
#include "proto/limits.h"

enum { DECIMAL = 10, RANKS_TEXT_BYTES = 200 };

static const char blanks[] = " \t";

bool metricline_label(uint32_t *rank, const char **rest, const char *line)
{
    if (line[0] != '[' || line[1] < '0' || line[1] > '9') {
        return false;
    }
    char *end;
    unsigned long value = strtoul(line + 1, &end, DECIMAL);
    if (value >= GPUL_RANKS_MAX || end[0] != ']') {
        return false;
    }
    *rank = (uint32_t)value;
    *rest = end + 1 + (end[1] == ' ');
    return true;
}

bool metricline_number(double *value, const char **rest, const char *text)
{
    char *end;
    text += strspn(text, blanks);
    bool is_number = strchr("0123456789.", text[0]) != NULL && text[0] != '\0';
    *value = is_number ? strtod(text, &end) : 0;
    if (!is_number || end == text || !isfinite(*value)) {
        return false;
    }
    if (rest != NULL) {
        *rest = end + strspn(end, blanks);
    }
    return true;
}

/* A rank told those from `first` to before `last`. */
static double settle_rank(const struct metricline_figure *figures, size_t first,
                          size_t last, double *values)
{
    double median = 0;
    if (last - first >= METRICLINE_WARM_MIN) {
        first++;
    }
    for (size_t i = first; i < last; i++) {
        values[i - first] = figures[i].value;
    }
    gpul_median(&median, values, last - first);
    return median;
}

/* In order by rank, and of one rank as they came: merge sort, since qsort
 * keeps no order of equals. */
static void sort(struct metricline_figure *figures,
                 struct metricline_figure *spare, size_t count)
{
    for (size_t width = 1; width < count; width *= 2) {
        for (size_t low = 0; low < count; low += 2 * width) {
            size_t middle = low + width < count ? low + width : count;
            size_t high = middle + width < count ? middle + width : count;
            size_t a = low, b = middle;
            for (size_t at = low; at < high; at++) {
                bool takes_a = a < middle && (b >= high || figures[a].rank <=
                                                               figures[b].rank);
                spare[at] = takes_a ? figures[a++] : figures[b++];
            }
        }
        memcpy(figures, spare, count * sizeof(*figures));
    }
}

int metricline_settle(struct metricline_figure *figures, size_t count)
{
    struct metricline_figure *spare = calloc(count + 1, sizeof(*spare));
    double *values = calloc(count + 1, sizeof(*values));
    int ranks = spare != NULL && values != NULL ? 0 : GPUL_ENOMEM;
    if (ranks == 0) {
        sort(figures, spare, count);
    }
    for (size_t first = 0, last = 0; ranks >= 0 && first < count;
         first = last) {
        while (last < count && figures[last].rank == figures[first].rank) {
            last++;
        }
        double median = settle_rank(figures, first, last, values);
        figures[ranks++] =
            (struct metricline_figure){figures[first].rank, median};
    }
    free(spare);
    free(values);
    return ranks;
}

static int refuse(const struct metricline_figure *figures, size_t count,
                  uint32_t ranks, struct gpul_error *err)
{
    struct gpul_rankset told;
    struct gpul_buf text;
    gpul_rankset_init(&told);
    gpul_buf_init(&text, RANKS_TEXT_BYTES);
    for (size_t i = 0; i < count; i++) {
        gpul_rankset_add(&told, figures[i].rank, figures[i].rank);
    }
    gpul_rankset_format(&text, &told);
    const char *who = text.is_failed ? NULL : gpul_buf_text(&text);
    int rc = gpul_fail(err, GPUL_EINVAL,
                       "%zu of %" PRIu32
                       " ranks told a figure (%s): is it their own, or that "
                       "of the whole job? --metric-of rank or --metric-of job",
                       count, ranks, who != NULL ? who : "too many to list");
    gpul_rankset_release(&told);
    gpul_buf_release(&text);
    return rc;
}

int metricline_sum(struct metricline_total *total,
                   const struct metricline_figure *figures, size_t count,
                   uint32_t ranks, enum scaleplan_figures whose,
                   struct gpul_error *err)
{
    if (whose == SCALEPLAN_FIGURES_AUTO && count != 1 && count != ranks) {
        return refuse(figures, count, ranks, err);
    }
    size_t least = 0;
    double sum = 0;
    for (size_t i = 0; i < count; i++) {
        sum += figures[i].value;
        least = figures[i].value < figures[least].value ? i : least;
    }
    total->is_job =
        whose == SCALEPLAN_FIGURES_JOB ||
        (whose == SCALEPLAN_FIGURES_AUTO && count == 1 && ranks > 1);
    total->value = total->is_job ? figures[least].value : sum;
    total->slowest = figures[least].rank;
    return 0;
}
