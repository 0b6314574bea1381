/* SPDX-License-Identifier: BSD-3-Clause */
/* sized - options and results of programs that were compiled with another version. */
#include "base/sized.h"

#include "unit/unit.h"

struct now {
    size_t size;
    int a, b;
    void *reserved[2];
};

struct later {
    struct now now;
    int more, most;
};

static gs_status_t take (struct now *out, const void *in)
{
    *out = (struct now){.size = sizeof (*out), .a = 1, .b = 2};
    return gsi_sized_take (out, sizeof (*out), offsetof (struct now, reserved), in, "f: opts",
                           "INIT");
}

START_TEST (same)
{
    struct now now, in = {.size = sizeof (in), .a = 5};

    unit_ok (take (&now, &in));
    ck_assert (now.a == 5 && now.b == 0 && now.size == sizeof (now));
}
END_TEST

START_TEST (earlier)
{
    struct {
        size_t size;
        int a, next; /* which is not of it */
    } in = {offsetof (struct now, b), 7, 9};
    struct now now;

    unit_ok (take (&now, &in));
    ck_assert (now.a == 7 && now.b == 2 && now.size == sizeof (now));
}
END_TEST

START_TEST (later)
{
    struct later in = {.now = {.size = sizeof (in), .a = 3}};
    struct now now;

    unit_ok (take (&now, &in));
    ck_assert (now.a == 3 && now.size == sizeof (now));
    in.most = 1;
    unit_fails (take (&now, &in), GS_ERR_ARG, "f: opts has a field set", gs_version ());
    ck_assert (now.a == 1 && now.b == 2);
}
END_TEST

START_TEST (no_options)
{
    struct now now, in = {.size = 0};
    size_t sizes[] = {0, sizeof (size_t), GSI_SIZED_MOST + 1, SIZE_MAX};

    for (size_t i = 0; i < sizeof (sizes) / sizeof (*sizes); i++) {
        in.size = sizes[i];
        unit_fails (take (&now, &in), GS_ERR_ARG, "f: opts->size is ", "start from INIT");
    }
    in.size = sizeof (in);
    in.reserved[1] = &in;
    unit_fails (take (&now, &in), GS_ERR_ARG, "f: opts->reserved is not 0");
}
END_TEST

START_TEST (results)
{
    const struct now in = {.size = sizeof (in), .a = 3, .b = 4};
    struct later out;
    size_t sizes[] = {offsetof (struct now, b), sizeof (struct now), sizeof (struct later)};

    for (int i = 0; i < 3; i++) {
        memset (&out, 0xff, sizeof (out));
        out.now.size = sizes[i];
        unit_ok (gsi_sized_give (&out, &in, sizeof (in), "f: out"));
        ck_assert (out.now.size == sizes[i] && out.now.a == 3);
        ck_assert_int_eq (out.now.b, i ? 4 : -1);
        ck_assert_int_eq (out.most, i == 2 ? 0 : -1);
    }
    out.now.size = 0;
    unit_fails (gsi_sized_give (&out, &in, sizeof (in), "f: out"), GS_ERR_ARG, "f: out->size");
    unit_fails (gsi_sized_give (NULL, &in, sizeof (in), "f: out"), GS_ERR_ARG, "f: out is NULL");
}
END_TEST

UNIT_SUITE ("sized", 10, same, earlier, later, no_options, results)
