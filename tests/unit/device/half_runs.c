/* SPDX-License-Identifier: BSD-3-Clause */
/* half_runs - many conversions give the bits of single ones, with F16C and without. */
#include "device/half_runs.h"

#include "base/half.h"
#include "unit/unit.h"

#define MANY 65536

static uint16_t halves[MANY + 64], narrowed[MANY + 64];
static float floats[MANY + 64];

/* NaNs differ from themselves: bits are compared. */
static void check_floats (size_t n, const char *how)
{
    for (size_t i = 0; i < n; i++)
        unit_check (gsi_bits_of_float (floats[i]) ==
                        gsi_bits_of_float (gsi_float_of_f16 (halves[i])),
                    "%s: %04x becomes %08x", how, halves[i], gsi_bits_of_float (floats[i]));
}

static void check_halves (size_t n, const char *how)
{
    for (size_t i = 0; i < n; i++)
        unit_check (narrowed[i] == gsi_f16_of_float (floats[i]), "%s: %08x becomes %04x", how,
                    gsi_bits_of_float (floats[i]), narrowed[i]);
}

START_TEST (every_half)
{
    for (unsigned i = 0; i < MANY; i++)
        halves[i] = (uint16_t) i;
    gsi_floats_of_f16 (floats, halves, MANY);
    check_floats (MANY, gsi_has_f16c () ? "F16C" : "no F16C");
    gsi_floats_of_f16_portable (floats, halves, MANY);
    check_floats (MANY, "portable");
    for (unsigned i = 0; i < MANY; i++)
        halves[i] = (uint16_t) (i * 40503u); /* numbers beside NaNs */
    gsi_floats_of_f16 (floats, halves, MANY);
    check_floats (MANY, "in another order");
}
END_TEST

static void narrow_all (size_t n)
{
    gsi_f16_of_floats (narrowed, floats, n);
    check_halves (n, gsi_has_f16c () ? "F16C" : "no F16C");
    gsi_f16_of_floats_portable (narrowed, floats, n);
    check_halves (n, "portable");
}

/* Every upper half of a float with the lower bits that decide how it is rounded. */
START_TEST (floats_at_edges)
{
    static const uint32_t low[] = {0,      1,      0x0fff, 0x1000, 0x1001, 0x1fff,
                                   0x2000, 0x2fff, 0x3000, 0x3001, 0x7fff, 0xffff};

    for (size_t l = 0; l < sizeof (low) / sizeof (low[0]); l++) {
        for (uint32_t i = 0; i < MANY; i++)
            floats[i] = gsi_float_of_bits (i << 16 | low[l]);
        narrow_all (MANY);
    }
}
END_TEST

START_TEST (random_floats)
{
    uint64_t state = 5;

    for (int round = 0; round < 200; round++) {
        for (size_t i = 0; i < MANY; i++) {
            uint32_t bits = (uint32_t) (unit_random (&state) >> 16);
            /* half of them where f16 has numbers: exponents from -26 to 17 */
            floats[i] = gsi_float_of_bits (
                i % 2 ? bits : (bits & 0x807fffffu) | (101u + (bits >> 23) % 44u) << 23);
        }
        narrow_all (MANY);
    }
}
END_TEST

/* Of any number, from any address; nothing behind it is touched. */
START_TEST (any_count)
{
    for (size_t shift = 0; shift < 8; shift++)
        for (size_t n = 0; n < 40; n++) {
            for (size_t i = 0; i < 64; i++)
                halves[i] = (uint16_t) (i * 2654435761u >> 7);
            memset (floats, 0xA5, sizeof (floats));
            memset (narrowed, 0xA5, sizeof (narrowed));
            ck_assert_ptr_eq (gsi_floats_of_f16 (floats + shift, halves + shift, n),
                              floats + shift);
            gsi_f16_of_floats (narrowed + shift, floats + shift, n);
            for (size_t i = 0; i < 64; i++) {
                bool inside = i >= shift && i < shift + n;
                uint32_t wanted =
                    inside ? gsi_bits_of_float (gsi_float_of_f16 (halves[i])) : 0xA5A5A5A5u;
                unit_check (gsi_bits_of_float (floats[i]) == wanted, "float %zu of %zu", i, n);
                unit_check (narrowed[i] == (inside ? gsi_f16_of_float (floats[i]) : 0xA5A5),
                            "half %zu of %zu", i, n);
            }
        }
}
END_TEST

UNIT_SUITE ("half_runs", 60, every_half, floats_at_edges, random_floats, any_count)
