// SPDX-License-Identifier: Apache-2.0
//
// Dense optical flow between two frames, and the frames between them.
//
// This target exists for one reason: its inner loops need SIMD instructions that are selected at
// run time, which Swift cannot express. Each kernel exists twice, for AVX2 and for any processor,
// and both give the same bytes.
//
// A phase has steps, and a step has stripes. Stripes of one step may run at the same time on any
// number of threads; steps follow each other. The cut into stripes depends on the frame size alone.

#ifndef COPTICALFLOW_H
#define COPTICALFLOW_H

#include <stddef.h>
#include <stdint.h>

typedef struct OFContext OFContext;

typedef struct {
  int32_t width, height;
  /// Bits per sample, 8 to 16; samples above 8 bits have two bytes in native order.
  int32_t depth;
  /// The number of planes, 1 or 3, and the chroma subsampling as powers of two.
  int32_t planeCount, shiftX, shiftY;
  /// Nonzero for less search.
  int32_t isFast;
  /// Nonzero for kernels without SIMD instructions.
  int32_t isPlain;
} OFSettings;

/// The smallest side of a frame.
enum { OFSmallestSide = 16 };

typedef struct {
  uint8_t *_Nullable data;
  int64_t bytesPerRow;
} OFPlane;

/// The measured differences of the two frames.
typedef struct {
  /// The largest mean difference of a block of 16x16 pixels, in code values of 8 bits.
  float blockDifference;
  /// The share of pixels whose forward and backward motion disagree, 0 to 1.
  float inconsistentShare;
  /// The mean difference of the frames after motion compensation, in code values of 8 bits.
  float residual;
  /// The mean difference of the frames themselves, in code values of 8 bits.
  float difference;
} OFStatistics;

typedef enum {
  /// Copies the new frame and makes its smaller versions.
  OFPhaseLoad,
  /// Compares the two frames: blockDifference and difference.
  OFPhaseCompare,
  /// Finds the motion in both directions: inconsistentShare and residual.
  OFPhaseFlow,
  /// Makes the frame at the instant.
  OFPhaseRender,
} OFPhase;

/// Returns a context; null if memory is short or the size is not supported.
OFContext *_Nullable of_create(OFSettings settings);
void of_destroy(OFContext *_Nonnull context);
/// The memory of the context in bytes.
size_t of_byte_count(const OFContext *_Nonnull context);

/// Sets the frame to load. Without `replacesNewer` the newer frame becomes the older one; with it
/// the newer frame is dropped and the older one stays.
void of_set_frame(
  OFContext *_Nonnull context, const OFPlane *_Nonnull planes, int32_t replacesNewer);
/// Forgets which pixels were static.
void of_reset_history(OFContext *_Nonnull context);
/// Takes the last comparison into the history of static pixels.
void of_commit_history(OFContext *_Nonnull context);
/// Sets the instant, from 0 (the older frame) to 1 (the newer one), and the frame to write.
void of_set_output(OFContext *_Nonnull context, float instant, const OFPlane *_Nonnull planes);
/// Sets whether the frames are mixed without motion.
void of_set_blend(OFContext *_Nonnull context, int32_t isBlend);

int32_t of_step_count(const OFContext *_Nonnull context, OFPhase phase);
int32_t of_stripe_count(const OFContext *_Nonnull context, OFPhase phase, int32_t step);
void of_run(OFContext *_Nonnull context, OFPhase phase, int32_t step, int32_t stripe);

OFStatistics of_statistics(const OFContext *_Nonnull context);
/// Returns the motion from the older frame (direction 0) or from the newer one (direction 1) at a
/// pixel, in pixels.
void of_motion(
  const OFContext *_Nonnull context, int32_t direction, int32_t x, int32_t y,
  float *_Nonnull motionX, float *_Nonnull motionY);

#endif
