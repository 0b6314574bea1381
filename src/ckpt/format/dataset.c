/* SPDX-License-Identifier: BSD-3-Clause */
/* dataset - what is known of data sets, without HDF5. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"

#include "ckpt/format/h5.h"

size_t gsi_h5_bytes (const struct gsi_h5_set *set)
{
    size_t bytes = set->path && !set->sources ? gs_dtype_size (set->dtype) : 0;
    bool fits = true;

    for (int d = 0; d < set->dims; d++)
        bytes = set->shape[d] ? bytes : 0;
    for (int d = 0; d < set->dims && bytes && fits; d++)
        fits = !__builtin_mul_overflow (bytes, set->shape[d], &bytes);
    return fits ? bytes : SIZE_MAX;
}

void gsi_h5_field_name (const struct gsi_h5_set *set, char *name, size_t room)
{
    const char *begin = strchr (set->path + 1, '/');

    snprintf (name, room, "%s", begin ? begin + 1 : set->path + 1);
    for (; (name = strchr (name, '/')); name++)
        *name = '_';
}

void gsi_h5_set_forget (struct gsi_h5_set *set)
{
    for (size_t i = 0; i < set->sources; i++)
        free (set->source[i].path);
    free (set->source);
    set->source = NULL;
    set->sources = 0;
}

void gsi_h5_image_clear (struct gsi_h5_image *image)
{
    free (image->data);
    *image = (struct gsi_h5_image){.data = NULL};
}

void gsi_h5_set_clear (struct gsi_h5_set *set)
{
    for (int i = 0; i < set->texts; i++) {
        free (set->text[i].name);
        free (set->text[i].text);
    }
    gsi_h5_set_forget (set);
    free (set->text);
    free (set->path);
    *set = (struct gsi_h5_set){.path = NULL};
}

void gsi_h5_file_clear (struct gsi_h5_file *file)
{
    for (size_t i = 0; i < file->sets; i++)
        gsi_h5_set_clear (&file->set[i]);
    free (file->set);
    *file = (struct gsi_h5_file){.set = NULL};
}

/* Its place is that of its name; there is room for one more. The texts are the set's then. */
static void put_text (struct gsi_h5_set *set, struct gsi_h5_text t)
{
    int at = 0;

    while (at < set->texts && strcmp (set->text[at].name, t.name) < 0)
        at++;
    if (at < set->texts && !strcmp (set->text[at].name, t.name)) {
        free (set->text[at].name);
        free (set->text[at].text);
    } else {
        memmove (&set->text[at + 1], &set->text[at],
                 (size_t) (set->texts - at) * sizeof (*set->text));
        set->texts++;
    }
    set->text[at] = t;
}

gs_status_t gsi_h5_set_texts (struct gsi_h5_set *set, const char *const text[][2], int number)
{
    struct gsi_h5_text own[GSI_H5_TEXTS] = {{NULL, NULL}};
    struct gsi_h5_text *larger =
        realloc (set->text, (size_t) (set->texts + number) * sizeof (*larger));
    bool there = larger;

    set->text = larger ? larger : set->text;
    for (int i = 0; i < number && there; i++) {
        own[i] = (struct gsi_h5_text){strdup (text[i][0]), strdup (text[i][1])};
        there = own[i].name && own[i].text;
    }
    for (int i = 0; i < number && there; i++)
        put_text (set, own[i]);
    for (int i = 0; i < number && !there; i++) {
        free (own[i].name);
        free (own[i].text);
    }
    return there ? GS_OK
                 : gsi_fail (GS_ERR_NOMEM, "%s: no memory for its attributes, such as '%s'",
                             set->path, text[0][0]);
}

gs_status_t gsi_h5_set_text (struct gsi_h5_set *set, const char *name, const char *text)
{
    return gsi_h5_set_texts (set, (const char *const[][2]){{name, text}}, 1);
}
