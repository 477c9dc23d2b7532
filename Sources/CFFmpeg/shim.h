// SPDX-License-Identifier: Apache-2.0
// FFmpeg's headers in one module, with constants for macros that Swift cannot import.
#ifndef CFFMPEG_SHIM_H
#define CFFMPEG_SHIM_H

#include <errno.h>

#include <libavcodec/avcodec.h>
#include <libavcodec/bsf.h>
#include <libavformat/avformat.h>
#include <libavutil/avutil.h>
#include <libavutil/channel_layout.h>
#include <libavutil/crc.h>
#include <libavutil/dict.h>
#include <libavutil/display.h>
#include <libavutil/dovi_meta.h>
#include <libavutil/error.h>
#include <libavutil/imgutils.h>
#include <libavutil/log.h>
#include <libavutil/mathematics.h>
#include <libavutil/opt.h>
#include <libavutil/pixdesc.h>
#include <libavutil/sha.h>
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

#endif
