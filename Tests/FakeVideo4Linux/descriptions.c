// SPDX-License-Identifier: Apache-2.0
// The cameras, as their drivers describe them.
#include "model.h"

#include <string.h>

#define CAMERA (V4L2_CAP_VIDEO_CAPTURE | V4L2_CAP_STREAMING | V4L2_CAP_EXT_PIX_FORMAT)
#define MJPG(list) {V4L2_PIX_FMT_MJPEG, "Motion-JPEG", V4L2_FMT_FLAG_COMPRESSED, DISCRETE, list, 0, 0, DISCRETE, 0}
#define YUYV(list) {V4L2_PIX_FMT_YUYV, "YUYV 4:2:2", 0, DISCRETE, list, 0, 0, DISCRETE, 0}
#define GREY8(list) {V4L2_PIX_FMT_GREY, "8-bit Greyscale", 0, DISCRETE, list, 0, 0, DISCRETE, 0}
#define END_FORMATS {0, NULL, 0, DISCRETE, NULL, 0, 0, DISCRETE, 0}

// A webcam as there are many: two formats, sizes that stand in the list twice.
static const description_size webcam_yuyv[] = {
  {640, 480, {{1, 30}, {1, 24}, {1, 15}}}, {1280, 720, {{1, 10}, {1, 5}}},
  {640, 480, {{1, 20}, {1, 10}}}, {0}};
static const description_size webcam_mjpg[] = {
  {640, 480, {{1, 30}, {1, 15}}}, {1280, 720, {{1, 60}, {1, 30}}},
  {1920, 1080, {{1, 30}, {1, 24}, {1001, 30000}}}, {1280, 720, {{1, 24}}}, {0}};
static const description_format webcam_formats[] = {
  YUYV(webcam_yuyv), MJPG(webcam_mjpg),
  {V4L2_PIX_FMT_H264, "H.264", V4L2_FMT_FLAG_COMPRESSED, DISCRETE, webcam_mjpg, 0, 0, DISCRETE, 0},
  END_FORMATS};

// A fast USB camera: 120 and 240 fps compressed, slow otherwise.
static const description_size hfr_mjpg[] = {
  {1280, 720, {{1, 240}, {1, 120}, {1, 60}, {1, 30}}},
  {640, 360, {{1, 240}, {1, 120}, {1, 30}}}, {1920, 1080, {{1, 120}, {1, 60}, {1, 30}}}, {0}};
static const description_size hfr_yuyv[] = {
  {1280, 720, {{1, 10}}}, {640, 360, {{1, 30}, {1, 15}}}, {0}};
static const description_format hfr_formats[] = {MJPG(hfr_mjpg), YUYV(hfr_yuyv), END_FORMATS};

static const description_size mono_sizes[] = {
  {640, 400, {{1, 480}, {1, 240}, {1, 120}}}, {1280, 800, {{1, 120}, {1, 60}}}, {0}};
static const description_format mono_formats[] = {GREY8(mono_sizes), END_FORMATS};

static const description_size full_hd[] = {{1920, 1080, {{1, 120}, {1, 60}, {1, 30}}}, {0}};
static const description_format full_hd_formats[] = {YUYV(full_hd), END_FORMATS};

static const description_size tiny_sizes[] = {{16, 8, {{1, 240}, {1, 1000}, {1, 120}}}, {0}};
static const description_format tiny_formats[] = {GREY8(tiny_sizes), END_FORMATS};

// Rates that are no whole numbers, as drivers simplify them.
static const description_size odd_sizes[] = {
  {640, 480, {{8333, 1000000}, {1001, 120000}, {1, 120}, {83263, 10000000}, {1001, 60000}}}, {0}};
static const description_format odd_formats[] = {MJPG(odd_sizes), END_FORMATS};

static const description_size fixed_sizes[] = {{320, 240, {{1, 50}}}, {0}};
static const description_format fixed_formats[] = {YUYV(fixed_sizes), END_FORMATS};

// Sensors with ranges: the larger the picture, the slower.
static const description_size sensor_range[] = {{64, 64, {{0}}}, {1920, 1088, {{0}}}};
static const description_format stepwise_formats[] = {
  {V4L2_PIX_FMT_GREY, "8-bit Greyscale", 0, STEPWISE, sensor_range, 16, 8, STEPWISE, 124416000},
  {V4L2_PIX_FMT_YUYV, "YUYV 4:2:2", 0, STEPWISE, sensor_range, 16, 8, STEPWISE, 62208000},
  END_FORMATS};
static const description_format continuous_formats[] = {
  {V4L2_PIX_FMT_YUYV, "YUYV 4:2:2", 0, CONTINUOUS, sensor_range, 1, 1, CONTINUOUS, 92160000},
  END_FORMATS};

static const description_size mplane_sizes[] = {
  {1280, 720, {{1, 120}, {1, 60}}}, {640, 480, {{1, 200}, {1, 90}}}, {0}};
static const description_format mplane_formats[] = {
  {V4L2_PIX_FMT_NV12, "Y/UV 4:2:0", 0, DISCRETE, mplane_sizes, 0, 0, DISCRETE, 0}, END_FORMATS};

static const description_size hdmi_sizes[] = {{1920, 1080, {{1, 60}}}, {0}};
static const description_format hdmi_formats[] = {YUYV(hdmi_sizes), END_FORMATS};

// Nothing of this makes sense: no size, no rate, sizes beyond any picture.
static const description_size broken_sizes[] = {
  {0xFFFFFFFF, 0xFFFFFFFF, {{1, 30}}}, {640, 480, {{0, 30}, {0, 1}, {1, 30}}},
  {320, 0, {{1, 60}}}, {160, 120, {{0}}}, {0}};
static const description_format broken_formats[] = {
  MJPG(broken_sizes), {0x20202020, "", 0, DISCRETE, broken_sizes, 0, 0, DISCRETE, 0}, END_FORMATS};

static const description_control uvc_controls[] = {
  {V4L2_CID_BRIGHTNESS, V4L2_CTRL_TYPE_INTEGER, "Brightness", 0, 255, 1, 128, 0, {0}},
  {V4L2_CID_AUTO_WHITE_BALANCE, V4L2_CTRL_TYPE_BOOLEAN, "White Balance, Automatic", 0, 1, 1, 1, 0, {0}},
  {V4L2_CID_GAIN, V4L2_CTRL_TYPE_INTEGER, "Gain", 0, 255, 1, 64, 0, {0}},
  {V4L2_CID_POWER_LINE_FREQUENCY, V4L2_CTRL_TYPE_MENU, "Power Line Frequency", 0, 2, 1, 2, 0,
    {"Disabled", "50 Hz", "60 Hz"}},
  {V4L2_CID_WHITE_BALANCE_TEMPERATURE, V4L2_CTRL_TYPE_INTEGER, "White Balance Temperature", 2000,
    7500, 10, 4000, 0, {0}},
  {V4L2_CID_EXPOSURE_AUTO, V4L2_CTRL_TYPE_MENU, "Auto Exposure", 0, 3, 1, 3, 0,
    {NULL, "Manual Mode", NULL, "Aperture Priority Mode"}},
  {V4L2_CID_EXPOSURE_ABSOLUTE, V4L2_CTRL_TYPE_INTEGER, "Exposure Time, Absolute", 3, 2047, 1, 250,
    0, {0}},
  {V4L2_CID_EXPOSURE_AUTO_PRIORITY, V4L2_CTRL_TYPE_BOOLEAN, "Exposure, Dynamic Framerate", 0, 1, 1,
    1, 0, {0}},
  {V4L2_CID_FOCUS_ABSOLUTE, V4L2_CTRL_TYPE_INTEGER, "Focus, Absolute", 0, 250, 5, 0, 0, {0}},
  {V4L2_CID_FOCUS_AUTO, V4L2_CTRL_TYPE_BOOLEAN, "Focus, Automatic Continuous", 0, 1, 1, 1, 0, {0}},
  {V4L2_CID_ZOOM_ABSOLUTE, V4L2_CTRL_TYPE_INTEGER, "Zoom, Absolute", 100, 500, 1, 100, 0, {0}},
  {V4L2_CID_PRIVACY, V4L2_CTRL_TYPE_BOOLEAN, "Privacy", 0, 1, 1, 0, V4L2_CTRL_FLAG_READ_ONLY, {0}},
  {V4L2_CID_WIDE_DYNAMIC_RANGE, V4L2_CTRL_TYPE_BOOLEAN, "Wide Dynamic Range", 0, 1, 1, 1, 0, {0}},
  {0}};

const description fake_descriptions[] = {
  {"uvc-webcam", "uvcvideo", "HD Pro Webcam", "usb-0000:00:14.0-1", CAMERA, webcam_formats,
    uvc_controls, false, false},
  {"uvc-metadata", "uvcvideo", "HD Pro Webcam", "usb-0000:00:14.0-1",
    V4L2_CAP_META_CAPTURE | V4L2_CAP_STREAMING, NULL, NULL, false, false},
  {"hfr-usb", "uvcvideo", "High Frame Rate Camera", "usb-0000:00:14.0-2", CAMERA, hfr_formats,
    uvc_controls, false, true},
  {"mono-hfr", "uvcvideo", "Mono Global Shutter", "usb-0000:00:14.0-3", CAMERA, mono_formats,
    uvc_controls, false, false},
  {"yuyv-1080p120", "capturecard", "Uncompressed 1080p120", "PCI:0000:03:00.0", CAMERA,
    full_hd_formats, NULL, false, false},
  {"tiny", "tiny", "Tiny Camera", "platform:tiny", CAMERA, tiny_formats, uvc_controls, false, false},
  {"odd-rates", "uvcvideo", "Odd Fractions", "usb-0000:00:14.0-4", CAMERA, odd_formats, NULL, false,
    false},
  {"fixed-rate", "fixed", "One Rate", "platform:fixed", CAMERA, fixed_formats, NULL, true, false},
  {"stepwise-sensor", "sensor", "Stepwise Sensor", "platform:sensor", CAMERA, stepwise_formats,
    NULL, false, false},
  {"continuous-sensor", "sensor", "Continuous Sensor", "platform:sensor1", CAMERA,
    continuous_formats, NULL, false, false},
  {"mplane-sensor", "isp", "Multi-planar Sensor", "platform:isp",
    V4L2_CAP_VIDEO_CAPTURE_MPLANE | V4L2_CAP_STREAMING, mplane_formats, NULL, false, false},
  {"hdmi-card", "hdmi", "HDMI Capture", "PCI:0000:04:00.0", CAMERA, hdmi_formats, NULL, false, false},
  {"broken", "broken", "A name of thirty-two characters..", "usb-broken", CAMERA, broken_formats,
    NULL, false, false},
  {"output", "display", "Output Only", "platform:display",
    V4L2_CAP_VIDEO_OUTPUT | V4L2_CAP_STREAMING, NULL, NULL, false, false},
  {"m2m", "codec", "Memory to Memory", "platform:codec", V4L2_CAP_VIDEO_M2M | V4L2_CAP_STREAMING,
    NULL, NULL, false, false},
  {"touch", "touch", "Touch Pad", "i2c-touch", CAMERA | V4L2_CAP_TOUCH, mono_formats, NULL, false,
    false},
  {NULL, NULL, NULL, NULL, 0, NULL, NULL, false, false},
};

const description *find_description(const char *name, size_t length) {
  for (const description *kind = fake_descriptions; kind->name != NULL; kind++)
    if (strlen(kind->name) == length && memcmp(kind->name, name, length) == 0) return kind;
  return NULL;
}
