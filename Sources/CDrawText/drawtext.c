// SPDX-License-Identifier: Apache-2.0

#include "include/CDrawText.h"

#include <libavfilter/avfilter.h>
#include <libavfilter/buffersink.h>
#include <libavfilter/buffersrc.h>
#include <libavutil/dict.h>
#include <libavutil/frame.h>
#include <libavutil/opt.h>
#include <stdio.h>
#include <string.h>

typedef struct {
  AVFilterGraph *graph;
  AVFilterContext *source, *sink;
  AVFrame *frame, *drawn;
} DTDrawing;

static void dt_free(DTDrawing *drawing) {
  avfilter_graph_free(&drawing->graph);
  av_frame_free(&drawing->frame);
  av_frame_free(&drawing->drawn);
}

/// The filter that draws the text in each frame's metadata.
static int dt_add_filter(DTDrawing *drawing, const char *font, int height, AVFilterContext **out) {
  const AVFilter *filter = avfilter_get_by_name("drawtext");
  if (!filter) return AVERROR_FILTER_NOT_FOUND;
  AVFilterContext *context = avfilter_graph_alloc_filter(drawing->graph, filter, "text");
  if (!context) return AVERROR(ENOMEM);
  char size[16], y[32];
  snprintf(size, sizeof size, "%d", height);
  // The baseline leaves space below it for the lowest characters of most fonts.
  snprintf(y, sizeof y, "%d-max_glyph_a", height * 77 / 100);
  const char *options[][2] = {
    {"font", font}, {"text", "%{metadata:text}"}, {"fontsize", size}, {"fontcolor", "white"},
    {"x", "(w-text_w)/2"}, {"y", y},
  };
  for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
    int status = av_opt_set(context, options[i][0], options[i][1], AV_OPT_SEARCH_CHILDREN);
    if (status < 0) return status;
  }
  *out = context;
  return avfilter_init_str(context, NULL);
}

static int dt_open(DTDrawing *drawing, const char *font, int width, int height) {
  drawing->graph = avfilter_graph_alloc();
  drawing->frame = av_frame_alloc();
  drawing->drawn = av_frame_alloc();
  if (!drawing->graph || !drawing->frame || !drawing->drawn) return AVERROR(ENOMEM);
  // One frame after another, without threads.
  drawing->graph->nb_threads = 1;
  char format[64];
  snprintf(
    format, sizeof format, "video_size=%dx%d:pix_fmt=rgb24:time_base=1/25", width, height);
  AVFilterContext *text = NULL;
  int status = avfilter_graph_create_filter(
    &drawing->source, avfilter_get_by_name("buffer"), "in", format, NULL, drawing->graph);
  if (status >= 0) status = dt_add_filter(drawing, font, height, &text);
  if (status >= 0) {
    status = avfilter_graph_create_filter(
      &drawing->sink, avfilter_get_by_name("buffersink"), "out", NULL, NULL, drawing->graph);
  }
  if (status >= 0) status = avfilter_link(drawing->source, 0, text, 0);
  if (status >= 0) status = avfilter_link(text, 0, drawing->sink, 0);
  return status < 0 ? status : avfilter_graph_config(drawing->graph, NULL);
}

/// Draws one character in white on black.
static int dt_draw(DTDrawing *drawing, int character, int width, int height, uint8_t *coverage) {
  AVFrame *frame = drawing->frame;
  frame->format = AV_PIX_FMT_RGB24;
  frame->width = width;
  frame->height = height;
  frame->pts = character;
  int status = av_frame_get_buffer(frame, 0);
  if (status < 0) return status;
  memset(frame->data[0], 0, (size_t)frame->linesize[0] * (size_t)height);
  char text[2] = {(char)character, 0};
  status = av_dict_set(&frame->metadata, "text", text, 0);
  // The graph takes the frame.
  if (status >= 0) status = av_buffersrc_add_frame(drawing->source, frame);
  av_frame_unref(frame);
  if (status >= 0) status = av_buffersink_get_frame(drawing->sink, drawing->drawn);
  if (status < 0) return status;
  for (int y = 0; y < height; y++) {
    const uint8_t *row = drawing->drawn->data[0] + (ptrdiff_t)y * drawing->drawn->linesize[0];
    for (int x = 0; x < width; x++) coverage[(ptrdiff_t)y * width + x] = row[3 * x];
  }
  av_frame_unref(drawing->drawn);
  return 0;
}

int32_t dt_draw_characters(
  const char *font, int32_t first, int32_t count, int32_t width, int32_t height, uint8_t *coverage
) {
  DTDrawing drawing = {0};
  int status = dt_open(&drawing, font, width, height);
  for (int number = 0; status >= 0 && number < count; number++) {
    status = dt_draw(
      &drawing, first + number, width, height, coverage + (ptrdiff_t)number * width * height);
  }
  dt_free(&drawing);
  return status < 0 ? status : 0;
}
