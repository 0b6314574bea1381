/* SPDX-License-Identifier: BSD-3-Clause */
/* module - what is said when a module is not there, is no library, or is another one. */
#include "base/module.h"

#include <dlfcn.h>
#include <sys/stat.h>

#include "unit/unit.h"

static const void *address = &address;

START_TEST (missing)
{
    /* beside this program there is none */
    unit_fails (gsi_module_find (GSI_MODULE_MPI, "gsi_coll_mpi", &address), GS_ERR_UNSUPPORTED,
                "no gradsync-mpi.so in ", "/gradsync:", "--with-mpi", "GS_MPI_MODULE");
    ck_assert_ptr_null (address);
}
END_TEST

START_TEST (no_cuda)
{
    unit_fails (gsi_module_find (GSI_MODULE_CUDA, "gsi_device_cuda", &address),
                GS_ERR_UNSUPPORTED, "no gradsync-cuda.so in ", "--with-cuda", "GS_CUDA_MODULE",
                "your CUDA runtime");
    setenv ("GS_CUDA_MODULE", "/nonexistent/gradsync-cuda.so", 1);
    unit_fails (gsi_module_find (GSI_MODULE_CUDA, "gsi_device_cuda", &address),
                GS_ERR_UNSUPPORTED, "GS_CUDA_MODULE='/nonexistent/gradsync-cuda.so'");
}
END_TEST

START_TEST (named_but_missing)
{
    setenv ("GS_MPI_MODULE", "/nonexistent/gradsync-mpi.so", 1);
    unit_fails (gsi_module_find (GSI_MODULE_MPI, "gsi_coll_mpi", &address), GS_ERR_UNSUPPORTED,
                "GS_MPI_MODULE='/nonexistent/gradsync-mpi.so'");
}
END_TEST

START_TEST (not_a_library)
{
    setenv ("GS_MPI_MODULE", "/proc/self/cmdline", 1);
    unit_fails (gsi_module_find (GSI_MODULE_MPI, "gsi_coll_mpi", &address), GS_ERR_TRANSPORT,
                "cannot load /proc/self/cmdline: ");
    setenv ("GS_MPI_MODULE", "/", 1);
    unit_fails (gsi_module_find (GSI_MODULE_MPI, "gsi_coll_mpi", &address), GS_ERR_TRANSPORT,
                "cannot load /: ");
    ck_assert_ptr_null (address);
}
END_TEST

START_TEST (path_too_long)
{
    char path[5000];

    memset (path, 'x', sizeof (path));
    path[0] = '/';
    path[sizeof (path) - 1] = 0;
    setenv ("GS_MPI_MODULE", path, 1);
    unit_fails (gsi_module_find (GSI_MODULE_MPI, "gsi_coll_mpi", &address), GS_ERR_UNSUPPORTED,
                "GS_MPI_MODULE=");
}
END_TEST

/* Last, because a module that could be loaded stays. */
START_TEST (another_library)
{
    Dl_info info;

    ck_assert (!gsi_module_mpi_present ());
    ck_assert_int_ne (dladdr (dlsym (RTLD_DEFAULT, "getpid"), &info), 0);
    setenv ("GS_MPI_MODULE", info.dli_fname, 1);
    unit_fails (gsi_module_find (GSI_MODULE_MPI, "gsi_coll_mpi", &address), GS_ERR_TRANSPORT,
                "gradsync-mpi.so has no gsi_coll_mpi");
    ck_assert_ptr_null (address);
    unit_ok (gsi_module_find (GSI_MODULE_MPI, "getpid", &address));
    ck_assert_ptr_eq (address, dlsym (RTLD_DEFAULT, "getpid"));
}
END_TEST

UNIT_SUITE ("module", 10, missing, no_cuda, named_but_missing, not_a_library, path_too_long,
            another_library)
