# SPDX-License-Identifier: BSD-3-Clause
#
# GS_CHECK_CUDA
#
# The CUDA toolkit: --with-cuda=DIR, CUDA_HOME, or nvcc in PATH; DIR may also be nvidia/cu13 of
# the packages that the Python index has. Sets NVCC, GS_CUDA_CPPFLAGS, GS_CUDA_LIBS (the shared
# runtime: -cudart static would hide it from replacement; with a run path where the loader would
# not find it, of the kind that LD_LIBRARY_PATH overrides) and GS_CUDA_ARCH_FLAGS, by default code
# for A100 and H100 and intermediate code for what comes later; the variable GS_CUDA_ARCH
# overrides it. GS_CUDART is the runtime's file name, such as libcudart.so.13, as programs ask for
# it. Policy: cuda* calls only in cuda/.
AC_DEFUN([GS_CHECK_CUDA], [
    GS_WITH([cuda], [GPUs])
    AC_ARG_VAR([NVCC], [CUDA compiler])
    AC_ARG_VAR([NVCCFLAGS], [CUDA compiler flags])
    AC_ARG_VAR([GS_CUDA_ARCH], [compute capabilities to compile for; default "80 90"])
    GS_CUDA_ARCH_FLAGS=
    for gs_arch in ${GS_CUDA_ARCH:-80 90}; do
        GS_CUDA_ARCH_FLAGS="$GS_CUDA_ARCH_FLAGS -gencode arch=compute_$gs_arch,code=sm_$gs_arch"
    done
    GS_CUDA_ARCH_FLAGS="$GS_CUDA_ARCH_FLAGS -gencode arch=compute_$gs_arch,code=compute_$gs_arch"
    gs_have_cuda=no
    AS_IF([test "$gs_want_cuda" != no], [
        gs_cuda=${gs_dir_cuda:-$CUDA_HOME}
        AC_PATH_PROG([NVCC], [nvcc], [], [${gs_cuda:+$gs_cuda/bin$PATH_SEPARATOR}$PATH])
        AS_IF([test -z "$gs_cuda" && test -n "$NVCC"],
              [gs_cuda=`dirname "\`dirname "$NVCC"\`"`])
        gs_cuda_lib=$gs_cuda/lib64
        AS_IF([test ! -d "$gs_cuda_lib"], [gs_cuda_lib=$gs_cuda/lib])
        GS_CUDA_CPPFLAGS="-isystem $gs_cuda/include"
        GS_DASH_L([gs_cudart], [$gs_cuda_lib], [cudart])
        GS_CUDA_LIBS="-L$gs_cuda_lib $gs_cudart"
        gs_save_CPPFLAGS=$CPPFLAGS gs_save_LIBS=$LIBS
        CPPFLAGS="$CPPFLAGS $GS_CUDA_CPPFLAGS" LIBS="$GS_CUDA_LIBS $LIBS"
        AC_MSG_CHECKING([for the CUDA runtime])
        AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <cuda_runtime_api.h>]],
                                        [[int v; return cudaRuntimeGetVersion (&v);]])],
                       [gs_link=yes; gs_start=no
                        AS_IF([test "$cross_compiling" != yes && GS_STARTS], [gs_start=yes])
                        GS_CUDART=`${OBJDUMP:-objdump} -p conftest$EXEEXT 2>/dev/null \
                            | $SED -n 's/^ *NEEDED *\(libcudart.*\)$/\1/p'`],
                       [gs_link=no])
        CPPFLAGS=$gs_save_CPPFLAGS LIBS=$gs_save_LIBS
        AS_IF([test "$gs_link" = yes && test -n "$NVCC"],
              [AC_MSG_RESULT([yes, $gs_cuda])
               AC_MSG_CHECKING([whether the loader finds it])
               AC_MSG_RESULT([$gs_start])
               AS_IF([test "$gs_start" = no],
                     [GS_CUDA_LIBS="$GS_CUDA_LIBS -Wl,-rpath,$gs_cuda_lib -Wl,--enable-new-dtags"])
               GS_FOUND([cuda], [`"$NVCC" --version | $SED -n 's/.*release \(@<:@0-9.@:>@*\).*/\1/p'`])
               AC_DEFINE([HAVE_CUDA], [1], [the CUDA toolkit is there])],
              [AC_MSG_RESULT([no])
               GS_CUDA_CPPFLAGS= GS_CUDA_LIBS=
               GS_NOT_FOUND([cuda], [nvcc, cuda_runtime_api.h and libcudart])])
    ])
    AC_SUBST([GS_CUDA_CPPFLAGS])
    AC_SUBST([GS_CUDA_LIBS])
    AC_SUBST([GS_CUDART])
    AC_SUBST([GS_CUDA_ARCH_FLAGS])
    AM_CONDITIONAL([HAVE_CUDA], [test "$gs_have_cuda" = yes])
    AM_CONDITIONAL([HAVE_SIMGPU], [test "$gs_have_cuda" = yes && test -n "$GS_CUDART"])
])

# GS_STARTS: shell text that is true if the linked test program runs with the loader's own paths.
# A LD_LIBRARY_PATH of today, such as a module's, may be gone tomorrow.
m4_define([GS_STARTS], [(unset LD_LIBRARY_PATH; ./conftest$EXEEXT >/dev/null 2>&1)])
