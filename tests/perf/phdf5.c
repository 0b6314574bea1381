/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * phdf5 - what parallel HDF5 takes for a checkpoint, for table: phdf5 FOLDER MEBIBYTES. The ranks
 * write as many bytes of one dataset each, collectively, and the file is flushed and synced.
 * Rank 0 prints "name: milliseconds", the median of rounds. Built by h5pcc.
 */
#include <fcntl.h>
#include <hdf5.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define ROUNDS 3

static int rank, size;

static void must (int ok, const char *what)
{
    if (ok)
        return;
    fprintf (stderr, "phdf5: %s failed\n", what);
    MPI_Abort (MPI_COMM_WORLD, 1);
}

static void write_file (const char *path, const double *data, hsize_t mine)
{
    hsize_t whole = mine * (hsize_t) size, begin = mine * (hsize_t) rank;
    hid_t access = H5Pcreate (H5P_FILE_ACCESS), transfer = H5Pcreate (H5P_DATASET_XFER);
    hid_t space = H5Screate_simple (1, &whole, NULL), memory = H5Screate_simple (1, &mine, NULL);
    hid_t file, set;
    int fd;

    H5Pset_fapl_mpio (access, MPI_COMM_WORLD, MPI_INFO_NULL);
    H5Pset_dxpl_mpio (transfer, H5FD_MPIO_COLLECTIVE);
    H5Sselect_hyperslab (space, H5S_SELECT_SET, &begin, NULL, &mine, NULL);
    file = H5Fcreate (path, H5F_ACC_TRUNC, H5P_DEFAULT, access);
    must (file >= 0, "H5Fcreate");
    set = H5Dcreate2 (file, "field", H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, H5P_DEFAULT,
                      H5P_DEFAULT);
    must (set >= 0, "H5Dcreate2");
    must (H5Dwrite (set, H5T_NATIVE_DOUBLE, memory, space, transfer, data) >= 0, "H5Dwrite");
    H5Dclose (set);
    must (H5Fclose (file) >= 0, "H5Fclose");
    fd = open (path, O_WRONLY);
    must (fd >= 0 && !fsync (fd), "fsync");
    close (fd);
    H5Sclose (space);
    H5Sclose (memory);
    H5Pclose (access);
    H5Pclose (transfer);
}

static int by_size (const void *a, const void *b)
{
    double d = *(const double *) a - *(const double *) b;

    return (d > 0) - (d < 0);
}

int main (int argc, char **argv)
{
    double times[ROUNDS + 1], *data;
    char path[4096];
    hsize_t mine;

    MPI_Init (&argc, &argv);
    MPI_Comm_rank (MPI_COMM_WORLD, &rank);
    MPI_Comm_size (MPI_COMM_WORLD, &size);
    must (argc == 3, "usage: phdf5 FOLDER MEBIBYTES; it");
    mine = (hsize_t) atoll (argv[2]) * (1 << 17) / (hsize_t) size;
    snprintf (path, sizeof (path), "%s/phdf5.h5", argv[1]);
    data = malloc (mine * sizeof (*data));
    must (data != NULL, "malloc");
    for (hsize_t i = 0; i < mine; i++)
        data[i] = (double) i;
    for (int i = 0; i <= ROUNDS; i++) {
        if (!rank)
            unlink (path);
        MPI_Barrier (MPI_COMM_WORLD);
        times[i] = MPI_Wtime ();
        write_file (path, data, mine);
        MPI_Barrier (MPI_COMM_WORLD);
        times[i] = (MPI_Wtime () - times[i]) * 1e3;
    }
    qsort (times + 1, ROUNDS, sizeof (*times), by_size);
    if (!rank) {
        printf ("parallel HDF5: %.2f\n", times[1 + ROUNDS / 2]);
        unlink (path);
    }
    free (data);
    return MPI_Finalize ();
}
