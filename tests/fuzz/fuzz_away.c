/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/fuzz/fuzz_away.h"

#include "coordinator/text.h"

void fuzz_away_hello(Gpul__Frame *frame, uint32_t attach, uint32_t generation,
                     uint8_t choice)
{
    static char name[] = "n0";
    static Gpul__Facts facts;
    static Gpul__Hello hello;
    gpul__facts__init(&facts);
    gpul__hello__init(&hello);
    name[1] = (char)('0' + choice % 4);
    facts.hostname = wire_text("h");
    facts.address = wire_text("10.0.0.1");
    facts.cores = 1;
    facts.gpus = 1;
    hello.protocol_min = 1;
    hello.protocol_max = 1;
    hello.job_id = wire_text("j");
    hello.node_name = name;
    hello.instance = choice >> 2 & 7u;
    hello.attach = attach;
    hello.held_generation = (choice & 128u) != 0 ? generation : 0;
    hello.facts = &facts;
    frame->body_case = GPUL__FRAME__BODY_HELLO;
    frame->hello = &hello;
}

void fuzz_away_leave(Gpul__Frame *frame, uint8_t choice)
{
    static char *unclean;
    static Gpul__Leave leave;
    gpul__leave__init(&leave);
    unclean = wire_text("4711 python");
    leave.text = wire_text((choice & 1u) != 0 ? "its keeper ended" : "");
    leave.is_clean = (choice & 6u) == 0;
    leave.unclean = &unclean;
    leave.n_unclean = (choice & 6u) == 2 ? 1 : 0;
    frame->body_case = GPUL__FRAME__BODY_LEAVE;
    frame->leave = &leave;
}
