/* SPDX-License-Identifier: BSD-3-Clause */
/* headers - route and control messages: headers between the ends of messages, here both in one
 * process. */
#include "host/control_messages.h"
#include "host/route.h"

#include "unit/unit.h"

static struct gsi_route *route;

static void open_route (void)
{
    size_t bytes = (sizeof (*route) + 63) / 64 * 64;

    route = aligned_alloc (64, bytes);
    memset (route, 0, bytes);
}

static void close_route (void)
{
    free (route);
}

static bool put (enum gsi_route_end end, uint64_t number)
{
    struct gsi_p2p_header header = {.bytes = number, .dtype = GS_F32};
    char data[8];

    memset (data, (int) number, sizeof (data));
    return gsi_route_put (route, end, number, &header, data, end == GSI_ROUTE_SENDS ? 8 : 0);
}

static bool get (enum gsi_route_end end, uint64_t number)
{
    struct gsi_p2p_header header;

    if (!gsi_route_get (route, end, number, &header))
        return false;
    ck_assert_uint_eq (header.bytes, number);
    if (end == GSI_ROUTE_RECEIVES)
        ck_assert_int_eq (*(const char *) gsi_route_data (route, number), (char) number);
    return true;
}

START_TEST (what_is_posted_is_there)
{
    unit_check (!get (GSI_ROUTE_RECEIVES, 1), "a header that nobody posted");
    unit_check (put (GSI_ROUTE_SENDS, 1), "no place");
    unit_check (get (GSI_ROUTE_RECEIVES, 1), "no header");
    unit_check (!get (GSI_ROUTE_RECEIVES, 2), "the next one");
    unit_check (!get (GSI_ROUTE_SENDS, 1), "one's own header for that of the other end");
    unit_check (put (GSI_ROUTE_RECEIVES, 1) && get (GSI_ROUTE_SENDS, 1), "the way back");
}
END_TEST

/* Who is ahead waits for the other end, whether that one tells by headers or not. */
START_TEST (places_are_free_when_the_other_end_is_done)
{
    uint64_t n = 1;

    while (put (GSI_ROUTE_SENDS, n))
        n++;
    ck_assert_uint_eq (n, GSI_ROUTE_SLOTS + 1);
    unit_check (get (GSI_ROUTE_RECEIVES, 1), "the first is gone");
    unit_check (!put (GSI_ROUTE_SENDS, n), "a place that is not free");
    gsi_route_end (route, GSI_ROUTE_RECEIVES, 1);
    unit_check (put (GSI_ROUTE_SENDS, n), "no place, but one is free");
    unit_check (!put (GSI_ROUTE_SENDS, n + 1), "a place that is not free");
    unit_check (!get (GSI_ROUTE_RECEIVES, 1), "what another one has the place of");
    for (uint64_t i = 2; i < 1000; i++) {
        unit_check (get (GSI_ROUTE_RECEIVES, i), "message %d is not there", (int) i);
        gsi_route_end (route, GSI_ROUTE_RECEIVES, i);
        unit_check (put (GSI_ROUTE_RECEIVES, i) && get (GSI_ROUTE_SENDS, i), "the way back");
        gsi_route_end (route, GSI_ROUTE_SENDS, i);
        unit_check (put (GSI_ROUTE_SENDS, n + i - 1), "no place for %d", (int) (n + i - 1));
    }
    ck_assert_uint_eq (gsi_route_done (route, GSI_ROUTE_SENDS), 999);
}
END_TEST

START_TEST (control_messages_have_headers_of_both_directions_in_order)
{
    struct gsi_unexpected_queue queue[GSI_ROUTE_ENDS] = {{0}};
    char *control = malloc (GSI_CONTROL_BYTES), data[100];
    size_t used = gsi_control_begin (control);
    struct gsi_p2p_header first;
    struct gsi_unexpected *item;
    const char *with;

    for (uint64_t i = 0; i < 100; i++) {
        struct gsi_p2p_header header = {.bytes = i};
        memset (data, (int) i, sizeof (data));
        used = gsi_control_append (control, used, &header, i % 3, data, (size_t) i);
    }
    unit_check (used <= GSI_CONTROL_BYTES, "too long");
    for (uint64_t i = 1; i < 5; i += 1 + (i == 2)) { /* 1, 2, 4: what a call takes itself */
        unit_check (gsi_control_take (control, GSI_ROUTE_SENDS, &first, &with), "none is there");
        ck_assert_uint_eq (first.bytes, i);
        unit_check (with[0] == (char) i && with[i - 1] == (char) i, "what goes with it");
    }
    unit_ok (gsi_control_read (control, queue));
    memset (control, 0, GSI_CONTROL_BYTES);
    for (uint64_t i = 0; i < 100; i++) {
        if (i == 1 || i == 2 || i == 4)
            continue;
        item = gsi_unexpected_take (&queue[i % 3 ? GSI_ROUTE_SENDS : GSI_ROUTE_RECEIVES]);
        ck_assert_ptr_nonnull (item);
        ck_assert_uint_eq (item->header.bytes, i);
        unit_check (!i || (item->data[0] == (char) i && item->data[i - 1] == (char) i),
                    "what went with header %d", (int) i);
        free (item);
    }
    for (int end = 0; end < GSI_ROUTE_ENDS; end++)
        ck_assert_ptr_null (gsi_unexpected_take (&queue[end]));
    gsi_control_append (control, gsi_control_begin (control), &(struct gsi_p2p_header){0}, true,
                        NULL, 0);
    unit_ok (gsi_control_read (control, queue));
    unit_ok (gsi_control_read (control, queue));
    gsi_unexpected_free (&queue[GSI_ROUTE_SENDS]);
    ck_assert_ptr_null (gsi_unexpected_take (&queue[GSI_ROUTE_SENDS]));
    free (control);
}
END_TEST

UNIT_SUITE_WITH ("headers", 10, open_route, close_route, what_is_posted_is_there,
                 places_are_free_when_the_other_end_is_done,
                 control_messages_have_headers_of_both_directions_in_order)
