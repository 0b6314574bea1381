/* SPDX-License-Identifier: BSD-3-Clause */
/* kept - creates and destroys of things beside which the binding keeps something; their lists. */
#include "fortran/kept.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/status.h"

#define DIMS_MAX GS_FIELD_DIMS_MAX /* of all lists; what is longer is refused by C */

/* A list in the order of C's dimensions; of one that is too long the first elements. */
static void turn (int n, const int64_t *from, size_t *to)
{
    n = n < DIMS_MAX ? n : DIMS_MAX;
    for (int d = 0; d < n; d++)
        to[n - 1 - d] = (size_t) from[d];
}

/* A list of [wanted] elements of 0 or more. */
static gs_status_t check (const char *call, const char *what, int n, int wanted,
                          const int64_t *list)
{
    int64_t least = 0;

    for (int d = 0; d < n && n == wanted; d++) /* else it may be longer than it was read */
        least = list[d] < least ? list[d] : least;
    return gsi_fortran_check_list (call, what, n, wanted, least);
}

gs_status_t gsi_fortran_kept_bind (gs_status_t st, int64_t *handle, void *thing, void *more,
                                   const gs_comm_t *comm, const char *name)
{
    gsi_fortran_handle_bind (*handle, st == GS_OK ? thing : NULL, more, comm, name);
    if (st != GS_OK)
        free (more);
    return st;
}

gs_status_t gsi_fortran_kept_prepare (int64_t comm, enum gsi_fortran_kind kind, const char *call,
                                      size_t bytes, gs_comm_t **found, int64_t *handle,
                                      void **more)
{
    gs_status_t st = gsi_fortran_handle_comm (comm, call, found);

    *more = NULL;
    if (st != GS_OK)
        return st;
    if (bytes && !(*more = calloc (1, bytes)))
        return gsi_fail (GS_ERR_NOMEM, "%s: out of memory", call);
    if ((st = gsi_fortran_handle_open (kind, handle)) != GS_OK)
        free (*more);
    return st;
}

void gsi_fortran_comm_keep (int64_t *handle, gs_status_t st, gs_comm_t *comm)
{
    if (st == GS_OK && comm) {
        gsi_fortran_handle_bind (*handle, comm, NULL, comm, gs_comm_name (comm));
        return;
    }
    gsi_fortran_handle_bind (*handle, NULL, NULL, NULL, NULL);
    *handle = 0;
}

gs_status_t gsi_fortran_comm_handle (gs_comm_t *comm, int64_t *handle)
{
    gs_status_t st = GS_OK;

    if (gs_comm_rank (comm) < 0)
        return gsi_fail (comm ? GS_ERR_STATE : GS_ERR_ARG,
                         "gs_comm_from_c_ptr: address is %s: give a gs_comm_t * that lives",
                         comm ? "no communicator, or one that was destroyed" : "NULL");
    if (!(*handle = gsi_fortran_handle_of (comm)))
        st = gsi_fortran_handle_open (GSI_FORTRAN_COMM, handle);
    if (st == GS_OK) /* C may have ended one and made another at its address */
        gsi_fortran_comm_keep (handle, GS_OK, comm);
    return st;
}

static gs_status_t destroy (void *thing, enum gsi_fortran_kind kind)
{
    switch (kind) {
    case GSI_FORTRAN_COMM: return gs_comm_destroy (thing);
    case GSI_FORTRAN_REDUCER: return gs_reducer_destroy (thing);
    case GSI_FORTRAN_BOUNDARY: return gs_boundary_destroy (thing);
    case GSI_FORTRAN_HALO: return gs_halo_destroy (thing);
    case GSI_FORTRAN_POOL: return gs_pool_destroy (thing);
    case GSI_FORTRAN_CKPT: break;
    }
    return gs_ckpt_destroy (thing);
}

gs_status_t gsi_fortran_kept_end (int64_t handle, enum gsi_fortran_kind kind, const char *call,
                                  void **more)
{
    void *thing, *kept;
    gs_status_t st = gsi_fortran_handle_take (handle, kind, call, &thing);

    *more = NULL;
    if (!thing)
        return st;
    kept = gsi_fortran_handle_more (handle);
    st = gsi_fortran_handle_close (handle, thing, destroy (thing, kind));
    if (st != GS_ERR_STATE)
        *more = kept;
    return st;
}

static gs_status_t end (int64_t handle, enum gsi_fortran_kind kind, const char *call)
{
    void *more;
    gs_status_t st = gsi_fortran_kept_end (handle, kind, call, &more);

    free (more);
    return st;
}

gs_status_t gsi_fortran_comm_destroy (int64_t comm)
{
    return end (comm, GSI_FORTRAN_COMM, "gs_comm_destroy");
}

gs_status_t gsi_fortran_reducer_destroy (int64_t reducer, void **hook, void **averaged)
{
    void *more;
    gs_status_t st =
        gsi_fortran_kept_end (reducer, GSI_FORTRAN_REDUCER, "gs_reducer_destroy", &more);
    struct gsi_fortran_gradients *gradients = more;

    *hook = gradients ? gradients->hook : NULL;
    *averaged = gradients ? gradients->averaged : NULL;
    if (gradients)
        free (gradients->list);
    free (gradients);
    return st;
}

gs_status_t gsi_fortran_boundary_destroy (int64_t boundary)
{
    return end (boundary, GSI_FORTRAN_BOUNDARY, "gs_boundary_destroy");
}

gs_status_t gsi_fortran_halo_destroy (int64_t halo)
{
    return end (halo, GSI_FORTRAN_HALO, "gs_halo_destroy");
}

gs_status_t gsi_fortran_ckpt_destroy (int64_t ckpt)
{
    return end (ckpt, GSI_FORTRAN_CKPT, "gs_ckpt_destroy");
}

/* ---- Reducers ---- */

gs_status_t gsi_fortran_reducer_create (int64_t comm, const gs_reducer_opts_t *opts,
                                        int64_t *reducer)
{
    void *more;
    gs_reducer_t *thing;
    gs_comm_t *found;
    gs_status_t st =
        gsi_fortran_kept_prepare (comm, GSI_FORTRAN_REDUCER, "gs_reducer_create",
                                  sizeof (struct gsi_fortran_gradients), &found, reducer, &more);

    if (st != GS_OK)
        return st;
    ((struct gsi_fortran_gradients *) more)->comm = comm;
    st = gs_reducer_create (found, opts, &thing);
    return gsi_fortran_kept_bind (st, reducer, thing, more, found, opts->name);
}

/* Finds a reducer, and what is kept beside it. */
static gs_status_t find_reducer (int64_t handle, const char *call, gs_reducer_t **reducer,
                                 struct gsi_fortran_gradients **gradients)
{
    void *thing;
    gs_status_t st = gsi_fortran_handle_find (handle, GSI_FORTRAN_REDUCER, call, &thing);

    *reducer = thing;
    *gradients = gsi_fortran_handle_more (handle);
    return st;
}

/* A gradient without its address. */
static gs_status_t set_gradient (struct gsi_fortran_gradient *gradient, int dims,
                                 const int64_t *shape, int dtype, int lowers,
                                 const int64_t *lower)
{
    if (dims > GS_REDUCER_DIMS_MAX)
        return gsi_fail (GS_ERR_ARG, "gs_reducer_add: shape has %d extents: give up to %d", dims,
                         GS_REDUCER_DIMS_MAX);
    if (lower && lowers != dims)
        return gsi_fail (GS_ERR_ARG,
                         "gs_reducer_add: lower is of size %d, but the gradient of rank %d: give "
                         "a bound for each dimension",
                         lowers, dims);
    gradient->dims = dims;
    gradient->dtype = dtype;
    for (int i = 0; i < dims; i++) {
        if (shape[i] < 0)
            return gsi_fail (GS_ERR_ARG,
                             "gs_reducer_add: shape(%d) is %" PRId64 ": give 0 or more", i + 1,
                             shape[i]);
        gradient->shape[i] = shape[i];
        gradient->lower[i] = lower ? lower[i] : 1;
    }
    return GS_OK;
}

gs_status_t gsi_fortran_reducer_add (int64_t reducer, const char *name, int dims,
                                     const int64_t *shape, int dtype, void *data, int lowers,
                                     const int64_t *lower, int *index)
{
    struct gsi_fortran_gradient added = {.address = data}, *more;
    struct gsi_fortran_gradients *gradients;
    size_t extents[GS_REDUCER_DIMS_MAX];
    gs_reducer_t *thing;
    int number;
    gs_status_t st = find_reducer (reducer, "gs_reducer_add", &thing, &gradients);

    if (st != GS_OK || (st = set_gradient (&added, dims, shape, dtype, lowers, lower)) != GS_OK)
        return st;
    for (int d = 0; d < dims; d++)
        extents[d] = (size_t) shape[d];
    more = realloc (gradients->list, ((size_t) gradients->count + 1) * sizeof (*more));
    if (!more)
        return gsi_fail (GS_ERR_NOMEM, "gs_reducer_add: out of memory");
    gradients->list = more;
    st = gs_reducer_add (thing, name, dims, extents, (gs_dtype_t) dtype, data, &number);
    if (st != GS_OK)
        return st;
    added.number = number;
    gradients->list[gradients->count++] = added;
    *index = number;
    return GS_OK;
}

gs_status_t gsi_fortran_reducer_broadcast (int64_t reducer, void *const *params, int number,
                                           int root, gs_stream_t stream)
{
    struct gsi_fortran_gradients *gradients;
    gs_reducer_t *thing;
    void *more;
    gs_status_t st = find_reducer (reducer, "gs_reducer_broadcast", &thing, &gradients);

    if (st != GS_OK)
        return st;
    if (number != gradients->count)
        return gsi_fail (
            GS_ERR_ARG,
            "gs_reducer_broadcast: params has %d addresses, but there are %d gradients: "
            "give one for each, c_null_ptr to leave it out",
            number, gradients->count);
    if (gs_reducer_get_grad (thing, number, &more) == GS_OK)
        return gsi_fail (GS_ERR_ARG,
                         "gs_reducer_broadcast: params has %d addresses, but there are more "
                         "gradients, which were added in C: broadcast there",
                         number);
    return gs_reducer_broadcast (thing, params, root, stream);
}

void gsi_fortran_reducer_comm (int64_t reducer, int64_t *comm)
{
    const struct gsi_fortran_gradients *gradients = gsi_fortran_handle_more (reducer);

    *comm = gradients ? gradients->comm : 0;
}

gs_status_t gsi_fortran_reducer_set_callback (int64_t reducer, int averaged, gs_bucket_f forward,
                                              void *box, void **other)
{
    struct gsi_fortran_gradients *kept;
    gs_reducer_t *thing;
    void **slot;
    gs_status_t st = find_reducer (
        reducer, averaged ? "gs_reducer_set_averaged" : "gs_reducer_set_hook", &thing, &kept);

    *other = box;
    if (st != GS_OK)
        return st;
    if (!box)
        forward = NULL;
    st = averaged ? gs_reducer_set_averaged (thing, forward, box)
                  : gs_reducer_set_hook (thing, forward, box);
    if (st != GS_OK)
        return st;
    slot = averaged ? &kept->averaged : &kept->hook;
    *other = *slot;
    *slot = box;
    return GS_OK;
}

/* ---- Boundaries and halos ---- */

gs_status_t gsi_fortran_boundary_create (int64_t comm, int from, int to, const int64_t *shape,
                                         int dims, int dtype, int64_t *boundary)
{
    static const char call[] = "gs_boundary_create";
    struct gsi_fortran_crossing *crossing;
    void *more;
    size_t extents[DIMS_MAX];
    gs_boundary_t *thing;
    gs_comm_t *found;
    gs_status_t st = gsi_fortran_handle_comm (comm, call, &found);

    if (st == GS_OK)
        st = check (call, "shape", dims, dims, shape);
    if (st == GS_OK)
        st = gsi_fortran_kept_prepare (comm, GSI_FORTRAN_BOUNDARY, call, sizeof (*crossing),
                                       &found, boundary, &more);
    if (st != GS_OK)
        return st;
    crossing = more;
    turn (dims, shape, extents);
    st = gs_boundary_create (found, from, to, dims, extents, (gs_dtype_t) dtype, &thing);
    crossing->dims = dims;
    crossing->dtype = dtype;
    for (int d = 0; d < dims && st == GS_OK; d++)
        crossing->shape[d] = shape[d];
    return gsi_fortran_kept_bind (st, boundary, thing, crossing, found, gs_comm_name (found));
}

gs_status_t gsi_fortran_halo_create (int64_t comm, int dims, const int *grid,
                                     const int64_t *extents, int extents_size,
                                     const int64_t *width, int width_size, const int *periodic,
                                     int periodic_size, int dtype, int64_t *halo)
{
    static const char call[] = "gs_halo_create";
    struct gsi_fortran_crossing *crossing;
    void *more;
    size_t turned[2][DIMS_MAX];
    int ranks[DIMS_MAX], ring[DIMS_MAX], n = dims < DIMS_MAX ? dims : DIMS_MAX;
    gs_halo_t *thing;
    gs_comm_t *found;
    gs_status_t st = gsi_fortran_handle_comm (comm, call, &found);

    if (st == GS_OK)
        st = check (call, "extents", extents_size, dims, extents);
    if (st == GS_OK)
        st = check (call, "width", width_size, dims, width);
    if (st == GS_OK)
        st = gsi_fortran_check_list (call, "periodic", periodic_size, dims, 0);
    if (st == GS_OK)
        st = gsi_fortran_kept_prepare (comm, GSI_FORTRAN_HALO, call, sizeof (*crossing), &found,
                                       halo, &more);
    if (st != GS_OK)
        return st;
    crossing = more;
    turn (dims, extents, turned[0]);
    turn (dims, width, turned[1]);
    for (int d = 0; d < n; d++) {
        ranks[n - 1 - d] = grid[d];
        ring[n - 1 - d] = periodic[d];
    }
    st = gs_halo_create (found, dims, ranks, turned[0], turned[1], ring, (gs_dtype_t) dtype,
                         &thing);
    crossing->dims = dims;
    crossing->dtype = dtype;
    for (int d = 0; d < dims && st == GS_OK; d++)
        crossing->shape[d] = extents[d] + 2 * width[d];
    return gsi_fortran_kept_bind (st, halo, thing, crossing, found, gs_comm_name (found));
}

static gs_status_t find_crossing (int64_t handle, enum gsi_fortran_kind kind, const char *call,
                                  int dtype, void **thing)
{
    const struct gsi_fortran_crossing *crossing;
    gs_status_t st = gsi_fortran_handle_find (handle, kind, call, thing);

    if (st != GS_OK)
        return st;
    crossing = gsi_fortran_handle_more (handle);
    if (dtype == crossing->dtype)
        return GS_OK;
    return gsi_fail (GS_ERR_ARG, "%s: dtype is %d, but it was created with %d: give the same",
                     call, dtype, crossing->dtype);
}

gs_status_t gsi_fortran_boundary_forward_at (int64_t boundary, void *activations, int dtype,
                                             gs_stream_t stream)
{
    void *thing;
    gs_status_t st =
        find_crossing (boundary, GSI_FORTRAN_BOUNDARY, "gs_boundary_forward", dtype, &thing);

    return st != GS_OK ? st : gs_boundary_forward (thing, activations, stream);
}

gs_status_t gsi_fortran_boundary_backward_at (int64_t boundary, void *gradients, int dtype,
                                              gs_stream_t stream)
{
    void *thing;
    gs_status_t st =
        find_crossing (boundary, GSI_FORTRAN_BOUNDARY, "gs_boundary_backward", dtype, &thing);

    return st != GS_OK ? st : gs_boundary_backward (thing, gradients, stream);
}

gs_status_t gsi_fortran_halo_exchange_at (int64_t halo, void *field, int dtype,
                                          gs_stream_t stream)
{
    void *thing;
    gs_status_t st = find_crossing (halo, GSI_FORTRAN_HALO, "gs_halo_exchange", dtype, &thing);

    return st != GS_OK ? st : gs_halo_exchange (thing, field, stream);
}

gs_status_t gsi_fortran_halo_adjoint_at (int64_t halo, void *grad, int dtype, gs_stream_t stream)
{
    void *thing;
    gs_status_t st = find_crossing (halo, GSI_FORTRAN_HALO, "gs_halo_adjoint", dtype, &thing);

    return st != GS_OK ? st : gs_halo_adjoint (thing, grad, stream);
}

/* ---- Checkpoints ---- */

gs_status_t gsi_fortran_ckpt_create (int64_t comm, const char *dir, const gs_ckpt_opts_t *opts,
                                     int64_t *ckpt)
{
    void *more;
    gs_ckpt_t *thing;
    gs_comm_t *found;
    gs_status_t st = gsi_fortran_kept_prepare (comm, GSI_FORTRAN_CKPT, "gs_ckpt_create", 0,
                                               &found, ckpt, &more);

    if (st != GS_OK)
        return st;
    st = gs_ckpt_create (found, dir, opts, &thing);
    return gsi_fortran_kept_bind (st, ckpt, thing, more, found, opts->name);
}

/* Has the file tell that an array is one of Fortran, and its bounds. */
static gs_status_t bound (gs_ckpt_t *ckpt, const char *name, int dims, const int64_t *lower)
{
    int64_t ones[DIMS_MAX];

    for (int d = 0; d < DIMS_MAX; d++)
        ones[d] = 1;
    return dims > DIMS_MAX ? GS_OK : gs_ckpt_set_bounds (ckpt, name, lower ? lower : ones);
}

/* Adds by [adder] what has one shape on all ranks. */
static gs_status_t
add (gs_status_t (*adder) (gs_ckpt_t *, const char *, int, const size_t *, gs_dtype_t, void *),
     const char *call, int64_t ckpt, const char *name, const struct gsi_fortran_gradient *array,
     int dims, const int64_t *shape, int lowers, const int64_t *lower)
{
    size_t extents[DIMS_MAX];
    void *plan;
    gs_status_t st = gsi_fortran_handle_find (ckpt, GSI_FORTRAN_CKPT, call, &plan);

    if (st == GS_OK)
        st = check (call, "shape", dims, dims, shape);
    if (st == GS_OK && lower)
        st = gsi_fortran_check_list (call, "lower", lowers, dims, 0);
    if (st != GS_OK)
        return st;
    turn (dims, shape, extents);
    st = adder (plan, name, dims, extents, (gs_dtype_t) array->dtype, array->address);
    return st != GS_OK ? st : bound (plan, name, dims, lower);
}

gs_status_t gsi_fortran_ckpt_add_replicated (int64_t ckpt, const char *name, int dims,
                                             const int64_t *shape, int dtype, void *data,
                                             int lowers, const int64_t *lower)
{
    struct gsi_fortran_gradient array = {.dtype = dtype, .address = data};

    return add (gs_ckpt_add_replicated, "gs_ckpt_add_replicated", ckpt, name, &array, dims, shape,
                lowers, lower);
}

gs_status_t gsi_fortran_ckpt_add_per_rank (int64_t ckpt, const char *name, int dims,
                                           const int64_t *shape, int dtype, void *data,
                                           int lowers, const int64_t *lower)
{
    struct gsi_fortran_gradient array = {.dtype = dtype, .address = data};

    return add (gs_ckpt_add_per_rank, "gs_ckpt_add_per_rank", ckpt, name, &array, dims, shape,
                lowers, lower);
}

gs_status_t gsi_fortran_ckpt_add_sharded (int64_t ckpt, const char *name, int dims,
                                          const int64_t *extents, int offsets_size,
                                          const int64_t *offsets, int shape_size,
                                          const int64_t *shape, int dtype, void *data, int lowers,
                                          const int64_t *lower)
{
    static const char call[] = "gs_ckpt_add_sharded";
    size_t turned[3][DIMS_MAX];
    void *plan;
    gs_status_t st = gsi_fortran_handle_find (ckpt, GSI_FORTRAN_CKPT, call, &plan);

    if (st == GS_OK)
        st = check (call, "extents", dims, dims, extents);
    if (st == GS_OK)
        st = check (call, "offsets", offsets_size, dims, offsets);
    if (st == GS_OK)
        st = check (call, "shape", shape_size, dims, shape);
    if (st == GS_OK && lower)
        st = gsi_fortran_check_list (call, "lower", lowers, dims, 0);
    if (st != GS_OK)
        return st;
    turn (dims, extents, turned[0]);
    turn (dims, offsets, turned[1]);
    turn (dims, shape, turned[2]);
    st = gs_ckpt_add_sharded (plan, name, dims, turned[0], turned[1], turned[2],
                              (gs_dtype_t) dtype, data);
    return st != GS_OK ? st : bound (plan, name, dims, lower);
}
