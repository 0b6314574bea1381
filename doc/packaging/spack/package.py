# SPDX-License-Identifier: BSD-3-Clause
#
# package.py - recipe for Spack. Put it into packages/gradsync of a package repository of yours
# (spack repo create, spack repo add), fill in the checksum of the release (doc/packaging/checksums
# gradsync-0.2.0.tar.xz), stand where the tarball is, and run
#   spack install gradsync +cuda

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
    url = f"file://{os.getcwd()}/gradsync-0.2.0.tar.xz"

    license("BSD-3-Clause")

    version("0.2.0")

    variant("pmix", default=True, description="Start under srun --mpi=pmix and mpirun")
    variant("openssl", default=True, description="Start by an id that the program carries")
    variant("mpi", default=True, description="Ranks on several hosts; a module loaded on demand")
    variant("ofi", default=True, description="libfabric: GPUs of several nodes learn of failures")
    variant("fortran", default=True, description="Fortran binding")
    variant("hdf5", default=True, description="Checkpoints in HDF5 files")
    variant("cuda", default=False, description="Arrays in memory of NVIDIA GPUs")
    variant("nccl", default=True, when="+cuda", description="Averages between GPUs by NCCL")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("fortran", type="build", when="+fortran")
    depends_on("pkgconfig", type="build")
    depends_on("pmix@3:", when="+pmix")
    depends_on("openssl@1.1.1:", when="+openssl")
    depends_on("mpi@3:", when="+mpi")
    depends_on("libfabric@1.14:", when="+ofi")
    # The serial flavour: ranks write without HDF5's own parallel layer.
    depends_on("hdf5@1.10: ~mpi", when="+hdf5")
    depends_on("cuda@11.8:", when="+cuda")
    depends_on("nccl@2.18:", when="+nccl")

    def configure_args(self):
        spec = self.spec
        args = ["--without-modulefiles"]  # Spack makes its own
        for name in ("pmix", "openssl", "hdf5", "cuda", "nccl"):
            if spec.satisfies(f"+{name}"):
                args.append(f"--with-{name}={spec[name].prefix}")
            else:
                args.append(f"--without-{name}")
        if spec.satisfies("+ofi"):
            args.append(f"--with-ofi={spec['libfabric'].prefix}")
        else:
            args.append("--without-ofi")
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
