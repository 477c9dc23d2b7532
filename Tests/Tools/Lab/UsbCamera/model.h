// SPDX-License-Identifier: Apache-2.0
// A USB Video Class camera in a process: types of its parts.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum {
  // Numbers of the descriptors.
  CONTROL_INTERFACE = 0,
  STREAM_INTERFACE = 1,
  AUDIO_CONTROL_INTERFACE = 2,
  AUDIO_STREAM_INTERFACE = 3,
  VIDEO_ENDPOINT = 1,
  AUDIO_ENDPOINT = 2,
  STATUS_ENDPOINT = 3,
  CAMERA_TERMINAL = 1,
  PROCESSING_UNIT = 2,
  OUTPUT_TERMINAL = 3,
  MICROPHONE_TERMINAL = 1,
  FEATURE_UNIT = 2,
  AUDIO_OUTPUT_TERMINAL = 3,
  // Limits of a high-speed bus and of the driver.
  BULK_PACKET = 512,
  ISO_PACKETS = 128,
  ALTERNATES = 5,
  RATES = 16,
  // Bits of a payload header.
  FRAME_ID = 0x01, END_OF_FRAME = 0x02, HAS_TIME = 0x04, PAYLOAD_ERROR = 0x40, END_OF_HEADER = 0x80,
};

/// The formats by their numbers in the descriptors of USB Video Class; Bayer is only for the PS3 Eye.
typedef enum { FORMAT_MJPEG = 1, FORMAT_YUYV, FORMAT_H264, FORMAT_BAYER } format_kind;

/// The format, size and rate of a stream.
typedef struct {
  format_kind format;
  uint32_t width, height;
  /// The frame duration in units of 100 ns.
  uint32_t interval;
} mode;

/// One microframe in nanoseconds.
static const int64_t MICROFRAME = 125000;

/// A fault of a frame on its way. README.md describes each kind.
typedef enum {
  FAULT_NONE,
  FAULT_SKIP,
  FAULT_PACKETS,
  FAULT_ERROR_BIT,
  FAULT_SILENT,
  FAULT_TRUNCATE,
  FAULT_STUCK,
  FAULT_NO_END,
  FAULT_MUTE,
  FAULT_ALL_PACKETS,
  FAULT_HEADER,
  FAULT_OVERSIZE,
  FAULT_URB,
  FAULT_LATE,
  FAULT_UNPLUG,
  FAULT_REPLUG,
  FAULT_OVERRUN,
  FAULT_KINDS,
} fault_kind;

extern const char *const fault_names[FAULT_KINDS];

typedef struct {
  int64_t frame;
  fault_kind kind;
  int64_t amount;
} fault;

typedef struct {
  bool is_bulk;
  bool is_super_speed;
  bool is_ps3_eye;
  int port;
  /// The size of a JPEG frame in bytes.
  uint32_t bytes;
  /// The rate in frames per second, or 0 for the rate that the driver commits.
  double rate;
  /// The greatest number of bytes in a microframe for which the bus has time.
  uint32_t bandwidth;
  /// The errors with which the camera answers the proposal and the choice of a mode; 0 for none.
  int32_t probe_error, commit_error;
  /// The errors of the frame duration, and of the duration between two samples of the microphone.
  double ppm, audio_ppm;
  /// The serial number, which may be empty.
  const char *serial;
  /// The time for which automatic exposure changes, in milliseconds; 0 if it cannot be read.
  int64_t adjusting_time;
  /// Whether the camera reports each change of the exposure, and the driver need not read it.
  bool sends_events;
  int fault_count;
  fault faults[4096];
  FILE *log;
} options;

/// A request of the host for data of the camera, in the order of arrival.
typedef struct urb {
  struct urb *next;
  uint32_t number;
  uint32_t endpoint;
  uint32_t length;
  uint32_t packets;
  uint32_t lengths[ISO_PACKETS];
  /// The time at which the host made the request, in nanoseconds.
  int64_t submitted;
  /// The time at which the last microframe of an isochronous request ends, in nanoseconds.
  int64_t end;
} urb;

/// The frame that is being sent.
typedef struct {
  bool is_active;
  int64_t number;
  fault_kind fault;
  int64_t amount;
  /// The bytes of the image; those beyond its length are sent as zeros.
  const uint8_t *bytes;
  uint32_t image_length;
  uint32_t sent, length;
  uint32_t packet;
  uint8_t id;
} frame;

typedef struct {
  options options;
  int socket;
  urb *first, **last;
  /// The committed video parameters, as in the request VS_COMMIT_CONTROL.
  uint8_t parameters[34];
  uint8_t alternate;
  bool is_streaming;
  /// The mode of the running stream, and of the image.
  mode mode, image_mode;
  /// The time of the next microframe of isochronous requests, or of the next bulk packet.
  int64_t bus_time;
  /// The exact time of the next frame in nanoseconds.
  double frame_time;
  int64_t frame_count;
  /// The number of the last frame before which the camera paused.
  int64_t paused_number;
  /// The number of the first frame of the stream.
  int64_t first_number;
  uint8_t frame_id;
  frame frame;
  /// The image that all frames show, and the place of their number in it.
  uint8_t *image;
  uint32_t image_length, image_number;
  /// The H.264 stream, the offsets of its frames, and its length as the last offset.
  uint8_t *h264;
  uint32_t *h264_offsets, h264_count;
  uint32_t sample_rate;
  /// The time at which the exposure was first read, in nanoseconds, or 0.
  int64_t adjusting_since;
  int32_t reported_exposure;
  /// The time of the first sample, and of the end of the last request, in nanoseconds.
  int64_t audio_start, audio_time;
  int64_t sample_count;
  bool is_unplugged;
  /// The time in milliseconds after which the camera is plugged in again, or 0.
  int64_t replug_time;
} camera;

/// The present time of the guest's monotonic clock in nanoseconds.
int64_t now(void);

// descriptors.c
extern const uint32_t intervals[RATES];
/// The bytes of a microframe in an alternate setting, counted from 0.
uint32_t alternate_bytes(const options *options, int index);
/// Returns the mode with this number of a format and of a frame, or the nearest one.
mode find_mode(const camera *camera, uint8_t format, uint8_t frame, uint32_t interval);
uint32_t device_descriptor(const options *options, uint8_t *to);
uint32_t configuration_descriptor(const camera *camera, uint8_t *to);
uint32_t string_descriptor(const options *options, uint8_t index, uint8_t *to);
uint32_t bos_descriptor(uint8_t *to);

// control.c
/// Answers a control request; returns its number of bytes, or a negative errno.
int32_t answer_control(camera *camera, const uint8_t setup[8], uint8_t *data);
/// Reports the changes of the exposure that are due; returns the time of the next one, or INT64_MAX.
int64_t run_status(camera *camera);

// image.c
/// Reads a raw H.264 stream with access unit delimiters; returns false if it is none.
bool read_h264(camera *camera, const char *path);
/// The greatest size of a frame in a mode in bytes.
uint32_t largest_image(const camera *camera, mode mode);
/// Prepares the frames of the camera's mode.
void begin_images(camera *camera);
/// Points a new frame to its bytes.
void number_image(camera *camera, frame *frame);

// ps3eye.c
uint32_t ps3_eye_configuration(uint8_t *to);
/// Answers a request to the registers of the PS3 Eye, as `answer_control`.
int32_t answer_register(camera *camera, const uint8_t setup[8], uint8_t *data);
/// The number of bytes of a bulk request that carries `left` bytes of a frame, or as much as fits.
uint32_t ps3_eye_count(uint32_t left, uint32_t space);
/// Writes a bulk request of this size, which has one or more payloads.
void fill_ps3_eye(camera *camera, uint8_t flags, uint8_t *to, uint32_t count);

// stream.c
void start_stream(camera *camera);
void stop_stream(camera *camera);
/// Writes the next bytes of the frame.
void put_frame(camera *camera, uint8_t *to, uint32_t count);
/// Completes all requests that are due; returns the time of the next one in nanoseconds, or
/// INT64_MAX if only the host can continue.
int64_t run_stream(camera *camera);

// audio.c
void start_audio(camera *camera);
/// Sets the time at which a new request of the host for samples is due.
void schedule_audio(camera *camera, urb *urb);
/// Completes all requests for samples that are due; returns the time of the next one, or INT64_MAX.
int64_t run_audio(camera *camera);
/// Answers a control request to the microphone, as `answer_control`.
int32_t answer_audio_control(camera *camera, const uint8_t setup[8], uint8_t *data);

// usb.c
/// Connects the camera, which answers no request of an earlier connection.
void attach(camera *camera);
void detach(camera *camera);
/// Reads and answers one message of the host; returns false at the end of the connection.
bool serve_host(camera *camera);
/// The oldest pending request to an endpoint, or NULL.
urb *first_urb(const camera *camera, uint32_t endpoint);
/// Answers a pending request and frees it.
void complete(camera *camera, urb *urb, int32_t status, const uint8_t *data, uint32_t count,
  const uint32_t *actual, const int32_t *statuses);
