/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/escapes.h"

#include "common/error.h"

enum state {
    TEXT = 0,
    AFTER_ESC,
    AFTER_INTERMEDIATE, /* ESC ( and the like: one final byte follows */
    IN_CSI,
    IN_BAD_CSI, /* no colour, whatever its end */
    IN_STRING,  /* OSC, DCS, SOS, PM, APC */
    IN_STRING_AFTER_ESC,
};

enum {
    BEL = 0x07,
    TAB = 0x09,
    CAN = 0x18,
    SUB = 0x1a,
    ESC = 0x1b,
    DEL = 0x7f,
    C1_FIRST = 0x80,
    C1_DCS = 0x90,
    C1_SOS = 0x98,
    C1_CSI = 0x9b,
    C1_ST = 0x9c,
    C1_OSC = 0x9d,
    C1_APC = 0x9f,
    C1_LAST = 0x9f,
    LEAD_C2 = 0xc2,
    TAB_COLUMNS = 8,
};

static bool is_plain(uint8_t byte)
{
    return (byte >= ' ' && byte < DEL) || byte == '\n' || byte == '\r' ||
           byte == TAB;
}

static bool is_tail(uint8_t byte)
{
    return (byte & 0xc0) == 0x80;
}

/* Bytes that follow this one in its UTF-8 character. */
static uint8_t tail_of(uint8_t lead)
{
    if (lead < LEAD_C2 || lead > 0xf4) {
        return 0;
    }
    return lead < 0xe0 ? 1 : lead < 0xf0 ? 2 : 3;
}

void escapes_init(struct escapes *e)
{
    *e = (struct escapes){0};
}

static void begin(struct escapes *e, enum state state)
{
    e->state = (uint8_t)state;
    e->kept_count = 0;
    e->tail = 0;
    e->is_after_c2 = false;
}

/* A control character beyond ASCII: U+0080 to U+009F. */
static void take_c1(struct escapes *e, uint8_t byte)
{
    if (byte == C1_CSI) {
        begin(e, IN_CSI);
    } else if (byte == C1_DCS || byte == C1_SOS ||
               (byte >= C1_OSC && byte <= C1_APC)) {
        begin(e, IN_STRING);
    } else {
        begin(e, TEXT);
    }
}

static void take_text(struct escapes *e, struct gpul_buf *out, uint8_t byte)
{
    if (e->is_after_c2) {
        e->is_after_c2 = false;
        if (byte >= C1_FIRST && byte <= C1_LAST) {
            take_c1(e, byte);
            return;
        }
        gpul_buf_append(out, &(uint8_t){LEAD_C2}, 1);
        e->tail = 1;
    }
    if (e->tail > 0 && is_tail(byte)) {
        e->tail--;
        gpul_buf_append(out, &byte, 1);
        return;
    }
    e->tail = 0;
    if (byte == ESC) {
        begin(e, AFTER_ESC);
    } else if (byte == LEAD_C2) {
        e->is_after_c2 = true;
    } else if (byte >= C1_FIRST && byte <= C1_LAST) {
        gpul_buf_append(out, "?", 1);
    } else if (byte > C1_LAST || is_plain(byte)) {
        e->tail = tail_of(byte);
        gpul_buf_append(out, &byte, 1);
    }
}

static void take_after_esc(struct escapes *e, uint8_t byte)
{
    if (byte == '[') {
        begin(e, IN_CSI);
    } else if (byte == ']' || byte == 'P' || byte == 'X' || byte == '^' ||
               byte == '_') {
        begin(e, IN_STRING);
    } else if (byte >= ' ' && byte < '0') {
        begin(e, AFTER_INTERMEDIATE);
    } else if (byte != ESC) {
        begin(e, TEXT);
    }
}

static void end_csi(struct escapes *e, struct gpul_buf *out, uint8_t final)
{
    if (e->state == IN_CSI && final == 'm') {
        gpul_buf_append(out, "\x1b[", 2);
        gpul_buf_append(out, e->kept, e->kept_count);
        gpul_buf_append(out, "m", 1);
    }
    begin(e, TEXT);
}

static void take_in_csi(struct escapes *e, struct gpul_buf *out, uint8_t byte)
{
    if (byte >= '@' && byte < DEL) {
        end_csi(e, out, byte);
    } else if (byte == ESC) {
        begin(e, AFTER_ESC);
    } else if ((byte >= '0' && byte <= ';') &&
               e->kept_count < ESCAPES_PARAMETER_BYTES_MAX) {
        e->kept[e->kept_count++] = byte;
    } else if (byte >= ' ') {
        e->state = IN_BAD_CSI;
    }
}

static void take_in_string(struct escapes *e, uint8_t byte)
{
    bool is_end = byte == BEL || (byte == C1_ST && e->is_after_c2);
    e->is_after_c2 = byte == LEAD_C2;
    if (is_end) {
        begin(e, TEXT);
    } else if (byte == ESC) {
        e->state = IN_STRING_AFTER_ESC;
    }
}

/* Does this byte end any sequence, and count by itself? */
static bool breaks_off(const struct escapes *e, uint8_t byte)
{
    if (e->state == TEXT) {
        return false;
    }
    if (byte == '\n' || byte == '\r' || byte == CAN || byte == SUB) {
        return true;
    }
    bool is_string = e->state == IN_STRING || e->state == IN_STRING_AFTER_ESC;
    return byte >= C1_FIRST && !is_string;
}

static void take(struct escapes *e, struct gpul_buf *out, uint8_t byte)
{
    if (breaks_off(e, byte)) {
        begin(e, TEXT);
    }
    switch (e->state) {
    case TEXT:
        take_text(e, out, byte);
        break;
    case AFTER_ESC:
        take_after_esc(e, byte);
        break;
    case AFTER_INTERMEDIATE:
        if (byte == ESC) {
            begin(e, AFTER_ESC);
        } else if (byte >= '0') {
            begin(e, TEXT);
        }
        break;
    case IN_STRING:
        take_in_string(e, byte);
        break;
    case IN_STRING_AFTER_ESC:
        /* ESC \ is the string's end; ESC and anything else ends it too, and
         * begins a sequence of its own. */
        begin(e, AFTER_ESC);
        take_after_esc(e, byte);
        break;
    default:
        take_in_csi(e, out, byte);
        break;
    }
}

int escapes_feed(struct escapes *e, struct gpul_buf *out, const uint8_t *bytes,
                 size_t n)
{
    size_t at = 0;
    while (at < n) {
        size_t start = at;
        if (e->state == TEXT && e->tail == 0 && !e->is_after_c2) {
            while (at < n && is_plain(bytes[at])) {
                at++;
            }
            gpul_buf_append(out, bytes + start, at - start);
        }
        if (at < n) {
            take(e, out, bytes[at++]);
        }
    }
    return out->is_failed ? GPUL_ELIMIT : 0;
}

/* ---- columns ------------------------------------------------------------- */

/* Wide in every terminal: East Asian scripts and emoji. */
static bool is_wide(uint32_t c)
{
    return (c >= 0x1100 && c <= 0x115f) || (c >= 0x2e80 && c <= 0xa4cf) ||
           (c >= 0xac00 && c <= 0xd7a3) || (c >= 0xf900 && c <= 0xfaff) ||
           (c >= 0xfe30 && c <= 0xfe6f) || (c >= 0xff00 && c <= 0xff60) ||
           (c >= 0x1f300 && c <= 0x1faff) || (c >= 0x20000 && c <= 0x3ffff);
}

/* Bytes of the colour that begins here, 0: none. */
static size_t colour_bytes(const uint8_t *text, size_t n)
{
    if (n < 3 || text[0] != ESC || text[1] != '[') {
        return 0;
    }
    size_t at = 2;
    while (at < n && text[at] >= '0' && text[at] <= ';') {
        at++;
    }
    return at < n && text[at] == 'm' ? at + 1 : 0;
}

/* One character: its bytes, and *columns. */
static size_t character_bytes(const uint8_t *text, size_t n, size_t *columns)
{
    size_t tail = tail_of(text[0]), at = 1;
    uint32_t c = tail == 0 ? text[0] : text[0] & (0x3fu >> tail);
    while (at < n && at <= tail && is_tail(text[at])) {
        c = c << 6 | (text[at++] & 0x3fu);
    }
    *columns = text[0] == TAB ? TAB_COLUMNS : is_wide(c) ? 2 : 1;
    return at;
}

size_t escapes_fit(const uint8_t *text, size_t n, size_t columns)
{
    size_t at = 0, used = 0;
    while (at < n) {
        size_t wide = 0;
        size_t bytes = colour_bytes(text + at, n - at);
        if (bytes == 0) {
            bytes = character_bytes(text + at, n - at, &wide);
        }
        if (used + wide > columns) {
            break;
        }
        used += wide;
        at += bytes;
    }
    return at;
}
