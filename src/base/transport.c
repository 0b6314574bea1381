/* SPDX-License-Identifier: BSD-3-Clause */
/* transport - every transport, once. */
#include "base/transport.h"

#include <string.h>

static const struct row {
    const char *name;
    enum gsi_joins joins;
} rows[] = {[GSI_TRANSPORT_AUTO] = {"auto", GSI_JOINS_NOBODY},
#define GSI_TRANSPORT_ROW(id, name, joins) [GSI_TRANSPORT_##id] = {name, joins},
            GSI_TRANSPORTS (GSI_TRANSPORT_ROW)};

static const struct row *row_of (int transport)
{
    return transport > GSI_TRANSPORT_AUTO && transport < GSI_TRANSPORT_COUNT ? &rows[transport]
                                                                             : NULL;
}

const char *gsi_transport_name (int transport)
{
    const struct row *row = row_of (transport);

    return row ? row->name : NULL;
}

enum gsi_joins gsi_transport_joins (int transport)
{
    const struct row *row = row_of (transport);

    return row ? row->joins : GSI_JOINS_NOBODY;
}

int gsi_transport_of (const char *name)
{
    int i = GSI_TRANSPORT_COUNT - 1;

    while (i > GSI_TRANSPORT_AUTO && strcmp (rows[i].name, name))
        i--;
    return i;
}
