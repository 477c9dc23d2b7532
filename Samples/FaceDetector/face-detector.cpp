// SPDX-License-Identifier: Apache-2.0

#include "face-detector.h"

#include <algorithm>
#include <cmath>
#include <dlib/array2d.h>
#include <dlib/image_processing/frontal_face_detector.h>
#include <vector>

struct overcrank_face_detector {
  dlib::frontal_face_detector detector = dlib::get_frontal_face_detector();
  /// The first of the detector's five views.
  dlib::frontal_face_detector front{
      detector.get_scanner(), detector.get_overlap_tester(),
      std::vector<dlib::frontal_face_detector::feature_vector_type>{detector.get_w(0)}};
  dlib::array2d<unsigned char> image;
};

namespace {

/// The two neighbors of a position between pixels, and the weight of the second one in 1/256.
struct Sample {
  size_t first, second;
  int weight;
};

std::vector<Sample> samples(size_t size, size_t scaled) {
  std::vector<Sample> all(scaled);
  for (size_t i = 0; i < scaled; i++) {
    double last = static_cast<double>(size - 1);
    double position = (static_cast<double>(i) + 0.5) * static_cast<double>(size) /
                          static_cast<double>(scaled) - 0.5;
    position = std::clamp(position, 0.0, last);
    size_t first = static_cast<size_t>(position);
    all[i] = {first, std::min(first + 1, size - 1),
              static_cast<int>(std::lround((position - static_cast<double>(first)) * 256))};
  }
  return all;
}

}  // namespace

extern "C" overcrank_face_detector *overcrank_face_detector_new(void) {
  try {
    return new overcrank_face_detector;
  } catch (...) {
    return nullptr;
  }
}

extern "C" void overcrank_face_detector_delete(overcrank_face_detector *detector) {
  delete detector;
}

extern "C" int overcrank_face_detector_find(
    overcrank_face_detector *detector, const uint8_t *pixels, size_t width, size_t height,
    size_t row, size_t step, double scale, double threshold, overcrank_face *faces,
    size_t capacity) {
  const double largest = 1 << 14;
  if (!detector || !pixels || !(scale > 0) || width == 0 || height == 0) return -1;
  double scaledWidth = std::round(static_cast<double>(width) * scale);
  double scaledHeight = std::round(static_cast<double>(height) * scale);
  if (scaledWidth > largest || scaledHeight > largest) return -1;
  // Smaller images have no room for a face.
  if (scaledWidth < 40 || scaledHeight < 40) return 0;
  try {
    auto columns = samples(width, static_cast<size_t>(scaledWidth));
    auto rows = samples(height, static_cast<size_t>(scaledHeight));
    auto &image = detector->image;
    image.set_size(static_cast<long>(rows.size()), static_cast<long>(columns.size()));
    for (size_t y = 0; y < rows.size(); y++) {
      const uint8_t *upper = pixels + rows[y].first * row;
      const uint8_t *lower = pixels + rows[y].second * row;
      int down = rows[y].weight;
      unsigned char *line = &image[static_cast<long>(y)][0];
      for (size_t x = 0; x < columns.size(); x++) {
        size_t left = columns[x].first * step, right = columns[x].second * step;
        int across = columns[x].weight;
        int above = upper[left] * (256 - across) + upper[right] * across;
        int below = lower[left] * (256 - across) + lower[right] * across;
        line[x] = static_cast<unsigned char>(
            (above * (256 - down) + below * down + (1 << 15)) >> 16);
      }
    }
    std::vector<dlib::rect_detection> found;
    detector->detector(image, found, threshold);
    double byX = static_cast<double>(width) / scaledWidth;
    double byY = static_cast<double>(height) / scaledHeight;
    size_t count = std::min(found.size(), capacity);
    for (size_t i = 0; i < count; i++) {
      // The right and lower edges of dlib's rectangles are those of their last pixels.
      const auto &rect = found[i].rect;
      faces[i] = {static_cast<double>(rect.left()) * byX, static_cast<double>(rect.top()) * byY,
                  static_cast<double>(rect.right() + 1) * byX,
                  static_cast<double>(rect.bottom() + 1) * byY, found[i].detection_confidence};
    }
    return static_cast<int>(count);
  } catch (...) {
    return -1;
  }
}

extern "C" int overcrank_face_detector_find_in(
    overcrank_face_detector *detector, const uint8_t *pixels, size_t width, size_t height,
    size_t row, size_t step, const overcrank_face_part *part, int front_only, double threshold,
    overcrank_face *faces, size_t capacity) {
  const size_t largest = 1 << 14;
  if (!detector || !pixels || !part || !(part->scale > 0) || width == 0 || height == 0) return -1;
  if (!std::isfinite(part->x + part->y + part->angle)) return -1;
  if (part->width > largest || part->height > largest) return -1;
  if (part->width < 40 || part->height < 40) return 0;
  try {
    auto &image = detector->image;
    image.set_size(static_cast<long>(part->height), static_cast<long>(part->width));
    // A step to the right in the part, in pixels of the image.
    const double across = std::cos(part->angle) / part->scale;
    const double down = std::sin(part->angle) / part->scale;
    const double middleX = static_cast<double>(part->width) / 2;
    const double middleY = static_cast<double>(part->height) / 2;
    const double lastX = static_cast<double>(width - 1), lastY = static_cast<double>(height - 1);
    for (size_t v = 0; v < part->height; v++) {
      unsigned char *line = &image[static_cast<long>(v)][0];
      const double dv = static_cast<double>(v) + 0.5 - middleY;
      for (size_t u = 0; u < part->width; u++) {
        const double du = static_cast<double>(u) + 0.5 - middleX;
        const double x = std::clamp(part->x + across * du - down * dv - 0.5, 0.0, lastX);
        const double y = std::clamp(part->y + down * du + across * dv - 0.5, 0.0, lastY);
        const size_t left = static_cast<size_t>(x), top = static_cast<size_t>(y);
        const size_t right = std::min(left + 1, width - 1) * step;
        const uint8_t *upper = pixels + top * row;
        const uint8_t *lower = pixels + std::min(top + 1, height - 1) * row;
        const int byX = static_cast<int>((x - static_cast<double>(left)) * 256);
        const int byY = static_cast<int>((y - static_cast<double>(top)) * 256);
        const int above = upper[left * step] * (256 - byX) + upper[right] * byX;
        const int below = lower[left * step] * (256 - byX) + lower[right] * byX;
        line[u] = static_cast<unsigned char>((above * (256 - byY) + below * byY + (1 << 15)) >> 16);
      }
    }
    std::vector<dlib::rect_detection> found;
    (front_only ? detector->front : detector->detector)(image, found, threshold);
    size_t count = std::min(found.size(), capacity);
    for (size_t i = 0; i < count; i++) {
      const auto &rect = found[i].rect;
      const double du = static_cast<double>(rect.left() + rect.right() + 1) / 2 - middleX;
      const double dv = static_cast<double>(rect.top() + rect.bottom() + 1) / 2 - middleY;
      const double x = part->x + across * du - down * dv;
      const double y = part->y + down * du + across * dv;
      const double half = static_cast<double>(std::max(rect.width(), rect.height())) / 2 / part->scale;
      faces[i] = {x - half, y - half, x + half, y + half, found[i].detection_confidence};
    }
    return static_cast<int>(count);
  } catch (...) {
    return -1;
  }
}
