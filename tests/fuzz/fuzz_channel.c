/* SPDX-License-Identifier: Apache-2.0
 *
 * A channel that is fed with bytes of a stranger: it never opens, gives no
 * byte of frames, holds little before TLS begins, and is the same stranger
 * however the bytes are cut. And a handshake between honest ends with some
 * bytes changed on the way: what comes out is what was sent, or its beginning.
 *
 * Input: 1 byte mode; then, for a stranger, 1 byte size of a piece and the
 * bytes; for a wire, groups of 4 bytes: flight, place (2), what to change.
 */
#include <stdbool.h>
#include <string.h>

#include "proto/channel.h"
#include "tests/lib/fuzz.h"
#include "tests/lib/memory.h"

enum { STRANGER_AT_SERVER, STRANGER_AT_CLIENT, WIRE, MODES, FLIGHTS = 6 };

/* More than a gathered record and the channel itself. */
enum { STRANGER_MEMORY_MAX = 4096 };

static const char sent[] = "what the node says to the coordinator";
static struct gpul_keyring *job, *node;

static void make_keyrings(void)
{
    struct gpul_secret secret = {"a secret that a fuzzer may know"};
    struct gpul_key key;
    if (job == NULL) {
        FUZZ_CHECK(gpul_keyring_of_job(&job, &secret, "j", NULL) == 0);
        FUZZ_CHECK(gpul_key_of_node(&key, &secret, "j", "n", NULL) == 0);
        FUZZ_CHECK(gpul_keyring_of_node(&node, &key, "j", "n", NULL) == 0);
    }
}

static struct gpul_channel *make(const struct gpul_keyring *keyring)
{
    struct gpul_channel *c;
    FUZZ_CHECK(gpul_channel_create(&c, keyring, NULL) == 0);
    return c;
}

/* What a channel says at the end of a stream of a stranger. */
static enum gpul_stranger run_stranger(const struct gpul_keyring *keyring,
                                       const uint8_t *bytes, size_t n,
                                       size_t piece)
{
    struct gpul_channel *c = make(keyring);
    uint8_t room[512];
    size_t output;
    int rc = 0;
    for (size_t at = 0; at < n && rc == 0; at += piece) {
        gpul_channel_put(c, bytes + at, piece < n - at ? piece : n - at);
        rc = gpul_channel_get(c, room, sizeof(room), NULL);
        FUZZ_CHECK(rc <= 0);
        gpul_channel_output(c, &output);
        FUZZ_CHECK(output <= 4096);
    }
    FUZZ_CHECK(!gpul_channel_is_open(c));
    enum gpul_stranger kind = gpul_channel_stranger(c);
    FUZZ_CHECK((rc != 0) == (kind != GPUL_STRANGER_CLOSED));
    gpul_channel_destroy(c);
    return kind;
}

static void check_stranger(const struct gpul_keyring *keyring,
                           const uint8_t *data, size_t n)
{
    size_t piece = data[0] + 1u;
    memory_watch();
    enum gpul_stranger cut = run_stranger(keyring, data + 1, n - 1, piece);
    FUZZ_CHECK(!gpul_keyring_is_server(keyring) ||
               memory_peak() <= STRANGER_MEMORY_MAX + GPUL_STRANGER_BYTES_MAX);
    FUZZ_CHECK(memory_held() == 0);
    FUZZ_CHECK(run_stranger(keyring, data + 1, n - 1, n) == cut);
}

/* Change what is meant for this flight. */
static void change(uint8_t *bytes, size_t n, unsigned flight,
                   const uint8_t *data, size_t size)
{
    for (size_t i = 0; i + 4 <= size && n > 0; i += 4) {
        if (data[i] % FLIGHTS == flight) {
            bytes[((size_t)data[i + 1] << 8 | data[i + 2]) % n] ^= data[i + 3];
        }
    }
}

static int carry(struct gpul_channel *from, struct gpul_channel *to,
                 uint8_t *room, size_t room_bytes, unsigned flight,
                 const uint8_t *data, size_t size)
{
    uint8_t wire[4096];
    size_t n;
    const uint8_t *bytes = gpul_channel_output(from, &n);
    FUZZ_CHECK(n <= sizeof(wire));
    if (n > 0) {
        memcpy(wire, bytes, n);
    }
    gpul_channel_clear_output(from);
    change(wire, n, flight, data, size);
    gpul_channel_put(to, wire, n);
    size_t used = 0;
    int rc;
    while ((rc = gpul_channel_get(to, room + used, room_bytes - used, NULL)) >
           0) {
        used += (size_t)rc;
        FUZZ_CHECK(used < room_bytes);
    }
    return (int)used;
}

static void check_wire(const uint8_t *data, size_t size)
{
    struct gpul_channel *client = make(node), *server = make(job);
    uint8_t got[256];
    size_t used = 0;
    (void)gpul_channel_send(client, (const uint8_t *)sent, sizeof(sent), NULL);
    for (unsigned flight = 0; flight < FLIGHTS; flight++) {
        bool is_answer = flight % 2 == 1;
        int n = carry(is_answer ? server : client, is_answer ? client : server,
                      got + used, sizeof(got) - used, flight, data, size);
        FUZZ_CHECK(!is_answer || n == 0);
        used += (size_t)n;
    }
    FUZZ_CHECK(used <= sizeof(sent) && memcmp(got, sent, used) == 0);
    FUZZ_CHECK(used == 0 || gpul_channel_is_open(server));
    gpul_channel_destroy(client);
    gpul_channel_destroy(server);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    make_keyrings();
    if (n < 3) {
        return 0;
    }
    switch (data[0] % MODES) {
    case STRANGER_AT_SERVER:
        check_stranger(job, data + 1, n - 1);
        break;
    case STRANGER_AT_CLIENT:
        check_stranger(node, data + 1, n - 1);
        break;
    default:
        check_wire(data + 1, n - 1);
    }
    return 0;
}
