/* SPDX-License-Identifier: Apache-2.0
 *
 * Our standard input on its way to the ranks: it is read as far as the
 * coordinator has given credit for it, which is not before the ranks run.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "launcher/session_internal.h"
#include "proto/limits.h"

static void send_input(struct session *s, const uint8_t *bytes, size_t n,
                       bool is_end)
{
    Gpul__Frame frame = GPUL__FRAME__INIT;
    Gpul__Input input = GPUL__INPUT__INIT;
    union {
        const uint8_t *bytes;
        uint8_t *borrowed;
    } data = {bytes};
    input.data.data = data.borrowed;
    input.data.len = n;
    input.is_end = is_end;
    frame.body_case = GPUL__FRAME__BODY_INPUT;
    frame.input = &input;
    if (s->desk != NULL) {
        gpul_transport_send(s->desk, &frame, NULL);
    }
}

static void on_data(void *arg, const uint8_t *bytes, size_t n)
{
    while (n > 0) {
        size_t piece = n < GPUL_INPUT_BYTES_MAX ? n : GPUL_INPUT_BYTES_MAX;
        send_input(arg, bytes, piece, false);
        bytes += piece;
        n -= piece;
    }
}

/* What the ranks have got then looks whole to them, and is not. */
static void lose(struct session *s, int why)
{
    s->lost_input = why;
    progress_fault(&s->progress,
                   "cannot read standard input: %s; it ends here for the ranks",
                   strerror(why));
}

static void on_end(void *arg, int why)
{
    struct session *s = arg;
    if (why != 0) {
        lose(s, why);
    }
    send_input(s, NULL, 0, true);
}

void session_input_credit(struct session *s, const Gpul__InputCredit *credit)
{
    static const struct inlet_handlers handlers = {
        .on_data = on_data,
        .on_end = on_end,
    };
    struct gpul_error err = {0};
    if (s->inlet == NULL && inlet_create(&s->inlet, &s->loop, STDIN_FILENO,
                                         &handlers, s, &err) != 0) {
        on_end(s, ENOMEM);
        return;
    }
    inlet_want(s->inlet, credit->bytes);
}

void session_input_look_again(struct session *s)
{
    if (s->inlet != NULL) {
        inlet_look_again(s->inlet);
    }
}
