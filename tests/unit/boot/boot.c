/* SPDX-License-Identifier: BSD-3-Clause */
/* boot - which way is taken, what is said when none is there, and who is missing. */
#include "boot/boot.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/process.h"
#include "base/status.h"
#include "boot/launch.h"
#include "boot/missing.h"
#include "config.h"
#include "unit/unit.h"

static struct gsi_boot *boot;

static gs_status_t open_boot (void)
{
    return gsi_boot_open (GS_TRANSPORT_AUTO, gsi_now_ns () + 2 * unit_patience () * GSI_NS_PER_S,
                          &boot);
}

/* Opens, checks that it is the way alone, and closes. */
static void check_single (void)
{
    unit_ok (open_boot ());
    ck_assert_str_eq (boot->ops->name, "single");
    gsi_boot_close (boot);
}

START_TEST (alone_without_a_launcher)
{
    check_single ();
}
END_TEST

START_TEST (announced_tasks_without_pmix)
{
    static const char *const names[] = {"SLURM_STEP_NUM_TASKS",
                                        "OMPI_COMM_WORLD_SIZE",
                                        "MV2_COMM_WORLD_SIZE",
                                        "MVP_COMM_WORLD_SIZE",
                                        "JSM_NAMESPACE_SIZE",
                                        "FLUX_JOB_SIZE",
                                        "PALS_SIZE"};

    for (size_t i = 0; i < sizeof (names) / sizeof (names[0]); i++) {
        setenv (names[i], "4", 1);
        unit_fails (open_boot (), GS_ERR_BOOT, "announces 4 tasks", names[i], "srun --mpi=pmix",
                    "gs_comm_from_mpi", "GS_BOOT=single", "PMIx");
        ck_assert_ptr_null (boot);
        setenv ("GS_BOOT", "single", 1); /* on purpose */
        check_single ();
        unsetenv ("GS_BOOT");
        setenv (names[i], "1", 1);
        check_single ();
        setenv (names[i], "nonsense", 1);
        check_single ();
        unsetenv (names[i]);
    }
}
END_TEST

START_TEST (announced_tasks_of_an_mpi_launcher)
{
    setenv ("PMI_SIZE", "3", 1); /* only MPI can reach the others, and its module is not here */
    unit_fails (open_boot (), GS_ERR_UNSUPPORTED, "gradsync-mpi.so");
    unsetenv ("PMI_SIZE");
    setenv ("PALS_APID", "x", 1);
    check_single ();
    setenv ("PALS_SIZE", "2", 1);
    unit_fails (open_boot (), GS_ERR_UNSUPPORTED, "gradsync-mpi.so");
    ck_assert_ptr_null (boot);
    unsetenv ("PALS_SIZE");
    unsetenv ("PALS_APID");
}
END_TEST

START_TEST (security_domains)
{
    static const struct {
        const char *offered, *wanted;
        bool shared;
    } cases[] = {{"munge,native", NULL, true},
                 {NULL, "none", true},
                 {"native", "none", false},
                 {"munge,native", "none,native", true},
                 {"munge,native", "nativ,munge2", false},
                 {"native", "^munge", true},
                 {"munge,native", "native", true},
                 {"native", ",", false}};

    for (size_t i = 0; i < sizeof (cases) / sizeof (cases[0]); i++) {
        unsetenv ("PMIX_SECURITY_MODE");
        unsetenv ("PMIX_MCA_psec");
        if (cases[i].offered)
            setenv ("PMIX_SECURITY_MODE", cases[i].offered, 1);
        if (cases[i].wanted)
            setenv ("PMIX_MCA_psec", cases[i].wanted, 1);
        ck_assert_msg (gsi_launch_shares_security () == cases[i].shared, "case %zu", i);
    }
    unit_fails (gsi_launch_refused ("MPI_Init_thread", "no"), GS_ERR_BOOT,
                "MPI_Init_thread on host", ": no.", "offers native", "psec is ,");
}
END_TEST

/* A server that takes connections and then says nothing, as one that was stopped. */
START_TEST (silent_server)
{
#ifdef HAVE_PMIX
    static const char *const names[] = {"PMIX_SERVER_URI2", "PMIX_SERVER_URI21",
                                        "PMIX_SERVER_URI3", "PMIX_SERVER_URI4",
                                        "PMIX_SERVER_URI41"};
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl (INADDR_LOOPBACK)};
    socklen_t bytes = sizeof (at);
    int listener = socket (AF_INET, SOCK_STREAM, 0);
    char uri[64];

    ck_assert (!bind (listener, (struct sockaddr *) &at, bytes) && !listen (listener, 8) &&
               !getsockname (listener, (struct sockaddr *) &at, &bytes));
    snprintf (uri, sizeof (uri), "gone.0;tcp4://127.0.0.1:%d", ntohs (at.sin_port));
    for (size_t i = 0; i < sizeof (names) / sizeof (names[0]); i++)
        setenv (names[i], uri, 1);
    setenv ("PMIX_NAMESPACE", "gone", 1);
    setenv ("PMIX_RANK", "0", 1);
    unit_fails (open_boot (), GS_ERR_TIMEOUT, "PMIx_Init", "job gone (PMIX_NAMESPACE)",
                "does not answer");
    ck_assert_ptr_null (boot);
#endif
}
END_TEST

/* An unknown number of tasks, whose server does not answer. */
START_TEST (announced_server)
{
    setenv ("PMIX_NAMESPACE", "gone", 1);
    setenv ("PMIX_RANK", "0", 1);
    for (int i = 0; i < 2; i++) {
        unit_fails (open_boot (), GS_ERR_BOOT, "announces several tasks (PMIX_NAMESPACE)",
                    "PMIx");
        ck_assert_ptr_null (boot);
    }
    setenv ("OMPI_COMM_WORLD_SIZE", "1", 1);
    check_single ();
}
END_TEST

/* A launcher inside a Slurm step counts, not the step its daemons are in. */
START_TEST (nearest_announcement)
{
    setenv ("SLURM_STEP_NUM_TASKS", "2", 1);
    ck_assert_str_eq (gsi_launch_announced ().variable, "SLURM_STEP_NUM_TASKS");
    ck_assert_int_eq (gsi_launch_announced ().tasks, 2);
    ck_assert (!gsi_launch_is_alone ());
    setenv ("OMPI_COMM_WORLD_SIZE", "1", 1);
    ck_assert_str_eq (gsi_launch_announced ().variable, "OMPI_COMM_WORLD_SIZE");
    ck_assert (gsi_launch_is_alone ());
    setenv ("SLURM_HET_SIZE", "2", 1); /* the tasks of other components are not counted */
    ck_assert (!gsi_launch_is_alone ());
}
END_TEST

START_TEST (fewer_ranks_than_announced)
{
    unit_ok (gsi_launch_check (1, "a way", "a cure"));
    setenv ("PMI_SIZE", "4", 1);
    unit_fails (gsi_launch_check (1, "a way", "a cure"), GS_ERR_BOOT,
                "announces 4 tasks (PMI_SIZE), but a way finds 1", "a cure", "GS_BOOT=single");
    unit_fails (gsi_launch_check (3, "a way", "a cure"), GS_ERR_BOOT, "finds 3 of them");
    unit_ok (gsi_launch_check (4, "a way", "a cure"));
    unit_ok (gsi_launch_check (8, "a way", "a cure")); /* all components of a job */
    setenv ("GS_BOOT", "single", 1);
    unit_ok (gsi_launch_check (1, "a way", "a cure"));
}
END_TEST

static char said[2048];

static void note (gs_log_level_t level, const char *text, void *context)
{
    (void) context;
    if (level == GS_LOG_WARN)
        snprintf (said, sizeof (said), "%s", text);
}

START_TEST (alone_in_an_allocation)
{
    gs_log_set_sink (note, NULL);
    check_single ();
    setenv ("SLURM_JOB_ID", "7", 1);
    check_single ();
    setenv ("SLURM_NTASKS", "1", 1);
    check_single ();
    ck_assert_str_eq (said, "");
    setenv ("SLURM_NTASKS", "8", 1);
    check_single ();
    ck_assert_ptr_nonnull (strstr (said, "alone, in a Slurm job of 8 tasks"));
    ck_assert_ptr_nonnull (strstr (said, "srun --mpi=pmix"));
    *said = 0;
    setenv ("GS_BOOT", "single", 1);
    check_single ();
    unsetenv ("GS_BOOT");
    setenv ("SLURM_STEP_NUM_TASKS", "1", 1); /* a step of one task */
    check_single ();
    ck_assert_str_eq (said, "");
}
END_TEST

START_TEST (ways_asked_for)
{
    setenv ("GS_BOOT", "pmix", 1);
#ifdef HAVE_PMIX
    unit_fails (open_boot (), GS_ERR_UNSUPPORTED, "no PMIx server answers");
#else
    unit_fails (open_boot (), GS_ERR_UNSUPPORTED, "--with-pmix");
#endif
    setenv ("GS_BOOT", "mpi", 1);
    unit_fails (open_boot (), GS_ERR_UNSUPPORTED, "gradsync-mpi.so");
    setenv ("GS_BOOT", "single", 1);
    check_single ();
    setenv ("GS_BOOT", "auto", 1);
    check_single ();
    setenv ("GS_BOOT", "nonsense", 1); /* the create refuses it after the way is open */
    check_single ();
    unit_fails (gsi_boot_from_mpi (0, &boot), GS_ERR_UNSUPPORTED, "gradsync-mpi.so");
    ck_assert_ptr_null (boot);
}
END_TEST

static const char *host_of (void *context, int rank)
{
    static char host[32];

    ck_assert_ptr_eq (context, host_of);
    snprintf (host, sizeof (host), "n%d", rank / 2);
    return rank == 5 ? NULL : host;
}

START_TEST (missing_ranks_are_named)
{
    unsigned char missing[8] = {0, 0, 1, 0, 0, 1, 0, 1};
    char text[512];

    gsi_missing_list (missing, 8, host_of, host_of, text, sizeof (text));
    ck_assert_str_eq (text, "3 of 8 ranks did not come: rank 2 (host n1), rank 5, rank 7 (host "
                            "n3)");
    gsi_missing_list (missing, 8, NULL, NULL, text, sizeof (text));
    ck_assert_str_eq (text, "3 of 8 ranks did not come: rank 2, rank 5, rank 7");
    gsi_missing_list (missing, 4, NULL, NULL, text, sizeof (text));
    ck_assert_str_eq (text, "1 of 4 ranks did not come: rank 2");
}
END_TEST

START_TEST (many_missing_ranks_are_counted)
{
    unsigned char missing[1000];
    char text[1024];

    memset (missing, 1, sizeof (missing));
    gsi_missing_list (missing, 16, NULL, NULL, text, sizeof (text));
    ck_assert_ptr_nonnull (strstr (text, ", rank 15"));
    ck_assert_ptr_null (strstr (text, "more"));
    gsi_missing_list (missing, 17, NULL, NULL, text, sizeof (text));
    ck_assert_ptr_nonnull (strstr (text, ", rank 15, and 1 more"));
    gsi_missing_list (missing, 1000, NULL, NULL, text, sizeof (text));
    ck_assert_ptr_nonnull (strstr (text, "1000 of 1000 ranks"));
    ck_assert_ptr_nonnull (strstr (text, ", and 984 more"));
}
END_TEST

START_TEST (a_small_room_cuts_the_sentence)
{
    unsigned char missing[40];
    char whole[1024], text[1024];

    memset (missing, 1, sizeof (missing));
    gsi_missing_list (missing, 40, host_of, host_of, whole, sizeof (whole));
    for (size_t room = 1; room <= strlen (whole) + 1; room++) {
        memset (text, '#', sizeof (text));
        gsi_missing_list (missing, 40, host_of, host_of, text, room);
        ck_assert_uint_eq (strlen (text), room - 1);
        ck_assert_int_eq (strncmp (text, whole, room - 1), 0);
        ck_assert_int_eq (text[room], '#');
    }
}
END_TEST

/* With others it is in boot_id. */
START_TEST (agreeing_alone)
{
    unit_ok (open_boot ());
    unit_ok (gsi_boot_agree (boot, GS_OK, INT64_MAX));
    unit_fails (gsi_boot_agree (boot, gsi_fail (GS_ERR_DEVICE, "it smokes"), INT64_MAX),
                GS_ERR_DEVICE, "rank 0 (host ", boot->host, "): it smokes");
    gsi_boot_close (boot);
}
END_TEST

START_TEST (own_host)
{
    char host[GSI_HOST_BYTES], name[256] = "";

    gethostname (name, sizeof (name) - 1);
    memset (host, '#', sizeof (host));
    gsi_process_host (host, sizeof (host));
    ck_assert_int_eq (strncmp (host, name, GSI_HOST_BYTES - 1), 0);
    ck_assert_int_eq (host[GSI_HOST_BYTES - 1], 0);
}
END_TEST

UNIT_SUITE ("boot", 60, alone_without_a_launcher, announced_tasks_without_pmix,
            announced_tasks_of_an_mpi_launcher, announced_server, security_domains, silent_server,
            nearest_announcement, fewer_ranks_than_announced, alone_in_an_allocation,
            ways_asked_for, missing_ranks_are_named, many_missing_ranks_are_counted,
            a_small_room_cuts_the_sentence, agreeing_alone, own_host)
