/* SPDX-License-Identifier: BSD-3-Clause */
/* box - launches what moves a box between an array and packed memory. */
#include "cuda/box.cuh"

#include "cuda/kernels.h"
#include "cuda/launch.cuh"

#define BOX_BLOCKS 2048 /* fill a GPU */

/* A box at the address where it begins, with all lengths in elements of a kernel. */
struct place {
    char *array;
    void *packed;
    struct gsi_box box;
};

static unsigned lanes_of (size_t run)
{
    unsigned lanes = 1;

    while (lanes < run && lanes < THREADS)
        lanes *= 2;
    return lanes;
}

template <class T, class How> static cudaError_t launch (const place &p, cudaStream_t stream)
{
    box_shape s = {p.box.rows, p.box.run, p.box.row, p.box.plane, 0, 0, lanes_of (p.box.run)};
    size_t teams = THREADS / s.lanes, blocks;

    s.chunks = (s.run + BOX_CHUNK (s.lanes) - 1) / BOX_CHUNK (s.lanes);
    s.items = p.box.planes * s.rows * s.chunks;
    blocks = (s.items + teams - 1) / teams;
    if (!blocks)
        return cudaSuccess;
    if (blocks > BOX_BLOCKS)
        blocks = BOX_BLOCKS;
    return launch_kernel (box<T, How>, blocks, THREADS, stream, (T *) p.array, (T *) p.packed, s);
}

template <class T>
static cudaError_t launch_move (enum gsi_box_way way, const place &p, cudaStream_t stream)
{
    switch (way) {
    case GSI_BOX_TAKE: return launch<T, taking<T>> (p, stream);
    case GSI_BOX_TAKE_AWAY: return launch<T, taking_away<T>> (p, stream);
    case GSI_BOX_PUT: return launch<T, putting<T>> (p, stream);
    default: return cudaErrorInvalidValue;
    }
}

/* [box] of elements of [size] bytes, in elements of [kernel] bytes. */
static place in_elements (const struct gsi_box *box, void *array, void *packed, size_t size,
                          size_t kernel)
{
    place p = {(char *) array + box->begin * size, packed, *box};

    p.box.run = box->run * size / kernel;
    p.box.row = box->row * size / kernel;
    p.box.plane = box->plane * size / kernel;
    return p;
}

/* The lowest bit of all addresses and lengths, 16 at most. */
static size_t largest_word (const struct gsi_box *box, const void *array, const void *packed,
                            size_t size)
{
    size_t bits = (size_t) array | (size_t) packed | 16;

    bits |= box->begin * size | box->run * size;
    bits |= box->rows > 1 ? box->row * size : 0;
    bits |= box->planes > 1 ? box->plane * size : 0;
    return bits & -bits;
}

static cudaError_t move (enum gsi_box_way way, const struct gsi_box *box, void *array,
                         void *packed, size_t size, cudaStream_t stream)
{
    size_t bytes = largest_word (box, array, packed, size);
    place p = in_elements (box, array, packed, size, bytes);

    switch (bytes) {
    case 16: return launch_move<word<uint64_t, 2>> (way, p, stream);
    case 8: return launch_move<uint64_t> (way, p, stream);
    case 4: return launch_move<uint32_t> (way, p, stream);
    case 2: return launch_move<uint16_t> (way, p, stream);
    default: return launch_move<uint8_t> (way, p, stream);
    }
}

cudaError_t gsi_cuda_box (enum gsi_box_way way, gs_dtype_t dtype, const struct gsi_box *box,
                          void *array, void *packed, cudaStream_t stream)
{
    gs_dtype_t part = gsi_part_of (dtype);
    size_t size = gs_dtype_size (dtype);
    place p;

    if (way != GSI_BOX_ADD)
        return move (way, box, array, packed, size, stream);
    p = in_elements (box, array, packed, size, gs_dtype_size (part));
    return with_floating (
        part, [&] (auto x) { return launch<decltype (x), adding<decltype (x)>> (p, stream); });
}
