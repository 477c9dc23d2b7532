// SPDX-License-Identifier: Apache-2.0
// The simulated cameras, as their drivers describe them.
#include "model.h"

#include <errno.h>
#include <linux/v4l2-dv-timings.h>
#include <string.h>

// The kernel's timing macros leave trailing fields uninitialized (zero).
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

#define CAMERA (V4L2_CAP_VIDEO_CAPTURE | V4L2_CAP_STREAMING | V4L2_CAP_EXT_PIX_FORMAT)
#define RAW(fourcc, name, list) {fourcc, name, 0, DISCRETE, list, 0, 0, DISCRETE, 0, 1}
#define COMPRESSED(fourcc, name, list) \
  {fourcc, name, V4L2_FMT_FLAG_COMPRESSED, DISCRETE, list, 0, 0, DISCRETE, 0, 1}
#define MJPG(list) COMPRESSED(V4L2_PIX_FMT_MJPEG, "Motion-JPEG", list)
#define YUYV(list) RAW(V4L2_PIX_FMT_YUYV, "YUYV 4:2:2", list)
#define GRAY8(list) RAW(V4L2_PIX_FMT_GREY, "8-bit Greyscale", list)
#define END_FORMATS {.fourcc = 0}

// A typical webcam: several formats, and sizes that are listed twice.
static const description_size webcam_yuyv[] = {
  {640, 480, {{1, 30}, {1, 24}, {1, 15}}}, {1280, 720, {{1, 10}, {1, 5}}},
  {640, 480, {{1, 20}, {1, 10}}}, {0}};
static const description_size webcam_mjpg[] = {
  {640, 480, {{1, 30}, {1, 15}}}, {1280, 720, {{1, 60}, {1, 30}}},
  {1920, 1080, {{1, 30}, {1, 24}, {1001, 30000}}}, {1280, 720, {{1, 24}}}, {0}};
static const description_format webcam_formats[] = {
  YUYV(webcam_yuyv), MJPG(webcam_mjpg),
  COMPRESSED(V4L2_PIX_FMT_H264, "H.264", webcam_mjpg),
  END_FORMATS};

// A fast USB camera: 120 and 240 fps compressed, slow uncompressed.
static const description_size hfr_mjpg[] = {
  {1280, 720, {{1, 240}, {1, 120}, {1, 60}, {1, 30}}},
  {640, 360, {{1, 240}, {1, 120}, {1, 30}}}, {1920, 1080, {{1, 120}, {1, 60}, {1, 30}}}, {0}};
static const description_size hfr_yuyv[] = {
  {1280, 720, {{1, 10}}}, {640, 360, {{1, 30}, {1, 15}}}, {0}};
static const description_format hfr_formats[] = {MJPG(hfr_mjpg), YUYV(hfr_yuyv), END_FORMATS};

static const description_size mono_sizes[] = {
  {640, 400, {{1, 480}, {1, 240}, {1, 120}}}, {1280, 800, {{1, 120}, {1, 60}}}, {0}};
static const description_format mono_formats[] = {GRAY8(mono_sizes), END_FORMATS};

// Every size at every rate, for measurements.
#define EVERY_RATE {{1, 960}, {1, 480}, {1, 240}, {1, 120}}
static const description_size any_sizes[] = {
  {640, 480, EVERY_RATE}, {1280, 720, EVERY_RATE}, {1920, 1080, EVERY_RATE}, {0}};
static const description_format any_formats[] = {MJPG(any_sizes), YUYV(any_sizes), END_FORMATS};

static const description_size full_hd[] = {{1920, 1080, {{1, 120}, {1, 60}, {1, 30}}}, {0}};
static const description_format full_hd_formats[] = {YUYV(full_hd), END_FORMATS};

static const description_size tiny_sizes[] = {{16, 8, {{1, 240}, {1, 1000}, {1, 120}}}, {0}};
static const description_format tiny_formats[] = {GRAY8(tiny_sizes), END_FORMATS};

// Fractional frame rates, as drivers round them.
static const description_size odd_sizes[] = {
  {640, 480, {{8333, 1000000}, {1001, 120000}, {1, 120}, {83263, 10000000}, {1001, 60000}}}, {0}};
static const description_format odd_formats[] = {MJPG(odd_sizes), END_FORMATS};

static const description_size fixed_sizes[] = {{320, 240, {{1, 50}}}, {0}};
static const description_format fixed_formats[] = {YUYV(fixed_sizes), END_FORMATS};

// Sensors with size ranges: larger frames have lower rates.
static const description_size sensor_range[] = {{64, 64, {{0}}}, {1920, 1088, {{0}}}};
static const description_format stepwise_formats[] = {
  {V4L2_PIX_FMT_GREY, "8-bit Greyscale", 0, STEPWISE, sensor_range, 16, 8, STEPWISE, 124416000, 1},
  {V4L2_PIX_FMT_YUYV, "YUYV 4:2:2", 0, STEPWISE, sensor_range, 16, 8, STEPWISE, 62208000, 1},
  END_FORMATS};
static const description_format continuous_formats[] = {
  {V4L2_PIX_FMT_YUYV, "YUYV 4:2:2", 0, CONTINUOUS, sensor_range, 1, 1, CONTINUOUS, 92160000, 1},
  END_FORMATS};

static const description_size mplane_sizes[] = {
  {1280, 720, {{1, 120}, {1, 60}}}, {640, 480, {{1, 200}, {1, 90}}}, {0}};
static const description_format mplane_formats[] = {
  RAW(V4L2_PIX_FMT_NV12, "Y/CbCr 4:2:0", mplane_sizes), END_FORMATS};

static const description_size hdmi_sizes[] = {{1920, 1080, {{1, 60}}}, {0}};
static const description_format hdmi_formats[] = {YUYV(hdmi_sizes), END_FORMATS};

// Invalid values: zero sizes, zero rates, and sizes beyond any frame.
static const description_size broken_sizes[] = {
  {0xFFFFFFFF, 0xFFFFFFFF, {{1, 30}}}, {640, 480, {{0, 30}, {0, 1}, {1, 30}}},
  {320, 0, {{1, 60}}}, {160, 120, {{0}}}, {0}};
static const description_format broken_formats[] = {
  MJPG(broken_sizes), RAW(0x20202020, "", broken_sizes), END_FORMATS};

// Enumerations that never end.
static const description_size endless_sizes[] = {{640, 480, {{1, 30}}}, {0}};
static const description_format endless_formats[] = {MJPG(endless_sizes), END_FORMATS};

static const description_size two_plane_sizes[] = {
  {1280, 720, {{1, 120}, {1, 60}}}, {640, 400, {{1, 240}}}, {0}};
static const description_format two_plane_formats[] = {
  {V4L2_PIX_FMT_NV12M, "Y/CbCr 4:2:0 (N-C)", 0, DISCRETE, two_plane_sizes, 0, 0, DISCRETE, 0, 2},
  END_FORMATS};

// Uncompressed formats that the other simulated cameras lack.
static const description_size raw_color_sizes[] = {{64, 48, {{1, 120}, {1, 60}}}, {0}};
static const description_format raw_color_formats[] = {
  RAW(V4L2_PIX_FMT_UYVY, "UYVY 4:2:2", raw_color_sizes),
  RAW(V4L2_PIX_FMT_RGB24, "24-bit RGB 8-8-8", raw_color_sizes), END_FORMATS};

// 640x480 at 120 Hz by VESA's CVT formula.
#define CVT_640X480P120 \
  {.type = V4L2_DV_BT_656_1120, \
    V4L2_INIT_BT_TIMINGS( \
      640, 480, 0, V4L2_DV_VSYNC_POS_POL, 52250000, 40, 64, 104, 3, 4, 31, 0, 0, 0, \
      V4L2_DV_BT_STD_CVT, 0)}

static const struct v4l2_dv_timings full_hd_60 = V4L2_DV_BT_CEA_1920X1080P60;
static const struct v4l2_dv_timings vga_120 = CVT_640X480P120;
static const struct v4l2_dv_timings hdmi_timings[] = {
  V4L2_DV_BT_CEA_1920X1080P60, V4L2_DV_BT_CEA_1920X1080P30, V4L2_DV_BT_CEA_1280X720P60,
  V4L2_DV_BT_CEA_1280X720P50, V4L2_DV_BT_CEA_640X480P59_94, CVT_640X480P120, {.type = 0}};
static const description_input hdmi_inputs[] = {
  {"HDMI 0", V4L2_INPUT_TYPE_CAMERA, V4L2_IN_CAP_DV_TIMINGS, 0, &full_hd_60, 0},
  {"HDMI 1", V4L2_INPUT_TYPE_CAMERA, V4L2_IN_CAP_DV_TIMINGS, 0, &vga_120, 0},
  {"HDMI 2", V4L2_INPUT_TYPE_CAMERA, V4L2_IN_CAP_DV_TIMINGS, 0, NULL, ENOLINK},
  {.name = NULL}};

static const description_input tv_inputs[] = {
  {"Television", V4L2_INPUT_TYPE_TUNER, V4L2_IN_CAP_STD, V4L2_STD_PAL | V4L2_STD_NTSC, NULL, 0},
  {"Composite", V4L2_INPUT_TYPE_CAMERA, V4L2_IN_CAP_STD, V4L2_STD_PAL | V4L2_STD_NTSC, NULL, 0},
  {"S-Video", V4L2_INPUT_TYPE_CAMERA, V4L2_IN_CAP_STD, V4L2_STD_NTSC, NULL, 0},
  {.name = NULL}};
static const description_size tv_sizes[] = {{720, 576, {{1, 25}}}, {0}};
static const description_format tv_formats[] = {YUYV(tv_sizes), END_FORMATS};

#define NUMBER(id, name, least, most, step, value) \
  {id, V4L2_CTRL_TYPE_INTEGER, name, least, most, step, value, 0, {NULL}}
#define SWITCH(id, name, value) \
  {id, V4L2_CTRL_TYPE_BOOLEAN, name, 0, 1, 1, value, 0, {NULL}}
#define MENU(id, name, most, value, ...) \
  {id, V4L2_CTRL_TYPE_MENU, name, 0, most, 1, value, 0, {__VA_ARGS__}}
#define HEADING(id, name) \
  {id, V4L2_CTRL_TYPE_CTRL_CLASS, name, 0, 0, 0, 0, \
    V4L2_CTRL_FLAG_READ_ONLY | V4L2_CTRL_FLAG_WRITE_ONLY, {NULL}}
#define END_CONTROLS {.id = 0}

// The controls of a UVC camera. The exposure menu has missing items.
#define UVC_CONTROLS \
  HEADING(V4L2_CID_USER_CLASS, "User Controls"), \
  NUMBER(V4L2_CID_BRIGHTNESS, "Brightness", 0, 255, 1, 128), \
  SWITCH(V4L2_CID_AUTO_WHITE_BALANCE, "White Balance, Automatic", 1), \
  NUMBER(V4L2_CID_GAIN, "Gain", 0, 255, 1, 64), \
  MENU( \
    V4L2_CID_POWER_LINE_FREQUENCY, "Power Line Frequency", 2, 2, "Disabled", "50 Hz", "60 Hz"), \
  NUMBER( \
    V4L2_CID_WHITE_BALANCE_TEMPERATURE, "White Balance Temperature", 2000, 7500, 10, 4000), \
  HEADING(V4L2_CID_CAMERA_CLASS, "Camera Controls"), \
  MENU( \
    V4L2_CID_EXPOSURE_AUTO, "Auto Exposure", 3, 3, NULL, "Manual Mode", NULL, \
    "Aperture Priority Mode"), \
  NUMBER(V4L2_CID_EXPOSURE_ABSOLUTE, "Exposure Time, Absolute", 3, 2047, 1, 250), \
  SWITCH(V4L2_CID_EXPOSURE_AUTO_PRIORITY, "Exposure, Dynamic Framerate", 1), \
  NUMBER(V4L2_CID_FOCUS_ABSOLUTE, "Focus, Absolute", 0, 250, 5, 0), \
  SWITCH(V4L2_CID_FOCUS_AUTO, "Focus, Automatic Continuous", 1), \
  NUMBER(V4L2_CID_ZOOM_ABSOLUTE, "Zoom, Absolute", 100, 500, 1, 100), \
  {V4L2_CID_PRIVACY, V4L2_CTRL_TYPE_BOOLEAN, "Privacy", 0, 1, 1, 0, V4L2_CTRL_FLAG_READ_ONLY, \
    {NULL}}, \
  SWITCH(V4L2_CID_WIDE_DYNAMIC_RANGE, "Wide Dynamic Range", 1)

static const description_control uvc_controls[] = {UVC_CONTROLS, END_CONTROLS};

// The controls of a better UVC camera, with every control type.
static const description_control webcam_controls[] = {
  UVC_CONTROLS,
  SWITCH(V4L2_CID_HFLIP, "Horizontal Flip", 0), SWITCH(V4L2_CID_VFLIP, "Vertical Flip", 0),
  NUMBER(V4L2_CID_PAN_ABSOLUTE, "Pan, Absolute", -36000, 36000, 3600, 0),
  NUMBER(V4L2_CID_TILT_ABSOLUTE, "Tilt, Absolute", -36000, 36000, 3600, 0),
  {V4L2_CID_DO_WHITE_BALANCE, V4L2_CTRL_TYPE_BUTTON, "White Balance, Once", 0, 0, 0, 0,
    V4L2_CTRL_FLAG_WRITE_ONLY | V4L2_CTRL_FLAG_EXECUTE_ON_WRITE, {NULL}},
  {V4L2_CID_AUTO_EXPOSURE_BIAS, V4L2_CTRL_TYPE_INTEGER_MENU, "Auto Exposure, Bias", 0, 4, 1, 2, 0,
    {"-2000", "-1000", "0", "1000", "2000"}},
  {CID_UVC_REGION, TYPE_RECT, "Region of Interest Rectangle", 0, 0, 0, 0, 0, {NULL}},
  {CID_UVC_REGION_AUTO, V4L2_CTRL_TYPE_BITMASK, "Region of Interest Auto Ctrls", 0, 0xb, 0, 0, 0,
    {NULL}},
  END_CONTROLS};

// Built-in sensors with a camera orientation.
#define ORIENTATION(value) \
  {V4L2_CID_CAMERA_ORIENTATION, V4L2_CTRL_TYPE_MENU, "Camera Orientation", 0, 2, 1, value, \
    V4L2_CTRL_FLAG_READ_ONLY, {"Front", "Back", "External"}}
static const description_control front_controls[] = {ORIENTATION(0), END_CONTROLS};
static const description_control back_controls[] = {ORIENTATION(1), END_CONTROLS};

// A module of a sensor, a lens and an LED, as telephones have them.
static const description_size module_sizes[] = {{64, 48, {{1, 120}, {1, 100}, {1, 30}}}, {0}};
static const description_format module_formats[] = {GRAY8(module_sizes), END_FORMATS};
static const description_control module_controls[] = {
  NUMBER(V4L2_CID_BRIGHTNESS, "Brightness", 0, 255, 1, 128),
  MENU(
    V4L2_CID_EXPOSURE_AUTO, "Auto Exposure", 1, 1, "Auto Mode", "Manual Mode"),
  NUMBER(V4L2_CID_EXPOSURE_ABSOLUTE, "Exposure Time, Absolute", 1, 1000, 1, 50),
  NUMBER(V4L2_CID_ZOOM_ABSOLUTE, "Zoom, Absolute", 100, 400, 1, 100),
  SWITCH(V4L2_CID_IMAGE_STABILIZATION, "Image Stabilization", 0),
  {V4L2_CID_ISO_SENSITIVITY, V4L2_CTRL_TYPE_INTEGER_MENU, "ISO Sensitivity", 0, 2, 1, 0, 0,
    {"100000", "200000", "800000"}},
  {V4L2_CID_AUTO_EXPOSURE_BIAS, V4L2_CTRL_TYPE_INTEGER_MENU, "Auto Exposure, Bias", 0, 2, 1, 1, 0,
    {"-500", "0", "500"}},
  MENU(
    V4L2_CID_EXPOSURE_METERING, "Exposure, Metering Mode", 2, 1, "Average", "Center Weighted",
    "Spot"),
  SWITCH(V4L2_CID_AUTO_WHITE_BALANCE, "White Balance, Automatic", 1),
  NUMBER(
    V4L2_CID_WHITE_BALANCE_TEMPERATURE, "White Balance Temperature", 2000, 7500, 10, 4000),
  MENU(V4L2_CID_AUTO_FOCUS_RANGE, "Auto Focus, Range", 3, 0, "Auto", "Normal", "Macro", "Infinity"),
  {V4L2_CID_CAMERA_ORIENTATION, V4L2_CTRL_TYPE_MENU, "Camera Orientation", 0, 2, 1, 1,
    V4L2_CTRL_FLAG_READ_ONLY, {"Front", "Back", "External"}},
  {V4L2_CID_CAMERA_SENSOR_ROTATION, V4L2_CTRL_TYPE_INTEGER, "Camera Sensor Rotation", 270, 270, 1,
    270, V4L2_CTRL_FLAG_READ_ONLY, {NULL}},
  MENU(V4L2_CID_FLASH_LED_MODE, "LED Mode", 2, 0, "Off", "Flash", "Torch"),
  NUMBER(V4L2_CID_FLASH_TORCH_INTENSITY, "Intensity, Torch Mode", 20, 200, 20, 20),
  {V4L2_CID_FLASH_STROBE, V4L2_CTRL_TYPE_BUTTON, "Strobe", 0, 0, 0, 0,
    V4L2_CTRL_FLAG_WRITE_ONLY | V4L2_CTRL_FLAG_EXECUTE_ON_WRITE, {NULL}},
  END_CONTROLS};

const description fake_descriptions[] = {
  {.name = "uvc-webcam", .driver = "uvcvideo", .card = "HD Pro Webcam",
    .bus = "usb-0000:00:14.0-1", .capabilities = CAMERA, .formats = webcam_formats,
    .controls = webcam_controls, .companion = "uvc-metadata"},
  {.name = "uvc-metadata", .driver = "uvcvideo", .card = "HD Pro Webcam",
    .bus = "usb-0000:00:14.0-1", .capabilities = V4L2_CAP_META_CAPTURE | V4L2_CAP_STREAMING},
  {.name = "hfr-usb", .driver = "uvcvideo", .card = "High Frame Rate Camera",
    .bus = "usb-0000:00:14.0-2", .capabilities = CAMERA, .formats = hfr_formats,
    .controls = uvc_controls, .exposure_follows_rate = true},
  {.name = "mono-hfr", .driver = "uvcvideo", .card = "Mono Global Shutter",
    .bus = "usb-0000:00:14.0-3", .capabilities = CAMERA, .formats = mono_formats,
    .controls = uvc_controls},
  {.name = "yuyv-1080p120", .driver = "capturecard", .card = "Uncompressed 1080p120",
    .bus = "PCI:0000:03:00.0", .capabilities = CAMERA, .formats = full_hd_formats},
  {.name = "tiny", .driver = "tiny", .card = "Tiny Camera", .bus = "platform:tiny",
    .capabilities = CAMERA, .formats = tiny_formats, .controls = uvc_controls},
  {.name = "odd-rates", .driver = "uvcvideo", .card = "Odd Fractions",
    .bus = "usb-0000:00:14.0-4", .capabilities = CAMERA, .formats = odd_formats},
  {.name = "fixed-rate", .driver = "fixed", .card = "One Rate", .bus = "platform:fixed",
    .capabilities = CAMERA, .formats = fixed_formats, .fixed_rate = true},
  {.name = "stepwise-sensor", .driver = "sensor", .card = "Stepwise Sensor",
    .bus = "platform:sensor", .capabilities = CAMERA, .formats = stepwise_formats,
    .controls = front_controls},
  {.name = "continuous-sensor", .driver = "sensor", .card = "Continuous Sensor",
    .bus = "platform:sensor1", .capabilities = CAMERA, .formats = continuous_formats,
    .controls = back_controls},
  {.name = "mplane-sensor", .driver = "isp", .card = "Multi-planar Sensor",
    .bus = "platform:isp", .capabilities = V4L2_CAP_VIDEO_CAPTURE_MPLANE | V4L2_CAP_STREAMING,
    .formats = mplane_formats},
  {.name = "two-planes", .driver = "isp", .card = "Two Planes Sensor", .bus = "platform:isp1",
    .capabilities = V4L2_CAP_VIDEO_CAPTURE_MPLANE | V4L2_CAP_STREAMING,
    .formats = two_plane_formats},
  {.name = "hdmi-card", .driver = "hdmi", .card = "HDMI Capture", .bus = "PCI:0000:04:00.0",
    .capabilities = CAMERA, .formats = hdmi_formats, .inputs = hdmi_inputs,
    .timings = hdmi_timings},
  {.name = "tv-card", .driver = "tv", .card = "TV Card", .bus = "PCI:0000:05:00.0",
    .capabilities = CAMERA | V4L2_CAP_TUNER, .formats = tv_formats, .inputs = tv_inputs},
  {.name = "broken", .driver = "broken", .card = "A name of thirty-two characters..",
    .bus = "usb-broken", .capabilities = CAMERA, .formats = broken_formats},
  {.name = "endless", .driver = "broken", .card = "Endless Lists", .bus = "usb-endless",
    .capabilities = CAMERA, .formats = endless_formats, .is_endless = true,
    .by_name_only = true},
  {.name = "raw-color", .driver = "capturecard", .card = "Raw Color", .bus = "PCI:0000:06:00.0",
    .capabilities = CAMERA, .formats = raw_color_formats, .by_name_only = true},
  {.name = "sensor-module", .driver = "isp", .card = "Sensor Module", .bus = "platform:isp2",
    .capabilities = CAMERA, .formats = module_formats, .controls = module_controls,
    .by_name_only = true, .shows_brightness = true},
  {.name = "any-mode", .driver = "capturecard", .card = "Any Mode", .bus = "PCI:0000:07:00.0",
    .capabilities = CAMERA, .formats = any_formats, .by_name_only = true},
  {.name = "output", .driver = "display", .card = "Output Only", .bus = "platform:display",
    .capabilities = V4L2_CAP_VIDEO_OUTPUT | V4L2_CAP_STREAMING},
  {.name = "m2m", .driver = "codec", .card = "Memory to Memory", .bus = "platform:codec",
    .capabilities = V4L2_CAP_VIDEO_M2M | V4L2_CAP_STREAMING},
  {.name = "touch", .driver = "touch", .card = "Touch Pad", .bus = "i2c-touch",
    .capabilities = CAMERA | V4L2_CAP_TOUCH, .formats = mono_formats},
  {.name = NULL},
};

const description *find_description(const char *name, size_t length) {
  for (const description *kind = fake_descriptions; kind->name != NULL; kind++)
    if (strlen(kind->name) == length && memcmp(kind->name, name, length) == 0) return kind;
  return NULL;
}
