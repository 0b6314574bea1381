/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * flow - how far a save has come: bytes are staged in a ring by one thread, and taken out by the
 * one that writes them; or there is no ring, and the writer takes them where they are. Whoever
 * fails closes it, and nobody waits any more.
 */
#ifndef GS_CKPT_SAVE_FLOW_H
#define GS_CKPT_SAVE_FLOW_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

struct gsi_flow {
    const char *path;      /* for texts */
    pthread_mutex_t guard; /* of all below but the ring's bytes */
    pthread_cond_t moved;
    char *ring; /* [room]; NULL: there is none */
    size_t room;
    uint64_t total;         /* bytes that come by, */
    uint64_t staged, taken; /* that are in the ring, and that the writer is done with */
    bool closed, ended;     /* nothing more is wanted; the thread is through */
    int64_t moved_ns;       /* when it was last seen to move */
    struct gsi_failure failure;
};

/* N.B. [path] stays. */
void gsi_flow_open (struct gsi_flow *f, const char *path, void *ring, size_t room,
                    uint64_t total);
void gsi_flow_clear (struct gsi_flow *f);

/* Where byte number [at] is in the ring. */
char *gsi_flow_place (const struct gsi_flow *f, uint64_t at);

/* Waits until the bytes up to [end] fit into the ring; whether they do: else it is closed. If
 * nothing moves for [patience_ns], it fails: GS_ERR_TIMEOUT. */
bool gsi_flow_await_room (struct gsi_flow *f, uint64_t end, int64_t patience_ns);
void gsi_flow_stage (struct gsi_flow *f, uint64_t end);

/* The writer's: waits until the bytes up to [end] are there; whether they are. */
bool gsi_flow_await_data (struct gsi_flow *f, uint64_t end);
void gsi_flow_take (struct gsi_flow *f, uint64_t end);
void gsi_flow_move (struct gsi_flow *f); /* something other than bytes has moved */
bool gsi_flow_closed (struct gsi_flow *f);
void gsi_flow_end (struct gsi_flow *f);                     /* its last word, */
void gsi_flow_again (struct gsi_flow *f, const char *path); /* unless another thread follows */

/* Notes a failure, if it is the first, with the text of this thread; closes it. */
void gsi_flow_fail (struct gsi_flow *f, gs_status_t st);

/*
 * Waits until the program may change its arrays, or until the writer has ended; whether that is
 * so at [until_ns]. If nothing has moved for [patience_ns], the flow fails: GS_ERR_TIMEOUT.
 */
enum gsi_flow_goal { GSI_FLOW_STAGED, GSI_FLOW_ENDED };
bool gsi_flow_await (struct gsi_flow *f, enum gsi_flow_goal goal, int64_t until_ns,
                     int64_t patience_ns);

#endif /* GS_CKPT_SAVE_FLOW_H */
