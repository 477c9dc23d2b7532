// SPDX-License-Identifier: Apache-2.0
// FFmpeg's headers in one module, and what of them Swift cannot import: macros that are
// expressions. Each shim answers with the value the macro has.
#ifndef CFFMPEG_SHIM_H
#define CFFMPEG_SHIM_H

#include <errno.h>
#include <linux/falloc.h>
#include <linux/magic.h>
#include <malloc.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <libavcodec/avcodec.h>
#include <libavcodec/bsf.h>
#include <libavformat/avformat.h>
#include <libavutil/avutil.h>
#include <libavutil/channel_layout.h>
#include <libavutil/crc.h>
#include <libavutil/dict.h>
#include <libavutil/display.h>
#include <libavutil/error.h>
#include <libavutil/imgutils.h>
#include <libavutil/log.h>
#include <libavutil/mathematics.h>
#include <libavutil/opt.h>
#include <libavutil/pixdesc.h>
#include <libswresample/swresample.h>
#include <libswscale/swscale.h>

/// AV_NOPTS_VALUE and the AVERROR codes are macros with casts.
static const int64_t CFFmpeg_NOPTS = AV_NOPTS_VALUE;
static const int CFFmpeg_EOF = AVERROR_EOF;
static const int CFFmpeg_EXIT = AVERROR_EXIT;
static const int CFFmpeg_EAGAIN = AVERROR(EAGAIN);
static const int CFFmpeg_INVALIDDATA = AVERROR_INVALIDDATA;
static const int CFFmpeg_ENOMEM = AVERROR(ENOMEM);
static const int CFFmpeg_EINVAL = AVERROR(EINVAL);
static const int CFFmpeg_DECODER_NOT_FOUND = AVERROR_DECODER_NOT_FOUND;
static const int CFFmpeg_ENCODER_NOT_FOUND = AVERROR_ENCODER_NOT_FOUND;

/// fallocate(2), which the module of the C library leaves out: reserves room for a file, also behind
/// its end, which stays where it is.
static inline int CFFmpeg_reserve(int descriptor, int64_t start, int64_t count) {
  return syscall(SYS_fallocate, descriptor, FALLOC_FL_KEEP_SIZE, start, count) == 0 ? 0 : -errno;
}

/// fstatfs(2), likewise: whether a file lies in memory.
static inline int CFFmpeg_isInMemory(int descriptor) {
  struct statfs system;
  return fstatfs(descriptor, &system) == 0 && system.f_type == TMPFS_MAGIC;
}

/// mallopt(3), which the module of the C library leaves out: freed buffers of up to 32 MiB are kept
/// for the next request, up to 256 MiB in all.
static inline void CFFmpeg_keepLargeBuffers(void) {
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, 256 << 20);
}

#endif
