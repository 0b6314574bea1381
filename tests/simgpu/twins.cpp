/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * twins - the kernels of cuda/ as host functions: the same source, compiled for hosts.
 *
 * Each struct below stands for the instances of one kernel: the kernel, for its name and its
 * parameters; reach (), which replaces the device addresses among the arguments by the engine's
 * own; and thread (), the work of one thread. The lists at the end name all instances that the
 * sources of cuda/ launch; twins_test.c finds the one that is forgotten.
 */
#include "simgpu/twins.h"

#include <dlfcn.h>
#include <string.h>

#include <tuple>
#include <utility>
#include <vector>

#include "simgpu/device.h"
#include "simgpu/engine.h"

#include "cuda/box.cuh"
#include "cuda/convert.cuh"
#include "cuda/gradient.cuh"
#include "cuda/inspect.cuh"
#include "cuda/reduce.cuh"
#include "cuda/share.cuh"

#define REDUCED  f16, bf16, f8_e4m3, f8_e5m2
#define FLOATING REDUCED, float, double

/* Replaces the address of [count] elements; false after reporting that they are not there. */
template <class T> static bool reach_array (T *&p, size_t count, const char *who)
{
    if (count)
        p = (T *) sim_alias (p, count * sizeof (T), who);
    return p || !count;
}

template <class T> static bool reach_bytes (T *&p, size_t bytes, const char *who)
{
    if (bytes)
        p = (T *) sim_alias (p, bytes, who);
    return p || !bytes;
}

template <class From, class To, class Op, int N> struct convert_twin {
    static constexpr auto kernel = convert<From, To, Op, N>;

    static bool reach (table<N> &t, typename Op::factor_t)
    {
        for (unsigned i = 0; i < t.number; i++)
            if (!reach_bytes (t.src[i], t.count[i] * sizeof (From), "convert") ||
                !reach_bytes (t.dst[i], t.count[i] * sizeof (To), "convert"))
                return false;
        return true;
    }
    static void thread (const table<N> &t, typename Op::factor_t factor)
    {
        convert_block<From, To, Op> (t, factor);
    }
};

template <class T, int N> struct find_nonfinite_twin {
    static constexpr auto kernel = find_nonfinite<T, N>;

    static bool reach (table<N> &t, unsigned *&first)
    {
        for (unsigned i = 0; i < t.number; i++)
            if (!reach_bytes (t.src[i], t.count[i] * sizeof (T), "find_nonfinite"))
                return false;
        return reach_array (first, 1, "find_nonfinite");
    }
    static void thread (const table<N> &t, unsigned *first)
    {
        find_nonfinite_block<T> (t, first);
    }
};

template <class T, class How> struct box_twin {
    static constexpr auto kernel = box<T, How>;
    static constexpr auto thread = box<T, How>;

    static bool reach (T *&array, T *&packed, const box_shape &s)
    {
        size_t lines = s.items / s.chunks, last = lines - 1;

        last = last / s.rows * s.plane + last % s.rows * s.row;
        return reach_array (array, last + s.run, "box") &&
               reach_array (packed, lines * s.run, "box");
    }
};

struct digest_twin {
    static constexpr auto kernel = digest;
    static constexpr auto thread = digest;

    static bool reach (const unsigned char *&data, size_t bytes, uint64_t,
                       unsigned long long *&sum)
    {
        return reach_array (data, bytes, "digest") && reach_array (sum, 1, "digest");
    }
};

template <class From, class To> struct quantize_twin {
    static constexpr auto kernel = quantize<From, To>;
    static constexpr auto thread = quantize<From, To>;

    static bool reach (const From *&src, To *&dst, From *&rest, size_t count)
    {
        return reach_array (src, count, "quantize") && reach_array (dst, count, "quantize") &&
               reach_array (rest, count, "quantize");
    }
};

template <class T> struct squares_twin {
    static constexpr auto kernel = squares<T>;
    static constexpr auto thread = squares<T>;

    static bool reach (const T *&data, size_t count, double *&parts)
    {
        return reach_array (data, count, "squares") &&
               reach_array (parts, SQUARES_PARTS, "squares");
    }
};

struct add_squares_twin {
    static constexpr auto kernel = add_squares;
    static constexpr auto thread = add_squares;

    static bool reach (const double *&parts, double *&sum)
    {
        return reach_array (parts, SQUARES_PARTS, "add_squares") &&
               reach_array (sum, 1, "add_squares");
    }
};

struct norm_factor_twin {
    static constexpr auto kernel = norm_factor;
    static constexpr auto thread = norm_factor;

    static bool reach (const char *&sums, size_t stride, int ranks, double, double *&factor)
    {
        return reach_array (sums, (size_t) (ranks - 1) * stride + sizeof (double),
                            "norm_factor") &&
               reach_array (factor, 1, "norm_factor");
    }
};

template <class How> static bool reach_scale (How &)
{
    return true;
}

template <class T, class A> static bool reach_scale (averaging<T, A> &how)
{
    return !how.scale || reach_array (how.scale, (size_t) how.sources, "reduce");
}

template <class To, class T, class How, int V> struct reduce_twin {
    static constexpr auto kernel = reduce<To, T, How, V>;
    static constexpr auto thread = reduce<To, T, How, V>;

    static bool reach (To *&dst, const T *&src, size_t count, How &how)
    {
        size_t all = how.sources ? (size_t) (how.sources - 1) * how.stride + count : 0;

        return reach_array (dst, count, "reduce") && reach_array (src, all, "reduce") &&
               reach_scale (how);
    }
};

template <class T> struct move_twin {
    static constexpr auto kernel = move_alive<T>;
    static constexpr auto thread = move_alive<T>;

    static bool reach (T *&dst, const T *&src, size_t count, const uint32_t *&dead)
    {
        return reach_array (dst, count, "move_alive") && reach_array (src, count, "move_alive") &&
               reach_array (dead, 1, "move_alive");
    }
};

struct put_twin {
    static constexpr auto kernel = set_flags_alive;
    static constexpr auto thread = set_flags_alive;

    static bool reach (uint32_t *&first, size_t, uint32_t, const uint32_t *&dead)
    {
        return reach_array (first, 1, "set_flags_alive") &&
               reach_array (dead, 1, "set_flags_alive");
    }
};

/* What the runtime needs to know of a kernel with the parameters P. */
template <class Twin, class Kernel> struct entry;
template <class Twin, class... P> struct entry<Twin, void (*const) (P...)> {
    static constexpr size_t bytes[] = {sizeof (P)...};

    template <class T> static T copy_of (const void *argument)
    {
        T x;

        memcpy (&x, argument, sizeof (x));
        return x;
    }

    template <size_t... I>
    static void run_all (unsigned grid, unsigned block, void *const *arguments,
                         std::index_sequence<I...>)
    {
        std::tuple<P...> a (copy_of<P> (arguments[I])...);

        if (!Twin::reach (std::get<I> (a)...))
            return;
        gridDim = dim3 (grid, 1, 1);
        for (blockIdx.x = 0; blockIdx.x < grid; blockIdx.x++)
            for (threadIdx.x = 0; threadIdx.x < block; threadIdx.x++)
                Twin::thread (std::get<I> (a)...);
    }

    static void run (unsigned grid, unsigned block, void *const *arguments)
    {
        run_all (grid, block, arguments, std::index_sequence_for<P...> ());
    }
};

typedef std::vector<struct sim_twin> twin_list;

/* The name is the one that this compiler gave the kernel: mangled as nvcc does. */
template <class Twin> static void add (twin_list &list)
{
    typedef entry<Twin, decltype (Twin::kernel)> e;
    Dl_info info = {};

    dladdr ((const void *) Twin::kernel, &info);
    list.push_back ({info.dli_sname ? info.dli_sname : "", sizeof (e::bytes) / sizeof (size_t),
                     e::bytes, e::run});
}

template <class From, class To, class Op> static void add_convert (twin_list &list)
{
    add<convert_twin<From, To, Op, FEW_RUNS>> (list);
    add<convert_twin<From, To, Op, MANY_RUNS>> (list);
}

template <class From, class... To> static void add_scaling (twin_list &list)
{
    (add_convert<From, To, scaling<From, To>> (list), ...);
}

template <class... T> static void add_floating (twin_list &list)
{
    (add_scaling<T, FLOATING> (list), ...);
    (add<squares_twin<T>> (list), ...);
    (add<find_nonfinite_twin<T, FEW_RUNS>> (list), ...);
    (add<find_nonfinite_twin<T, MANY_RUNS>> (list), ...);
}

template <class From, class... To> static void add_rounding (twin_list &list)
{
    (add<quantize_twin<From, To>> (list), ...);
}

template <class... T> static void add_copying (twin_list &list)
{
    (add_convert<T, T, copying<T>> (list), ...);
}

template <class To, class T, class How> static void add_reduce (twin_list &list)
{
    add<reduce_twin<To, T, How, 16 / sizeof (T)>> (list);
    add<reduce_twin<To, T, How, 1>> (list);
}

template <class T, class A> static void add_averaging (twin_list &list)
{
    add_reduce<T, T, averaging<T, A>> (list);
    if constexpr (!std::is_same_v<T, A>) { /* sums on the way */
        add_reduce<A, T, averaging<T, A>> (list);
        add_reduce<T, A, averaging<A, A>> (list);
    }
}

template <class... T> static void add_combining (twin_list &list)
{
    (add_reduce<T, T, combining<T>> (list), ...);
}

template <class... T> static void add_moving (twin_list &list)
{
    (add<box_twin<T, taking<T>>> (list), ...);
    (add<box_twin<T, taking_away<T>>> (list), ...);
    (add<box_twin<T, putting<T>>> (list), ...);
}

template <class... T> static void add_adding (twin_list &list)
{
    (add<box_twin<T, adding<T>>> (list), ...);
}

static twin_list list_of_twins ()
{
    twin_list list;

    add_floating<FLOATING> (list);
    add_copying<uint8_t, uint16_t, uint32_t, uint64_t> (list);
    add_moving<uint8_t, uint16_t, uint32_t, uint64_t, word<uint64_t, 2>> (list);
    add_adding<FLOATING> (list);
    add<digest_twin> (list);
    add_rounding<float, REDUCED> (list);
    add_rounding<double, REDUCED> (list);
    add<add_squares_twin> (list);
    add<norm_factor_twin> (list);
    add<move_twin<uint8_t>> (list);
    add<move_twin<word<uint64_t, 2>>> (list);
    add<put_twin> (list);
#define GSI_REDUCED(NAME, name, ...) add_averaging<name, float> (list);
#include "base/dtype.def"
    add_averaging<float, float> (list);
    add_averaging<double, double> (list);
    add_combining<FLOATING, uint8_t, uint16_t, uint32_t, uint64_t> (list);
    add_reduce<complex_of<float>, complex_of<float>, multiplying<complex_of<float>>> (list);
    add_reduce<complex_of<double>, complex_of<double>, multiplying<complex_of<double>>> (list);
    return list;
}

const struct sim_twin *sim_twin_find (const char *name)
{
    static const twin_list list = list_of_twins ();

    for (const struct sim_twin &twin : list)
        if (!strcmp (twin.name, name))
            return &twin;
    return nullptr;
}
