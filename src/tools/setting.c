/* SPDX-License-Identifier: BSD-3-Clause */
/* setting - looks one up in the list that gs_setting_get walks. */
#include "tools/setting.h"

#include <string.h>

#include "gradsync.h"

const char *setting_value (const char *name)
{
    gs_setting_t s;

    for (int i = 0; !gs_setting_get (i, &s); i++)
        if (!strcmp (s.name, name))
            return s.value;
    return "";
}
