/* SPDX-License-Identifier: BSD-3-Clause */
/* sized - structs of the public interface that begin with their size. */
#include "base/sized.h"

#include <stdbool.h>
#include <string.h>

#include "base/status.h"

static bool is_size (size_t bytes)
{
    return bytes > sizeof (bytes) && bytes <= GSI_SIZED_MOST;
}

/* Whether a byte of [bytes] from [first] up to [end] is not 0. */
static bool is_set (const void *bytes, size_t first, size_t end)
{
    const unsigned char *byte = bytes;

    while (first < end && !byte[first])
        first++;
    return first < end;
}

gs_status_t gsi_sized_take (void *out, size_t bytes, size_t reserved, const void *in,
                            const char *what, const char *init)
{
    size_t given;

    memcpy (&given, in, sizeof (given));
    if (!is_size (given))
        return gsi_fail (GS_ERR_ARG, "%s->size is %zu, which is no size: start from %s", what,
                         given, init);
    if (is_set (in, bytes, given))
        return gsi_fail (GS_ERR_ARG,
                         "%s has a field set that this version of the library, %s, does not "
                         "know: it knows %zu bytes of %zu",
                         what, gs_version (), bytes, given);
    if (is_set (in, reserved, given < bytes ? given : bytes))
        return gsi_fail (GS_ERR_ARG, "%s->reserved is not 0: start from %s", what, init);
    memcpy (out, in, given < bytes ? given : bytes);
    memcpy (out, &bytes, sizeof (bytes));
    return GS_OK;
}

gs_status_t gsi_sized_give (void *out, const void *in, size_t bytes, const char *what)
{
    size_t room;

    if (!out)
        return gsi_fail (GS_ERR_ARG, "%s is NULL", what);
    memcpy (&room, out, sizeof (room));
    if (!is_size (room))
        return gsi_fail (GS_ERR_ARG, "%s->size is %zu, which is no size: set it to sizeof, %zu",
                         what, room, bytes);
    memset ((char *) out + sizeof (room), 0, room - sizeof (room));
    memcpy ((char *) out + sizeof (room), (const char *) in + sizeof (room),
            (room < bytes ? room : bytes) - sizeof (room));
    return GS_OK;
}
