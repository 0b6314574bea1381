# SPDX-License-Identifier: BSD-3-Clause
#
# GS_REPORT
#
# The closing report of configure, and the same facts as C strings for gs_build_info ().
AC_DEFUN([GS_REPORT], [
AS_ECHO(["
gradsync $PACKAGE_VERSION
  bootstrap     pmix: ${gs_version_pmix:-no}; MPI launcher: $gs_have_mpi; id: ${gs_version_openssl:-no}; single
  transports    self[]m4_foreach([gs_one], [gs_transports], [; gs_one: ${gs_version_[]gs_one:-no}])
  GPUs          cuda: ${gs_version_cuda:-no}
  checkpoints   hdf5: ${gs_version_hdf5:-no}
  Fortran       ${gs_version_fortran:-no}; any array: $gs_have_descriptors; type(MPI_Comm): $gs_have_fortran_mpi
  tests         unit: $gs_have_check (check ${gs_version_check:--}), multi-rank: $gs_have_mpi
  build         debug $gs_debug, werror $gs_werror, sanitizer $gs_sanitizer, coverage $gs_code_coverage, fault injection $gs_fault_injection
  hardening     $gs_hardened
  modules       $gs_report_modulefiles
  prefix        $prefix
"])
])

# GS_DEFINE_INFO
#
# Defines what gs_build_info () says. Call before AC_OUTPUT.
AC_DEFUN([GS_DEFINE_INFO], [
    m4_foreach([gs_one], [gs_packages],
        [AC_DEFINE_UNQUOTED([GS_INFO_]m4_toupper(gs_one), ["${gs_version_[]gs_one:-no}"],
                            [for gs_build_info])
    ])
    AC_DEFINE_UNQUOTED([GS_INFO_FORTRAN], ["${gs_version_fortran:-no}"], [for gs_build_info])
    AC_DEFINE_UNQUOTED([GS_INFO_HARDENING], ["$gs_hardened"], [for gs_build_info])
    AC_DEFINE_UNQUOTED([GS_INFO_SANITIZER], ["$gs_sanitizer"], [for gs_build_info])
])
