/* SPDX-License-Identifier: BSD-3-Clause */
/* flags - values of the flags that streams wait for, on hosts and in kernels. */
#ifndef GS_DEVICE_FLAGS_H
#define GS_DEVICE_FLAGS_H

/* Of a process that has given up: more than any other, so that its streams go on for good. */
#define GSI_FLAG_RELEASED 0x40000000u

#endif /* GS_DEVICE_FLAGS_H */
