/* SPDX-License-Identifier: Apache-2.0
 *
 * handshake_crowd COORDINATOR NODES AT_ONCE [plain]: so many nodes of one
 * process join one real coordinator, at most AT_ONCE of them in the handshake.
 * Prints: milliseconds until all were in, processor nanoseconds of the
 * coordinator for each, its memory in KiB before, with all, and at its peak,
 * and how many were turned away meanwhile.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "tests/lib/coordstage.h"

enum { LIMIT_MS = 60000, READY_MS = 20000 };

/* It listens once it has read the job; the first node in proves that. */
static bool is_first_in(const void *of)
{
    const struct coordstage *s = of;
    return s->welcome == 1 && s->joined == 1;
}

static void fail(const struct coordstage *s)
{
    fprintf(stderr, "handshake_crowd: only %" PRIu32 " nodes came in: %s\n",
            s->welcome, s->nodes[0].why);
    exit(1);
}

int main(int argc, char **argv)
{
    if (argc < 4) {
        fprintf(stderr,
                "usage: handshake_crowd COORDINATOR NODES AT_ONCE [plain]\n");
        return 2;
    }
    struct coordstage s;
    struct coordstage_config config = {
        .program = argv[1],
        .address = "127.0.0.1",
        .log = "/dev/null",
        .node_count = (uint32_t)strtoul(argv[2], NULL, 10),
        .is_insecure = argc > 4 && strcmp(argv[4], "plain") == 0,
    };
    coordstage_open(&s, &config);
    coordstage_dial(&s, &s.nodes[s.next++]);
    if (!coordstage_until(&s, is_first_in, &s, READY_MS)) {
        fail(&s);
    }
    uint64_t before_kib = coordstage_memory_kib(&s, "VmRSS");
    uint64_t processor_ns = coordstage_processor_ns(&s);
    uint64_t start_ms = gpul_clock_ms();
    if (!coordstage_join(&s, (uint32_t)strtoul(argv[3], NULL, 10), LIMIT_MS)) {
        fail(&s);
    }
    uint64_t elapsed_ms = gpul_clock_ms() - start_ms;
    processor_ns = coordstage_processor_ns(&s) - processor_ns;
    printf("%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64
           " %" PRIu32 "\n",
           elapsed_ms, processor_ns / s.node_count, before_kib,
           coordstage_memory_kib(&s, "VmRSS"),
           coordstage_memory_kib(&s, "VmHWM"), s.turned_away);
    coordstage_close(&s);
    return 0;
}
