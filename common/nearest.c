/* SPDX-License-Identifier: Apache-2.0 */
#include "common/nearest.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { WORD_BYTES_MAX = 63, PREFIX_BYTES_MIN = 3 };

static size_t min2(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Optimal string alignment, three rows of the table at a time; both words
 * have at most WORD_BYTES_MAX bytes. */
static size_t edit_distance(const char *a, const char *b)
{
    size_t table[3][WORD_BYTES_MAX + 1];
    size_t *two_up = table[0];
    size_t *up = table[1];
    size_t *row = table[2];
    size_t columns = strlen(b);
    for (size_t j = 0; j <= columns; j++) {
        up[j] = j;
    }
    for (size_t i = 1; a[i - 1] != 0; i++) {
        row[0] = i;
        for (size_t j = 1; j <= columns; j++) {
            size_t replace = up[j - 1] + (a[i - 1] != b[j - 1]);
            row[j] = min2(replace, 1 + min2(up[j], row[j - 1]));
            bool is_swap =
                i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            if (is_swap) {
                row[j] = min2(row[j], two_up[j - 2] + 1);
            }
        }
        size_t *oldest = two_up;
        two_up = up;
        up = row;
        row = oldest;
    }
    return up[columns];
}

const char *gpul_nearest(const char *word, const char *const *candidates,
                         size_t count)
{
    size_t n = strlen(word);
    const char *nearest = NULL;
    const char *continued = NULL;
    size_t least = SIZE_MAX;
    if (n == 0 || n > WORD_BYTES_MAX) {
        return NULL;
    }
    for (size_t i = 0; i < count; i++) {
        size_t bytes = strlen(candidates[i]);
        if (bytes > WORD_BYTES_MAX) {
            continue;
        }
        size_t distance = edit_distance(word, candidates[i]);
        size_t longer = n > bytes ? n : bytes;
        if (distance * 3 <= longer && distance < least) {
            least = distance;
            nearest = candidates[i];
        }
        if (continued == NULL && n >= PREFIX_BYTES_MIN &&
            strncmp(candidates[i], word, n) == 0) {
            continued = candidates[i];
        }
    }
    return nearest != NULL ? nearest : continued;
}
