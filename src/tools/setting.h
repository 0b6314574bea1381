/* SPDX-License-Identifier: BSD-3-Clause */
/* setting - a setting of gradsync by its name, through the public interface. */
#ifndef GS_TOOLS_SETTING_H
#define GS_TOOLS_SETTING_H

/* The value of the variable [name], never freed; "" if gradsync has no such variable. */
const char *setting_value (const char *name);

#endif /* GS_TOOLS_SETTING_H */
