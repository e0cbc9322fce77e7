/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "worker/failure.h"

static const uint16_t ports[] = {20000, 20016};

static struct failure_end early(const char *tail)
{
    return (struct failure_end){
        .ran_ms = 900,
        .tail = tail,
        .tail_bytes = strlen(tail),
        .ports = ports,
        .port_count = 2,
    };
}

/* What frameworks print when their port is taken, and what looks like it. */
static void test_words(void **state)
{
    (void)state;
    static const struct {
        const char *tail;
        bool is_bind_error;
    } table[] = {
        /* Python's socket module */
        {"OSError: [Errno 98] Address already in use: ('', 20000)", true},
        /* torch.distributed's TCPStore */
        {"The server socket has failed to listen on any local network "
         "address. port: 20016, useIpv6: false, code: -98, name: EADDRINUSE, "
         "message: address already in use",
         true},
        /* gRPC, as in TensorFlow and JAX */
        {"bind address already in use: errno: 98, file_line: 1, 0.0.0.0:20000",
         true},
        {"listen tcp :20000: bind: address already in use", true},
        {"ADDRESS ALREADY IN USE 20000", true},
        /* another port, or none of ours */
        {"OSError: [Errno 98] Address already in use: ('', 8888)", false},
        {"Address already in use", false},
        {"Address already in use 120000", false},
        {"Address already in use 200001", false},
        /* another error */
        {"errno 981: port 20000", false},
        {"connect to 127.0.0.1:20000: Connection refused", false},
        {"addresses in user space 20000", false},
        {"", false},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        struct failure_end end = early(table[i].tail);
        if (failure_is_bind_error(&end) != table[i].is_bind_error) {
            print_error("wrong: %s\n", table[i].tail);
        }
        assert_int_equal(failure_is_bind_error(&end), table[i].is_bind_error);
    }
}

/* Without a number in the text, the port itself must be taken now. */
static void test_port_taken(void **state)
{
    (void)state;
    struct failure_end end = early("bind failed: Address already in use");
    assert_false(failure_is_bind_error(&end));
    end.is_port_taken = true;
    assert_true(failure_is_bind_error(&end));
    end.tail = "segmentation fault, mind you";
    end.tail_bytes = strlen(end.tail);
    assert_false(failure_is_bind_error(&end));
}

/* Success is no failure, and late is not at start. */
static void test_when(void **state)
{
    (void)state;
    struct failure_end end = early("Address already in use: 20000");
    assert_true(failure_is_bind_error(&end));
    end.ran_ms = FAILURE_EARLY_MS;
    assert_true(failure_is_bind_error(&end));
    end.ran_ms = FAILURE_EARLY_MS + 1;
    assert_false(failure_is_bind_error(&end));
    end.ran_ms = 0;
    end.is_success = true;
    assert_false(failure_is_bind_error(&end));
}

/* The tail may hold any bytes, and may be cut anywhere. */
static void test_cut(void **state)
{
    (void)state;
    static const char text[] = "\0\xff Address already in use 20000";
    for (size_t n = 0; n < sizeof(text); n++) {
        struct failure_end end = early("");
        end.tail = text;
        end.tail_bytes = n;
        /* The last digit is at the end: one byte less is another number. */
        assert_int_equal(failure_is_bind_error(&end), n == sizeof(text) - 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_port_taken),
        cmocka_unit_test(test_when),
        cmocka_unit_test(test_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
