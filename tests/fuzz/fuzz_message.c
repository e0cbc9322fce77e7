/* SPDX-License-Identifier: Apache-2.0
 *
 * Decoding any bytes as any peer stays within the budget and leaves nothing
 * behind; and what decodes has one meaning: encoded again it decodes again,
 * to the same bytes.
 *
 * Input: 1 byte sender, the frame body.
 */
#include <string.h>

#include "proto/limits.h"
#include "proto/message.h"
#include "tests/lib/fuzz.h"
#include "tests/lib/memory.h"

enum { PEER_COUNT = 6 };

/* The block that holds the frame, and what malloc rounds up. */
#define SLACK_BYTES (16u << 10)

static void encode(struct gpul_buf *out, const Gpul__Frame *frame)
{
    gpul_buf_init(out, GPUL_FRAME_PREFIX_BYTES + GPUL_JOB_BYTES_MAX);
    FUZZ_CHECK(gpul_message_encode(out, frame, NULL) == 0);
}

static void check_meaning(const Gpul__Frame *frame, enum gpul_peer from)
{
    struct gpul_buf first, second;
    encode(&first, frame);
    Gpul__Frame *again;
    FUZZ_CHECK(gpul_message_decode(&again, first.data + GPUL_FRAME_PREFIX_BYTES,
                                   first.used - GPUL_FRAME_PREFIX_BYTES, from,
                                   NULL) == 0);
    encode(&second, again);
    FUZZ_CHECK(first.used == second.used);
    FUZZ_CHECK(memcmp(first.data, second.data, first.used) == 0);
    gpul_message_release(again);
    gpul_buf_release(&second);
    gpul_buf_release(&first);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (n < 1) {
        return 0;
    }
    enum gpul_peer from = (enum gpul_peer)(1u << (data[0] % PEER_COUNT));
    data++;
    n--;
    memory_watch();
    Gpul__Frame *frame;
    struct gpul_error err = {0};
    int rc = gpul_message_decode(&frame, data, n, from, &err);
    FUZZ_CHECK(memory_peak() <= GPUL_DECODE_BUDGET_FACTOR * n +
                                    GPUL_DECODE_BUDGET_BYTES + SLACK_BYTES);
    FUZZ_CHECK((rc == 0) == (frame != NULL));
    FUZZ_CHECK(rc == err.status);
    if (rc == 0) {
        check_meaning(frame, from);
        gpul_message_release(frame);
    } else {
        FUZZ_CHECK(err.text[0] != 0);
    }
    FUZZ_CHECK(memory_held() == 0);
    return 0;
}
