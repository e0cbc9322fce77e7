/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/lib/channelpair.h"

#include <string.h>

#include <cmocka.h>

struct gpul_secret pair_secret(uint8_t fill)
{
    struct gpul_secret s;
    memset(&s, fill, sizeof(s));
    s.bytes[GPUL_SECRET_BYTES - 1] = 0x5a;
    return s;
}

void pair_init(struct pair *p, uint8_t fill, const char *job_id,
               const char *node_name)
{
    struct gpul_secret theirs = pair_secret(fill), ours = pair_secret(1);
    struct gpul_key key;
    *p = (struct pair){0};
    assert_int_equal(gpul_key_of_node(&key, &theirs, job_id, node_name, NULL),
                     0);
    assert_int_equal(
        gpul_keyring_of_node(&p->keyrings[0], &key, job_id, node_name, NULL),
        0);
    assert_int_equal(
        gpul_keyring_of_job(&p->keyrings[1], &ours, PAIR_JOB, NULL), 0);
    gpul_buf_init(&p->client.inbox, PAIR_INBOX_BYTES_MAX);
    gpul_buf_init(&p->server.inbox, PAIR_INBOX_BYTES_MAX);
    assert_int_equal(
        gpul_channel_create(&p->client.channel, p->keyrings[0], NULL), 0);
    assert_int_equal(
        gpul_channel_create(&p->server.channel, p->keyrings[1], NULL), 0);
}

void pair_release(struct pair *p)
{
    gpul_channel_destroy(p->client.channel);
    gpul_channel_destroy(p->server.channel);
    gpul_keyring_destroy(p->keyrings[0]);
    gpul_keyring_destroy(p->keyrings[1]);
    gpul_buf_release(&p->client.inbox);
    gpul_buf_release(&p->server.inbox);
}

static void put_piece(struct pair_end *to, const uint8_t *bytes, size_t n)
{
    uint8_t room[5000]; /* no divisor of a record's size */
    int rc;
    gpul_channel_put(to->channel, bytes, n);
    while ((rc = gpul_channel_get(to->channel, room, sizeof(room), &to->why)) >
           0) {
        assert_int_equal(gpul_buf_append(&to->inbox, room, (size_t)rc), 0);
    }
    assert_int_equal(rc, to->why.status);
}

void pair_put(struct pair_end *to, const uint8_t *bytes, size_t n, size_t piece)
{
    while (n > 0) {
        size_t now = piece == 0 || piece > n ? n : piece;
        put_piece(to, bytes, now);
        bytes += now;
        n -= now;
    }
}

void pair_take(struct gpul_buf *out, struct pair_end *from)
{
    size_t n;
    const uint8_t *bytes = gpul_channel_output(from->channel, &n);
    gpul_buf_init(out, PAIR_INBOX_BYTES_MAX);
    assert_int_equal(gpul_buf_append(out, bytes, n), 0);
    gpul_channel_clear_output(from->channel);
}

size_t pair_carry(struct pair *p, struct pair_end *from, struct pair_end *to)
{
    struct gpul_buf bytes;
    pair_take(&bytes, from);
    size_t n = bytes.used;
    pair_put(to, bytes.data, n, p->piece);
    gpul_buf_release(&bytes);
    return n;
}

void pair_run(struct pair *p)
{
    while (pair_carry(p, &p->client, &p->server) +
               pair_carry(p, &p->server, &p->client) >
           0) {
    }
}
