/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "worker/gpu_visible.h"

/* Three GPUs, the last of them with two slices. */
static const struct gpu_device devices[] = {
    {.index = 0, .uuid = "GPU-aaaa1111-0000"},
    {.index = 1, .uuid = "GPU-aaaa2222-0000"},
    {.index = 2, .uuid = "GPU-bbbb3333-0000"},
    {.index = 2, .is_slice = true, .uuid = "MIG-cccc4444-0000"},
    {.index = 2, .is_slice = true, .uuid = "MIG-dddd5555-0000"},
};
enum { DEVICES = sizeof(devices) / sizeof(devices[0]) };

/* Each way to write the list, what it chooses, and where reading stopped. */
static void test_values(void **state)
{
    (void)state;
    static const struct {
        const char *value;
        const char *picks;
        const char *refused;
    } cases[] = {
        {NULL, "0 1 2", ""},
        {"", "", ""},
        {"-1", "", ""},
        {"0", "0", ""},
        {"2,0", "2 0", ""},
        {" 1 , 0 ", "1 0", ""},
        {"0,-1,1", "0", ""},
        {"0,7,1", "0", "7"},
        {"0,,1", "0", ""},
        {"1,1", "1", "1"},
        {"0,12345678901234567890", "0", "12345678901234567890"},
        {"GPU-bbbb", "2", ""},
        {"GPU-aaaa2222-0000,GPU-aaaa1", "1 0", ""},
        {"GPU-aaaa", "", "GPU-aaaa"},
        {"MIG-dddd5555-0000,MIG-c", "4 3", ""},
        {"MIG-eeee", "", "MIG-eeee"},
        {"NoDevFiles", "", "NoDevFiles"},
        {"0x1", "", "0x1"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct gpu_choice choice;
        char picks[64] = "";
        gpu_visible_choose(&choice, devices, DEVICES, cases[i].value);
        for (size_t k = 0; k < choice.count; k++) {
            size_t used = strlen(picks);
            snprintf(picks + used, sizeof(picks) - used, "%s%zu",
                     k > 0 ? " " : "", choice.picks[k]);
        }
        assert_string_equal(picks, cases[i].picks);
        assert_string_equal(choice.refused, cases[i].refused);
    }
}

/* An entry of any length is cut, not written past its room. */
static void test_long_entry(void **state)
{
    (void)state;
    char value[512];
    memset(value, 'x', sizeof(value) - 1);
    value[sizeof(value) - 1] = 0;
    struct gpu_choice choice;
    gpu_visible_choose(&choice, devices, DEVICES, value);
    assert_int_equal(choice.count, 0);
    assert_int_equal(strlen(choice.refused), GPU_TEXT_BYTES - 1);
}

static void test_value_of(void **state)
{
    (void)state;
    const char *const set[] = {"A=1", "CUDA_VISIBLE_DEVICES=0,1", "B=2", NULL};
    const char *const empty[] = {"CUDA_VISIBLE_DEVICES=", NULL};
    const char *const other[] = {"CUDA_VISIBLE_DEVICES_=1",
                                 "XCUDA_VISIBLE_DEVICES=1", NULL};
    assert_string_equal(gpu_visible_value(set), "0,1");
    assert_string_equal(gpu_visible_value(empty), "");
    assert_null(gpu_visible_value(other));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_long_entry),
        cmocka_unit_test(test_value_of),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
