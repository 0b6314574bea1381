/* SPDX-License-Identifier: BSD-3-Clause */
/* comm - creating and destroying on one rank: options, environment, and all that is refused. */
#include "core/comm.h"

#include <dirent.h>
#include <limits.h>
#include <sys/stat.h>

#include "unit/alone.h"
#include "base/log.h"

static gs_comm_t *comm;

/* With these options the create fails as told and gives no communicator. */
static void refuse (const gs_comm_opts_t *opts, gs_status_t status, const char *part)
{
    comm = alone_stale ();
    unit_fails (gs_comm_create (opts, &comm), status, "gs_comm_create", part);
    ck_assert_ptr_null (comm);
}

static void create_alone (void)
{
    setenv ("GS_BOOT", "single", 1);
    setenv ("GS_RECORD", "memory", 1);
}

/* Creating fails for want of a GPU: of the driver, or of support in this build. */
static void no_gpu (const gs_comm_opts_t *opts, const char *part)
{
    gs_status_t st = gs_comm_create (opts, &comm);

    ck_assert (st == GS_ERR_DEVICE || st == GS_ERR_UNSUPPORTED);
    ck_assert_msg (strstr (gs_last_error (), part), "no '%s' in '%s'", part, gs_last_error ());
    ck_assert_ptr_null (comm);
}

START_TEST (defaults)
{
    gs_comm_opts_t opts = GS_COMM_OPTS_INIT;

    for (int with = 0; with < 2; with++) {
        create_alone ();
        unit_ok (gs_comm_create (with ? &opts : NULL, &comm));
        ck_assert_str_eq (gs_comm_name (comm), "world");
        ck_assert_int_eq (comm->timeout_ns, INT64_C (600000000000));
        ck_assert_int_eq (comm->check, GSI_CHECK_ARGS);
        unit_ok (gs_comm_destroy (comm));
    }
    unit_ok (gs_comm_destroy (NULL));
}
END_TEST

START_TEST (options_come_before_the_environment)
{
    gs_comm_opts_t opts = GS_COMM_OPTS_INIT;
    char name[] = "inner loop";

    create_alone ();
    setenv ("GS_TIMEOUT_MS", "5000", 1);
    setenv ("GS_TRANSPORT", "nccl", 1);
    no_gpu (NULL, "transport nccl");
    opts.transport = GS_TRANSPORT_SELF;
    opts.name = name;
    unit_ok (gs_comm_create (&opts, &comm));
    memset (name, 'x', sizeof (name) - 1); /* it was copied */
    ck_assert_str_eq (gs_comm_name (comm), "inner loop");
    ck_assert_int_eq (comm->timeout_ns, INT64_C (5000000000));
    unit_ok (gs_comm_destroy (comm));
    opts.timeout_ms = 70;
    unit_ok (gs_comm_create (&opts, &comm));
    ck_assert_int_eq (comm->timeout_ns, 70000000);
    unit_ok (gs_comm_destroy (comm));
}
END_TEST

START_TEST (bad_options)
{
    static const int64_t times[] = {-1, INT64_MIN, INT64_MAX, INT64_MAX / 1000000};
    gs_comm_opts_t opts = GS_COMM_OPTS_INIT;
    const size_t sizes[] = {0, 1, sizeof (size_t), SIZE_MAX};

    create_alone ();
    unit_fails (gs_comm_create (&opts, NULL), GS_ERR_ARG, "gs_comm_create: comm is NULL");
    for (int i = 0; i < 4; i++) {
        opts.size = sizes[i];
        refuse (&opts, GS_ERR_ARG, "GS_COMM_OPTS_INIT");
    }
    opts.size = sizeof (opts);
    opts.reserved[7] = &opts;
    refuse (&opts, GS_ERR_ARG, "opts->reserved");
    opts.reserved[7] = NULL;
    for (int i = 0; i < 4; i++) {
        opts.timeout_ms = times[i];
        refuse (&opts, GS_ERR_ARG, "timeout_ms");
        opts.timeout_ms = 0;
        opts.boot_timeout_ms = times[i];
        refuse (&opts, GS_ERR_ARG, "boot_timeout_ms");
        opts.boot_timeout_ms = 0;
    }
    unit_ok (gs_comm_create (&opts, &comm));
    unit_ok (gs_comm_destroy (comm));
}
END_TEST

START_TEST (devices_and_transports_that_are_not_there)
{
    static const int transports[] = {4, -1, 0x7fffffff};
    gs_comm_opts_t opts = GS_COMM_OPTS_INIT;

    create_alone ();
    opts.device = 0;
    no_gpu (&opts, "a GPU was asked for");
    opts.transport = GS_TRANSPORT_SELF;
    unit_fails (gs_comm_create (&opts, &comm), GS_ERR_ARG, "GPU 0", "transport self");
    opts.transport = GS_TRANSPORT_AUTO;
    setenv ("GS_DEVICE", "3", 1);
    opts.device = GS_DEVICE_AUTO;
    no_gpu (&opts, "a GPU was asked for");
    setenv ("GS_DEVICE", "host", 1);
    unit_ok (gs_comm_create (&opts, &comm));
    unit_ok (gs_comm_destroy (comm));
    opts.device = INT_MIN;
    unit_fails (gs_comm_create (&opts, &comm), GS_ERR_ARG, "device -2147483648");
    opts.device = GS_DEVICE_HOST;
    opts.transport = GS_TRANSPORT_NCCL;
    unit_fails (gs_comm_create (&opts, &comm), GS_ERR_ARG, "transport nccl", "is the host");
    opts.transport = GS_TRANSPORT_MPI;
    unit_fails (gs_comm_create (&opts, &comm), GS_ERR_UNSUPPORTED, "gradsync-mpi.so");
    for (int i = 0; i < 3; i++) {
        opts.transport = (gs_transport_t) transports[i];
        unit_fails (gs_comm_create (&opts, &comm), GS_ERR_ARG, "unknown transport");
        ck_assert_ptr_null (comm);
    }
}
END_TEST

START_TEST (bad_environment)
{
    static const struct {
        const char *name, *value;
    } bad[] = {{"GS_TIMEOUT_MS", "0"}, {"GS_BOOT_TIMEOUT_MS", "soon"}, {"GS_CHECK", "all"},
               {"GS_TRANSPORT", "x"},  {"GS_DEBUG", "loud"},           {"GS_RECORD", "no"},
               {"GS_RECORD_KEEP", "2"}};

    create_alone ();
    for (size_t i = 0; i < sizeof (bad) / sizeof (bad[0]); i++) {
        setenv (bad[i].name, bad[i].value, 1);
        unit_fails (gs_comm_create (NULL, &comm), GS_ERR_ARG, bad[i].name, bad[i].value);
        ck_assert_ptr_null (comm);
        unsetenv (bad[i].name);
        create_alone ();
    }
    setenv ("GS_BOOT", "server", 1);
    unit_fails (gs_comm_create (NULL, &comm), GS_ERR_ARG, "GS_BOOT='server'",
                "auto|pmix|mpi|single");
}
END_TEST

START_TEST (names_of_any_length)
{
    gs_comm_opts_t opts = GS_COMM_OPTS_INIT;
    char name[5000];

    create_alone ();
    memset (name, 'n', sizeof (name));
    name[sizeof (name) - 1] = 0;
    opts.name = name;
    unit_ok (gs_comm_create (&opts, &comm));
    ck_assert_uint_eq (strlen (gs_comm_name (comm)), GSI_RECORD_NAME - 1);
    unit_ok (gs_comm_destroy (comm));
    opts.name = "";
    unit_ok (gs_comm_create (&opts, &comm));
    ck_assert_str_eq (gs_comm_name (comm), "");
    unit_ok (gs_comm_destroy (comm));
}
END_TEST

START_TEST (from_id)
{
    gs_unique_id_t id = {{0}};

    create_alone ();
    if (strstr (gs_build_info (), "openssl: no")) {
        unit_fails (gs_comm_create_from_id (&id, 0, 1, NULL, &comm), GS_ERR_UNSUPPORTED,
                    "--with-openssl");
        return;
    }
    unit_ok (gs_unique_id_get (&id));
    unit_fails (gs_comm_create_from_id (&id, 0, 1, NULL, NULL), GS_ERR_ARG, "comm is NULL");
    unit_fails (gs_comm_create_from_id (NULL, 0, 1, NULL, &comm), GS_ERR_ARG, "id is NULL");
    unit_fails (gs_comm_create_from_id (&id, -1, 1, NULL, &comm), GS_ERR_ARG,
                "rank -1 of size 1");
    unit_fails (gs_comm_create_from_id (&id, 1, 1, NULL, &comm), GS_ERR_ARG, "rank 1 of size 1");
    unit_fails (gs_comm_create_from_id (&id, 0, 0, NULL, &comm), GS_ERR_ARG, "size 0");
    unit_fails (gs_comm_create_from_id (&id, INT_MIN, INT_MIN, NULL, &comm), GS_ERR_ARG, "range");
    ck_assert_ptr_null (comm);
    unit_ok (gs_comm_create_from_id (&id, 0, 1, NULL, &comm)); /* needs no MPI for one rank */
    ck_assert_int_eq (gs_comm_size (comm), 1);
    ck_assert_str_eq (gs_comm_transport (comm), "self");
    unit_ok (gs_comm_destroy (comm));
    unit_fails (gs_comm_create_from_id (&id, 0, 1, NULL, &comm), GS_ERR_ARG, "serves once");
    ck_assert_ptr_null (comm);
}
END_TEST

START_TEST (from_mpi_without_mpi)
{
    create_alone ();
    unit_fails (gs_comm_from_mpi_fint (0, NULL, NULL), GS_ERR_ARG, "comm is NULL");
    unit_fails (gs_comm_from_mpi_fint (0, NULL, &comm), GS_ERR_UNSUPPORTED, "gradsync-mpi.so");
    ck_assert_ptr_null (comm);
}
END_TEST

START_TEST (stale_handles)
{
    unit_fails (gs_comm_destroy (alone_stale ()), GS_ERR_STATE, "gs_comm_destroy", "destroyed");
}
END_TEST

/* How many entries [path] has. */
static int entries (const char *path)
{
    DIR *dir = opendir (path);
    int count = 0;

    ck_assert_ptr_nonnull (dir);
    while (readdir (dir))
        count++;
    closedir (dir);
    return count;
}

START_TEST (nothing_is_left_behind)
{
    char room[] = "/tmp/gs-comm-XXXXXX";
    int descriptors;
    gs_comm_t *many[20];

    create_alone ();
    setenv ("GS_RECORD", "file", 1);
    ck_assert_ptr_nonnull (mkdtemp (room));
    setenv ("GS_RECORD_DIR", room, 1);
    descriptors = entries ("/proc/self/fd");
    for (int cycle = 0; cycle < 10; cycle++) {
        for (int i = 0; i < 20; i++)
            unit_ok (gs_comm_create (NULL, &many[i]));
        ck_assert_int_eq (entries (room), 2 + 20);
        ck_assert_int_eq (entries ("/proc/self/fd"), descriptors); /* mapped, but not open */
        for (int i = 0; i < 20; i++)
            unit_ok (gs_comm_destroy (many[i]));
    }
    ck_assert_int_eq (entries (room), 2);
    ck_assert_int_eq (rmdir (room), 0);
}
END_TEST

static void hear (gs_log_level_t level, const char *line, void *context)
{
    (void) level;
    snprintf (context, 1000, "%s", line);
}

START_TEST (one_line_of_information)
{
    char line[1000] = "";

    create_alone ();
    setenv ("GS_DEBUG", "info", 1);
    gs_log_set_sink (hear, line);
    unit_ok (gs_comm_create (NULL, &comm));
    unit_ok (gs_comm_destroy (comm));
    gs_log_set_sink (NULL, NULL);
    ck_assert_ptr_nonnull (strstr (line, "gradsync[0/1] comm: 'world': 1 ranks on 1 nodes, boot "
                                         "single"));
    ck_assert_ptr_nonnull (strstr (line, "transport self (one rank, "));
}
END_TEST

UNIT_SUITE ("comm", 30, defaults, options_come_before_the_environment, bad_options,
            devices_and_transports_that_are_not_there, bad_environment, names_of_any_length,
            from_id, from_mpi_without_mpi, stale_handles, nothing_is_left_behind,
            one_line_of_information)
