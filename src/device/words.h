/* SPDX-License-Identifier: BSD-3-Clause */
/* words - values of the words that streams wait for, on hosts and in kernels. */
#ifndef GS_DEVICE_WORDS_H
#define GS_DEVICE_WORDS_H

/* Of a process that has given up: more than any other, so that its streams go on for good. */
#define GSI_WORD_RELEASED 0x40000000u

#endif /* GS_DEVICE_WORDS_H */
