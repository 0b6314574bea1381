# SPDX-License-Identifier: BSD-3-Clause
#
# package.py - recipe for Spack. Put it into packages/gradsync of a package repository of yours
# (spack repo create, spack repo add), stand where the tarball gradsync-0.1.0.tar.xz is, and run
#   spack install --no-checksum gradsync
# or add sha256="..." to the version, as sha256sum prints it.

import os

from spack.package import *

try:
    from spack_repo.builtin.build_systems.autotools import AutotoolsPackage
except ImportError:
    pass  # before Spack 1.0 it comes with spack.package


class Gradsync(AutotoolsPackage):
    """Gradient averaging for simulations on GPU clusters, in C and Fortran: ranks that simulate
    train a machine-learning model while they do. One srun or mpirun is all the set-up there is."""

    # The release tarball is not on a public server: it is taken from the current folder.
    manual_download = True
    url = f"file://{os.getcwd()}/gradsync-0.1.0.tar.xz"

    license("BSD-3-Clause")

    version("0.1.0")

    variant("pmix", default=True, description="Start under srun --mpi=pmix and mpirun")
    variant("mpi", default=True, description="Ranks on several hosts; a module loaded on demand")
    variant("fortran", default=True, description="Fortran binding")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("fortran", type="build", when="+fortran")
    depends_on("pkgconfig", type="build")
    depends_on("pmix@3:", when="+pmix")
    depends_on("mpi@3:", when="+mpi")

    def configure_args(self):
        spec = self.spec
        # Spack makes its own modules; this version uses neither HDF5 nor GPUs.
        args = ["--without-modulefiles", "--without-hdf5", "--without-cuda", "--without-nccl"]
        if spec.satisfies("+pmix"):
            args.append(f"--with-pmix={spec['pmix'].prefix}")
        else:
            args.append("--without-pmix")
        if spec.satisfies("+mpi"):
            args += ["--with-mpi", f"MPICC={spec['mpi'].mpicc}"]
        else:
            args.append("--without-mpi")
        if spec.satisfies("+fortran"):
            args.append("--enable-fortran")
        else:
            args.append("--disable-fortran")
        if spec.satisfies("+fortran+mpi"):
            args.append(f"MPIFC={spec['mpi'].mpifc}")
        return args

    def setup_run_environment(self, env):
        # As our own module does, beside the paths that Spack sets.
        env.set("GRADSYNC_ROOT", self.prefix)
        env.set("GRADSYNC_VERSION", str(self.version))
        if self.spec.satisfies("+fortran"):
            env.set("GRADSYNC_FORTRAN_INC", self.prefix.include.gradsync)
