/* SPDX-License-Identifier: BSD-3-Clause */
/* info - what this build is. */
#include "config.h"
#include "gradsync.h"

const char *gs_version (void)
{
    return PACKAGE_VERSION;
}

const char *gs_build_info (void)
{
    return "version: " PACKAGE_VERSION "\n"
           "pmix: " GS_INFO_PMIX "\n"
           "openssl: " GS_INFO_OPENSSL "\n"
           "mpi: " GS_INFO_MPI "\n"
           "ofi: " GS_INFO_OFI "\n"
           "hdf5: " GS_INFO_HDF5 "\n"
           "cuda: " GS_INFO_CUDA "\n"
           "nccl: " GS_INFO_NCCL "\n"
           "fortran: " GS_INFO_FORTRAN "\n"
           "hardening: " GS_INFO_HARDENING "\n"
           "sanitizer: " GS_INFO_SANITIZER "\n"
#ifdef GS_FAULT_INJECTION
           "fault injection: yes\n"
#else
           "fault injection: no\n"
#endif
           "compiler: " __VERSION__ "\n";
}
