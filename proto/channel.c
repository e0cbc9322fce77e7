/* SPDX-License-Identifier: Apache-2.0
 *
 * Happy path of a server: put -> the ClientHello is gathered -> a TLS object
 * reads it, then the rest -> handshake -> open -> plain bytes. A client has
 * the object from the start.
 *
 * OpenSSL reads and writes through a BIO of ours instead of its memory BIO:
 * it reads the caller's bytes where they lie, and what it writes is freed as
 * soon as it was taken, so that an idle channel holds no buffer.
 */
#include "proto/channel.h"

#include <assert.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdlib.h>
#include <string.h>

#include "common/buf.h"
#include "proto/openssl.h"

/* All that may wait, in records, and the handshake. */
#define OUTPUT_BYTES_MAX (GPUL_SEND_QUEUE_BYTES_MAX + (1u << 20))

struct gpul_channel {
    const struct gpul_keyring *keyring;
    SSL *ssl; /* NULL: the first record is not complete */
    struct gpul_claim claim;
    struct gpul_buf first; /* the ClientHello, until it was read */
    const uint8_t *input;  /* borrowed */
    size_t input_bytes;
    size_t strange_bytes; /* read before it was open */
    struct gpul_buf waiting;
    struct gpul_buf output;
    enum gpul_stranger stranger;
    bool is_open;
    struct gpul_error why; /* status 0: it stands */
};

/* ---- OpenSSL's ends ----------------------------------------------------- */

static int take_first(struct gpul_channel *c, char *room, size_t n)
{
    n = n < c->first.used ? n : c->first.used;
    memcpy(room, c->first.data, n);
    gpul_buf_consume(&c->first, n);
    if (c->first.used == 0) {
        gpul_buf_release(&c->first);
    }
    return (int)n;
}

static int take_input(struct gpul_channel *c, char *room, size_t n)
{
    n = n < c->input_bytes ? n : c->input_bytes;
    memcpy(room, c->input, n);
    c->input += n;
    c->input_bytes -= n;
    return (int)n;
}

static int bio_read(BIO *bio, char *room, int n)
{
    struct gpul_channel *c = BIO_get_data(bio);
    size_t most = (size_t)n;
    BIO_clear_retry_flags(bio);
    if (n <= 0 || (c->first.used == 0 && c->input_bytes == 0)) {
        BIO_set_retry_read(bio);
        return -1;
    }
    if (!c->is_open) {
        size_t left = GPUL_STRANGER_BYTES_MAX - c->strange_bytes;
        most = most < left ? most : left;
        if (most == 0) {
            c->stranger = GPUL_STRANGER_LARGE;
            return -1;
        }
    }
    int taken = c->first.used > 0 ? take_first(c, room, most)
                                  : take_input(c, room, most);
    c->strange_bytes += c->is_open ? 0 : (size_t)taken;
    return taken;
}

static int bio_write(BIO *bio, const char *bytes, int n)
{
    struct gpul_channel *c = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    if (n <= 0 || gpul_buf_append(&c->output, bytes, (size_t)n) != 0) {
        return -1;
    }
    return n;
}

static long bio_ctrl(BIO *bio, int command, long number, void *pointer)
{
    (void)bio;
    (void)number;
    (void)pointer;
    return command == BIO_CTRL_FLUSH; /* nothing else is asked of us */
}

/* Made once for the process, and never freed. */
static BIO_METHOD *bio_method(void)
{
    static BIO_METHOD *made;
    if (made == NULL) {
        made = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "gpulaunch channel");
        if (made != NULL) {
            BIO_meth_set_read(made, bio_read);
            BIO_meth_set_write(made, bio_write);
            BIO_meth_set_ctrl(made, bio_ctrl);
        }
    }
    return made;
}

static int begin_tls(struct gpul_channel *c)
{
    BIO_METHOD *method = bio_method();
    BIO *bio = method == NULL ? NULL : BIO_new(method);
    c->ssl = bio == NULL ? NULL : gpul_keyring_begin(c->keyring, &c->claim);
    if (c->ssl == NULL) {
        BIO_free(bio);
        return gpul_fail(&c->why, GPUL_ENOMEM, "no memory for TLS");
    }
    BIO_set_data(bio, c);
    BIO_set_init(bio, 1);
    SSL_set_bio(c->ssl, bio, bio);
    return 0;
}

/* ---- failures ----------------------------------------------------------- */

static enum gpul_stranger kind_of_fault(const struct gpul_channel *c,
                                        int reason)
{
    if (c->stranger != GPUL_STRANGER_NONE) {
        return c->stranger;
    }
    if (c->claim.fault != GPUL_STRANGER_NONE) {
        return c->claim.fault;
    }
    switch (reason) {
    case SSL_R_BINDER_DOES_NOT_VERIFY:
    case SSL_R_TLSV1_ALERT_DECRYPT_ERROR:
    case SSL_R_SSLV3_ALERT_ILLEGAL_PARAMETER: /* OpenSSL's for a binder */
        return GPUL_STRANGER_WRONG_KEY;
    case SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE:
        return GPUL_STRANGER_OTHER_JOB;
    case SSL_R_UNSUPPORTED_PROTOCOL:
    case SSL_R_TLSV1_ALERT_PROTOCOL_VERSION:
        return GPUL_STRANGER_OLD_TLS;
    case SSL_R_WRONG_VERSION_NUMBER:
        return GPUL_STRANGER_GARBAGE;
    case SSL_R_NO_SHARED_CIPHER:
    case SSL_R_NO_SUITABLE_SIGNATURE_ALGORITHM:
    case SSL_R_CERTIFICATE_VERIFY_FAILED:
        return GPUL_STRANGER_NO_KEY;
    default:
        return GPUL_STRANGER_BROKEN;
    }
}

/* The sentence of a server, for the user whose node it may be. */
static int say_to_server(struct gpul_channel *c, int status)
{
    if (c->stranger == GPUL_STRANGER_WRONG_KEY) {
        return gpul_fail(&c->why, status,
                         "a node that calls itself %s of this job showed a "
                         "wrong secret: is its --secret-file the job's own?",
                         c->claim.node_name);
    }
    return gpul_fail(&c->why, status, "the peer is no node of this job: %s",
                     gpul_stranger_words(c->stranger));
}

static int say_to_client(struct gpul_channel *c, int status)
{
    switch (c->stranger) {
    case GPUL_STRANGER_WRONG_KEY:
        return gpul_fail(&c->why, status,
                         "the coordinator refused this node's key: is its "
                         "--secret-file the job's own?");
    case GPUL_STRANGER_OTHER_JOB:
        return gpul_fail(&c->why, status,
                         "the coordinator refused this node: it serves "
                         "another job, or is no gpulaunch");
    case GPUL_STRANGER_GARBAGE:
        return gpul_fail(&c->why, status,
                         "what answers there does not speak TLS: is it the "
                         "coordinator, and not started with --insecure?");
    case GPUL_STRANGER_NO_KEY:
        return gpul_fail(&c->why, status,
                         "what answers there does not have this job's key");
    default:
        return gpul_fail(&c->why, status, "the coordinator sent %s",
                         gpul_stranger_words(c->stranger));
    }
}

static int say(struct gpul_channel *c)
{
    int status = c->stranger == GPUL_STRANGER_LARGE ? GPUL_ELIMIT : GPUL_EPROTO;
    gpul_buf_release(&c->first);
    c->input_bytes = 0;
    return gpul_keyring_is_server(c->keyring) ? say_to_server(c, status)
                                              : say_to_client(c, status);
}

/* OpenSSL has failed: why is in its queue. */
static int fail_tls(struct gpul_channel *c)
{
    unsigned long first = ERR_peek_error();
    int reason = ERR_GET_REASON(first);
    if (gpul_openssl_is_short() || c->output.is_failed) {
        return gpul_fail(&c->why, GPUL_ENOMEM, "TLS: out of memory");
    }
    if (c->is_open) {
        const char *text = ERR_reason_error_string(first);
        return gpul_fail(&c->why, GPUL_EPROTO, "TLS: %s",
                         text != NULL ? text : "broken");
    }
    c->stranger = kind_of_fault(c, reason);
    return say(c);
}

static int report(const struct gpul_channel *c, struct gpul_error *err)
{
    return c->why.status == 0
               ? 0
               : gpul_fail(err, c->why.status, "%s", c->why.text);
}

/* ---- the handshake ------------------------------------------------------ */

/* Gather the first record. Returns 1 when it is whole, 0 while it is not. */
static int gather(struct gpul_channel *c)
{
    int size;
    while ((size = gpul_opening_judge(&c->stranger, c->first.data,
                                      c->first.used)) >= 0) {
        size_t want = size > 0 ? (size_t)size : GPUL_OPENING_BYTES;
        /* Its handshake header is judged as soon as it is here. */
        if (size > 0 && c->first.used < GPUL_OPENING_BYTES + 4) {
            want = GPUL_OPENING_BYTES + 4;
        }
        if (size > 0 && c->first.used == (size_t)size) {
            return 1;
        }
        size_t n = want - c->first.used;
        n = n < c->input_bytes ? n : c->input_bytes;
        if (n == 0) {
            return 0;
        }
        if (gpul_buf_append(&c->first, c->input, n) != 0) {
            return gpul_fail(&c->why, GPUL_ENOMEM, "no memory for a peer");
        }
        c->input += n;
        c->input_bytes -= n;
    }
    return say(c);
}

static int encrypt(struct gpul_channel *c, const uint8_t *bytes, size_t n)
{
    size_t written;
    ERR_clear_error();
    return n == 0 || SSL_write_ex(c->ssl, bytes, n, &written) == 1
               ? 0
               : fail_tls(c);
}

static int open_up(struct gpul_channel *c)
{
    /* A handshake without the key has no way to end; if it had, not here. */
    if (SSL_session_reused(c->ssl) != 1) {
        c->stranger = GPUL_STRANGER_NO_KEY;
        return say(c);
    }
    c->is_open = true;
    int rc = encrypt(c, c->waiting.data, c->waiting.used);
    gpul_buf_release(&c->waiting);
    return rc;
}

static int shake_hands(struct gpul_channel *c)
{
    if (c->ssl == NULL) {
        int rc = gather(c);
        if (rc <= 0 || (rc = begin_tls(c)) != 0) {
            return rc;
        }
    }
    ERR_clear_error();
    int rc = SSL_do_handshake(c->ssl);
    if (rc == 1) {
        return open_up(c);
    }
    return SSL_get_error(c->ssl, rc) == SSL_ERROR_WANT_READ ? 0 : fail_tls(c);
}

/* ---- the bytes ---------------------------------------------------------- */

int gpul_channel_create(struct gpul_channel **out,
                        const struct gpul_keyring *keyring,
                        struct gpul_error *err)
{
    *out = NULL;
    struct gpul_channel *c = calloc(1, sizeof(*c));
    if (c == NULL) {
        return gpul_fail(err, GPUL_ENOMEM, "no memory for a channel");
    }
    c->keyring = keyring;
    gpul_buf_init(&c->first, GPUL_FIRST_RECORD_BYTES_MAX);
    gpul_buf_init(&c->waiting, GPUL_SEND_QUEUE_BYTES_MAX);
    gpul_buf_init(&c->output, OUTPUT_BYTES_MAX);
    if (!gpul_keyring_is_server(keyring) &&
        (begin_tls(c) != 0 || shake_hands(c) != 0)) {
        int rc = report(c, err);
        gpul_channel_destroy(c);
        return rc;
    }
    *out = c;
    return 0;
}

void gpul_channel_destroy(struct gpul_channel *c)
{
    if (c == NULL) {
        return;
    }
    SSL_free(c->ssl);
    gpul_buf_release(&c->first);
    gpul_buf_release(&c->waiting);
    gpul_buf_release(&c->output);
    free(c);
}

void gpul_channel_put(struct gpul_channel *c, const uint8_t *bytes, size_t n)
{
    assert(c->input_bytes == 0);
    c->input = bytes;
    c->input_bytes = c->why.status == 0 ? n : 0;
}

static int decrypt(struct gpul_channel *c, uint8_t *room, size_t n)
{
    ERR_clear_error();
    int rc = SSL_read(c->ssl, room, (int)n);
    if (c->claim.key_updates > GPUL_KEY_UPDATES_MAX) {
        return gpul_fail(&c->why, GPUL_ELIMIT,
                         "the peer changes its keys too often");
    }
    if (rc > 0) {
        return rc;
    }
    switch (SSL_get_error(c->ssl, rc)) {
    case SSL_ERROR_WANT_READ:
        return 0;
    case SSL_ERROR_ZERO_RETURN:
        return gpul_fail(&c->why, GPUL_ECLOSED,
                         "the peer closed the connection");
    default:
        return fail_tls(c);
    }
}

int gpul_channel_get(struct gpul_channel *c, uint8_t *room, size_t n,
                     struct gpul_error *err)
{
    int rc = 0;
    if (c->why.status == 0 && !c->is_open) {
        rc = shake_hands(c);
    }
    if (c->why.status == 0 && c->is_open) {
        rc = decrypt(c, room, n);
    }
    if (c->why.status != 0) {
        c->input_bytes = 0;
        return report(c, err);
    }
    return rc;
}

int gpul_channel_send(struct gpul_channel *c, const uint8_t *bytes, size_t n,
                      struct gpul_error *err)
{
    if (c->why.status == 0 && c->is_open) {
        encrypt(c, bytes, n);
    } else if (c->why.status == 0) {
        int rc = gpul_buf_append(&c->waiting, bytes, n);
        if (rc != 0) {
            gpul_fail(&c->why, rc, "%zu bytes wait for the handshake: %s",
                      c->waiting.used, gpul_status_text(rc));
        }
    }
    return report(c, err);
}

size_t gpul_channel_waiting_bytes(const struct gpul_channel *c)
{
    return c->waiting.used;
}

void gpul_channel_finish(struct gpul_channel *c)
{
    if (c->is_open && c->why.status == 0) {
        ERR_clear_error();
        (void)SSL_shutdown(c->ssl); /* best effort: the end follows anyway */
    }
}

const uint8_t *gpul_channel_output(const struct gpul_channel *c, size_t *n)
{
    *n = c->output.used;
    return c->output.data;
}

void gpul_channel_clear_output(struct gpul_channel *c)
{
    gpul_buf_release(&c->output);
}

bool gpul_channel_is_open(const struct gpul_channel *c)
{
    return c->is_open;
}

const char *gpul_channel_node_name(const struct gpul_channel *c)
{
    return c->claim.node_name;
}

enum gpul_stranger gpul_channel_stranger(const struct gpul_channel *c)
{
    if (c->is_open || c->stranger != GPUL_STRANGER_NONE) {
        return c->is_open ? GPUL_STRANGER_NONE : c->stranger;
    }
    return GPUL_STRANGER_CLOSED;
}
