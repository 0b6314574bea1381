/* SPDX-License-Identifier: BSD-3-Clause */
/* mail_carry - hands messages to the transport, those in host memory over the GPU's. */
#include <stdlib.h>
#include <string.h>

#include "comm/carry.h"
#include "comm/mail.h"
#include "comm/traffic.h"

#define LEAST_ROOM ((size_t) 1 << 20)
#define ALIGNMENT  256u

static size_t padded (size_t bytes)
{
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/*
 * Makes room for [bytes] on the GPU. What was too small is kept until the end: to free it would
 * wait for all of the GPU's work, and so perhaps for other ranks.
 */
static gs_status_t make_room (gs_comm_t *comm, struct gsi_mail *mail, size_t bytes)
{
    size_t more = bytes > 2 * mail->room_bytes ? bytes : 2 * mail->room_bytes;
    gs_status_t st;

    if (bytes <= mail->room_bytes)
        return GS_OK;
    if (mail->rooms == GSI_MAIL_ROOMS)
        return gsi_fail (GS_ERR_NOMEM, "no more room on the GPU for messages of the host");
    more = more < LEAST_ROOM ? LEAST_ROOM : more;
    if ((st = comm->device->ops->alloc (comm->device, more, &mail->room[mail->rooms])))
        return st;
    mail->rooms++;
    mail->room_bytes = more;
    return GS_OK;
}

/* Lays out [list] in memory of the GPU as mail->moved, and copies what is sent. */
static gs_status_t move_there (gs_comm_t *comm, struct gsi_mail *mail,
                               const struct gsi_message *list, int number,
                               const struct gsi_call *call)
{
    const struct gsi_queue_ops *ops = comm->device->ops->queue;
    size_t total = 0, at = 0;
    gs_status_t st = gsi_mail_reserve (&mail->moved, number);

    for (int i = 0; i < number; i++)
        total += padded (list[i].bytes);
    if (st || (st = make_room (comm, mail, total)))
        return st;
    for (int i = 0; i < number && !st; i++) {
        struct gsi_message *moved = &mail->moved.message[i];
        *moved = list[i];
        if (!moved->bytes)
            continue;
        moved->buf = (char *) mail->room[mail->rooms - 1] + at;
        at += padded (moved->bytes);
        if (moved->send)
            st = ops->copy (moved->buf, list[i].buf, moved->bytes, call->stream);
    }
    return st;
}

static gs_status_t move_back (gs_comm_t *comm, const struct gsi_mail *mail,
                              const struct gsi_message *list, int number,
                              const struct gsi_call *call)
{
    gs_status_t st = GS_OK;

    for (int i = 0; i < number && !st; i++)
        if (!list[i].send && list[i].bytes)
            st = comm->device->ops->queue->copy (list[i].buf, mail->moved.message[i].buf,
                                                 list[i].bytes, call->stream);
    return st;
}

static gs_status_t carry_own (gs_comm_t *comm, const struct gsi_message *own, int number,
                              const struct gsi_call *call)
{
    gs_status_t st = GS_OK;

    for (int i = 0; i + 1 < number && !st; i += 2) {
        const struct gsi_message *from = &own[i], *to = &own[i + 1];
        if (!from->bytes || from->buf == to->buf)
            continue;
        if (comm->queue)
            st = comm->device->ops->queue->copy (to->buf, from->buf, from->bytes, call->stream);
        else
            memmove (to->buf, from->buf, from->bytes);
    }
    return st;
}

gs_status_t gsi_mail_carry_all (gs_comm_t *comm, struct gsi_message *list, int number,
                                const struct gsi_message *own, int owns,
                                const struct gsi_call *call)
{
    struct gsi_mail *mail = gsi_mail_of (comm);
    struct gsi_call apart;
    gs_status_t st;

    if (!mail)
        return gsi_fail (GS_ERR_NOMEM, "out of memory for messages");
    for (int i = 0; i < number; i++)
        if (list[i].send)
            gsi_traffic_hand (comm, list[i].bytes);
    if (!call->staged) {
        st = carry_own (comm, own, owns, call);
        return st || !number ? st : comm->coll->ops->messages (comm->coll, list, number, call);
    }
    if ((st = gsi_carry_stand_apart (comm, call, &apart)) ||
        (st = carry_own (comm, own, owns, &apart)) ||
        (st = move_there (comm, mail, list, number, &apart)))
        return st;
    if (number)
        st = comm->coll->ops->messages (comm->coll, mail->moved.message, number, &apart);
    /* A copy to pageable memory waits without a deadline, so what it waits for comes before. */
    if (st || (st = gsi_carry_await (comm, call)) ||
        (st = move_back (comm, mail, list, number, &apart)))
        return st;
    return gsi_carry_await (comm, call);
}

gs_status_t gsi_mail_carry (gs_comm_t *comm, struct gsi_message *list, int number,
                            const struct gsi_call *call)
{
    return gsi_mail_carry_all (comm, list, number, NULL, 0, call);
}

void gsi_mail_close (gs_comm_t *comm)
{
    struct gsi_mail *mail = comm->mail;
    int previous;

    if (!mail)
        return;
    if (mail->rooms && !comm->device->ops->queue->enter (comm->device, &previous)) {
        for (int i = 0; i < mail->rooms; i++)
            comm->device->ops->free (comm->device, mail->room[i]);
        comm->device->ops->queue->leave (comm->device, previous);
    }
    free (mail->others.message);
    free (mail->sends.message);
    free (mail->recvs.message);
    free (mail->moved.message);
    free (mail);
    comm->mail = NULL;
}
