// SPDX-License-Identifier: Apache-2.0

// The interface of libovercrank-faces.so.1, which is loaded at run time: the frontal face detector of
// dlib, and others that were trained with dlib, as C. Samples/FaceDetector implements it.
#ifndef OVERCRANK_FACE_DETECTOR_H
#define OVERCRANK_FACE_DETECTOR_H

#include <stddef.h>
#include <stdint.h>

#ifndef __clang__
#define _Nonnull
#endif

#ifdef __cplusplus
extern "C" {
#endif

/// A detector. One thread at a time may use it.
typedef struct overcrank_face_detector overcrank_face_detector;

/// A face, with edges in pixels of the image that was searched. They may be outside of it.
typedef struct overcrank_face {
  double left, top, right, bottom;
  /// How far the detector's answer is above its threshold.
  double confidence;
} overcrank_face;

/// The numbers of an object detector of dlib (`scan_fhog_pyramid<pyramid_down<6>>`).
typedef struct overcrank_face_model {
  /// The window that is moved over the image, in pixels, its cells and the cells around it.
  size_t window_width, window_height, cell_size, padding;
  /// The smallest of the scaled images that are searched, and their greatest number.
  size_t layer_width, layer_height, level_count;
  /// The parts, from 0 to 1, from which on two detections are the same: of both together, and of one.
  double overlap, covered;
  /// The views: `view_count` times `weight_count` numbers. The last weight of a view is its threshold.
  const double *weights;
  size_t view_count, weight_count;
} overcrank_face_model;

/// A part of an image: a rectangle that is turned clockwise by `angle` (radians) around its center, which
/// is in pixels of the image. It has `width` x `height` pixels after it was scaled by `scale`.
typedef struct overcrank_face_part {
  double x, y, angle, scale;
  size_t width, height;
} overcrank_face_part;

/// The functions of the library.
typedef struct overcrank_face_functions {
  /// Creates dlib's own detector of faces, or returns NULL if no memory is left.
  overcrank_face_detector *(*_Nonnull create)(void);

  /// Whether a model is a detector: each number is in a range that a search can use, the number of
  /// weights is that of the window, and all views together have at most 262 144.
  int (*_Nonnull is_valid)(const overcrank_face_model *model);

  /// Creates a detector with a model, which may be deleted then. NULL if no memory is left, and for a
  /// model that is not valid.
  overcrank_face_detector *(*_Nonnull create_with)(const overcrank_face_model *model);

  /// The side in pixels of the smallest face that a detector finds: 80 for dlib's own.
  size_t (*_Nonnull side)(const overcrank_face_detector *detector);

  /// Deletes a detector. NULL is ignored.
  void (*_Nonnull destroy)(overcrank_face_detector *detector);

  /// Finds the faces of a gray image, in descending order of confidence.
  ///
  /// `pixels` are `height` rows, `row` bytes from one to the next, of `width` pixels, `step` bytes from
  /// one to the next. The image is searched after it was scaled by `scale`; faces smaller than the
  /// detector's side are not found then. Detections below `threshold`, which is usually 0, are left out.
  /// Writes at most `capacity` faces, and returns their number; -1 for invalid arguments, and if no
  /// memory is left.
  int (*_Nonnull find)(
      overcrank_face_detector *detector, const uint8_t *pixels, size_t width, size_t height,
      size_t row, size_t step, double scale, double threshold, overcrank_face *faces,
      size_t capacity);

  /// Finds faces that are upright in a turned part of an image.
  ///
  /// As `find`, but outside the image, the part has the pixels of its edges. With `front_only`, only the
  /// view of a face from the front is searched for, which the detector answers the better the more
  /// upright the face is. The edges of the faces are those of upright squares around their centers, in
  /// pixels of the image.
  int (*_Nonnull find_in)(
      overcrank_face_detector *detector, const uint8_t *pixels, size_t width, size_t height,
      size_t row, size_t step, const overcrank_face_part *part, int front_only, double threshold,
      overcrank_face *faces, size_t capacity);

  /// Writes how well each view of dlib's own detector fits the face in the middle of a part: 0 is the
  /// threshold of the view. The views are: from the front, looking to the left of the image, looking to
  /// the right, and from the front, rotated to either side.
  ///
  /// The part is as for `find_in`. Returns the number of written views; 0 for a detector with another
  /// model, whose views have other meanings; -1 for invalid arguments, and if no memory is left.
  int (*_Nonnull views)(
      overcrank_face_detector *detector, const uint8_t *pixels, size_t width, size_t height,
      size_t row, size_t step, const overcrank_face_part *part, double *confidences,
      size_t capacity);

  /// Finds a face of known size in a part of an image.
  ///
  /// As `find_in`, but only faces of 1, 1.2 and 1.44 times the detector's side are found. If the view
  /// from the front is clear, faces that look to a side are not searched for.
  int (*_Nonnull find_known)(
      overcrank_face_detector *detector, const uint8_t *pixels, size_t width, size_t height,
      size_t row, size_t step, const overcrank_face_part *part, int front_only, double threshold,
      overcrank_face *faces, size_t capacity);
} overcrank_face_functions;

/// The functions. The number at the end of the symbol's name is the version of this header.
const overcrank_face_functions *overcrank_face_functions_3(void);

/// The symbols of programs with earlier versions of this header, whose functions are the first ones of
/// these.
const overcrank_face_functions *overcrank_face_functions_1(void);
const overcrank_face_functions *overcrank_face_functions_2(void);

#ifdef __cplusplus
}
#endif

#endif
