/* SPDX-License-Identifier: BSD-3-Clause */
/* info - what this build is. */
#include "base/transport.h"
#include "config.h"

#define MODULE(id, name, what) name ": " GS_INFO_##id "\n"
#define MODULES                GSI_MODULES (MODULE)

const char *gs_version (void)
{
    return PACKAGE_VERSION;
}

const char *gs_build_info (void)
{
    return "version: " PACKAGE_VERSION "\n"
           "pmix: " GS_INFO_PMIX "\n"
           "openssl: " GS_INFO_OPENSSL "\n" MODULES "hdf5: " GS_INFO_HDF5 "\n"
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
