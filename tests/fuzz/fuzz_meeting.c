/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes either are what a task of srun leaves for the others, which means
 * the same when it is written again, or are refused and leave nothing.
 *
 * Input: the file.
 */
#include <stdlib.h>
#include <string.h>

#include "launcher/meeting.h"
#include "tests/lib/fuzz.h"

static void check_again(const struct meeting *m)
{
    struct gpul_buf text;
    struct meeting again;
    gpul_buf_init(&text, MEETING_BYTES_MAX);
    FUZZ_CHECK(m->count > 0 && m->count <= GPUL_COORDINATORS_MAX);
    FUZZ_CHECK(meeting_format(&text, m) == 0);
    FUZZ_CHECK(meeting_parse(&again, (char *)text.data, text.used, NULL) == 0);
    FUZZ_CHECK(memcmp(&again, m, sizeof(again)) == 0);
    gpul_buf_release(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static const struct meeting nothing;
    struct meeting m;
    struct gpul_error err = {0};
    char *text = malloc(n > 0 ? n : 1);
    FUZZ_CHECK(text != NULL);
    if (n > 0) {
        memcpy(text, data, n);
    }
    int rc = meeting_parse(&m, text, n, &err);
    FUZZ_CHECK((rc == 0) == (err.text[0] == '\0'));
    if (rc == 0) {
        check_again(&m);
    } else {
        FUZZ_CHECK(memcmp(&m, &nothing, sizeof(m)) == 0);
    }
    free(text);
    return 0;
}
