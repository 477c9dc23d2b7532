// SPDX-License-Identifier: Apache-2.0

#include "face-detector.h"

#include <algorithm>
#include <cmath>
#include <dlib/array2d.h>
#include <dlib/image_processing/frontal_face_detector.h>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

// dlib's own detector, as write-model.cpp wrote it. dlib has it in a compressed form, and Debian's code
// that reads that cannot be part of a shared library.
asm(".section .rodata\n"
    ".hidden overcrank_frontal, overcrank_frontal_end\n"
    ".globl overcrank_frontal, overcrank_frontal_end\n"
    "overcrank_frontal: .incbin \"frontal.svm\"\n"
    "overcrank_frontal_end: .byte 0\n"
    ".text\n");
extern "C" {
__attribute__((visibility("hidden"))) extern const char overcrank_frontal[];
__attribute__((visibility("hidden"))) extern const char overcrank_frontal_end[];
}

using Scanner = dlib::frontal_face_detector::image_scanner_type;
using Weights = dlib::frontal_face_detector::feature_vector_type;

struct overcrank_face_detector {
  /// One view of a face, such as that from the front.
  struct View {
    Scanner::fhog_filterbank filters;
    double threshold;
  };

  /// The number of detections of a view that are compared with each other.
  static constexpr size_t maximumFound = 4096;
  /// The confidence of a front view from which on a known face has no better view.
  static constexpr double clear = 0.5;

  Scanner scanner;
  dlib::test_box_overlap overlaps;
  std::vector<View> views;
  /// Whether the views are those of dlib's own detector.
  bool isOwn = false;
  dlib::array2d<unsigned char> image;

  void add(const Weights &weights) {
    views.push_back({scanner.build_fhog_filterbank(weights), weights(weights.size() - 1)});
  }

  /// As dlib's object_detector, but with an end: a detector of someone's own may find a face everywhere.
  ///
  /// With `stopsAtFront`, the other views are left out if the front view of the face in the middle is
  /// clear.
  std::vector<dlib::rect_detection> detect(
      bool frontOnly, double threshold, size_t capacity, bool stopsAtFront = false) {
    scanner.load(image);
    std::vector<dlib::rect_detection> all, kept;
    std::vector<std::pair<double, dlib::rectangle>> found;
    size_t count = frontOnly ? 1 : views.size();
    for (size_t i = 0; i < count; i++) {
      scanner.detect(views[i].filters, found, views[i].threshold + threshold);
      // dlib gives the most confident first, and images have far fewer faces than that.
      if (found.size() > maximumFound) found.resize(maximumFound);
      for (const auto &one : found) {
        dlib::rect_detection detection;
        detection.detection_confidence = one.first - views[i].threshold;
        detection.weight_index = i;
        detection.rect = one.second;
        all.push_back(detection);
      }
      if (i == 0 && stopsAtFront && hasClearMiddle(all)) break;
    }
    if (count > 1) std::sort(all.rbegin(), all.rend());
    for (const auto &one : all) {
      if (kept.size() == capacity) break;
      bool isNew = std::none_of(kept.begin(), kept.end(), [&](const dlib::rect_detection &other) {
        return overlaps(other.rect, one.rect);
      });
      if (isNew) kept.push_back(one);
    }
    return kept;
  }

  /// Whether the face in the middle of the image is clear. Another model may have no front view.
  bool hasClearMiddle(const std::vector<dlib::rect_detection> &found) const {
    const dlib::point middle(image.nc() / 2, image.nr() / 2);
    return isOwn && std::any_of(found.begin(), found.end(), [&](const dlib::rect_detection &one) {
      return one.detection_confidence >= clear && one.rect.contains(middle);
    });
  }

  size_t side() const {
    return std::max(
        scanner.get_detection_window_width(), scanner.get_detection_window_height());
  }
};

namespace {

/// Configures a scanner as a model says; false if the model's numbers are no detector.
bool configure(Scanner &scanner, const overcrank_face_model &model) {
  auto within = [](size_t value, size_t least, size_t most) {
    return value >= least && value <= most;
  };
  const size_t cell = model.cell_size;
  if (!within(cell, 4, 32) || !within(model.padding, 0, 4)) return false;
  for (size_t side : {model.window_width, model.window_height}) {
    if (!within(side, 2 * cell, 256)) return false;
  }
  for (size_t side : {model.layer_width, model.layer_height}) {
    if (!within(side, 8, 4096)) return false;
  }
  if (model.level_count < 1 || !within(model.view_count, 1, 16) || !model.weights) return false;
  for (double part : {model.overlap, model.covered}) {
    if (!(part >= 0 && part <= 1)) return false;
  }
  scanner.set_cell_size(cell);
  scanner.set_padding(model.padding);
  scanner.set_detection_window_size(model.window_width, model.window_height);
  scanner.set_min_pyramid_layer_size(model.layer_width, model.layer_height);
  scanner.set_max_pyramid_levels(std::min<size_t>(model.level_count, 1000));
  // The last weight of a view is its threshold.
  if (model.weight_count != static_cast<size_t>(scanner.get_num_dimensions()) + 1) return false;
  const size_t count = model.view_count * model.weight_count;
  // The time of a search grows with it; dlib's own detector has 15 505.
  if (count > 1 << 18) return false;
  return std::all_of(model.weights, model.weights + count, [](double weight) {
    return std::fabs(weight) <= 1e6;
  });
}

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

/// dlib's own detector.
dlib::frontal_face_detector frontal() {
  std::istringstream model(std::string(overcrank_frontal, overcrank_frontal_end));
  dlib::frontal_face_detector trained;
  dlib::deserialize(trained, model);
  return trained;
}

/// Whether a model has the weights of dlib's own detector, as a file that was written from it does.
bool isFrontal(const overcrank_face_model &model) {
  const auto trained = frontal();
  if (trained.num_detectors() != model.view_count) return false;
  for (size_t i = 0; i < model.view_count; i++) {
    const auto &weights = trained.get_w(static_cast<unsigned long>(i));
    if (static_cast<size_t>(weights.size()) != model.weight_count) return false;
    if (!std::equal(weights.begin(), weights.end(), model.weights + i * model.weight_count)) {
      return false;
    }
  }
  return true;
}

overcrank_face_detector *create(void) {
  try {
    const auto trained = frontal();
    auto detector = std::make_unique<overcrank_face_detector>();
    detector->scanner.copy_configuration(trained.get_scanner());
    detector->overlaps = trained.get_overlap_tester();
    for (unsigned long i = 0; i < trained.num_detectors(); i++) detector->add(trained.get_w(i));
    detector->isOwn = true;
    return detector.release();
  } catch (...) {
    return nullptr;
  }
}

int is_valid(const overcrank_face_model *model) {
  try {
    Scanner scanner;
    return model && configure(scanner, *model);
  } catch (...) {
    return 0;
  }
}

overcrank_face_detector *create_with(
    const overcrank_face_model *model) {
  try {
    auto detector = std::make_unique<overcrank_face_detector>();
    if (!model || !configure(detector->scanner, *model)) return nullptr;
    detector->overlaps = dlib::test_box_overlap(model->overlap, model->covered);
    const size_t count = model->weight_count;
    for (size_t i = 0; i < model->view_count; i++) {
      Weights weights(static_cast<long>(count));
      std::copy_n(model->weights + i * count, count, weights.begin());
      detector->add(weights);
    }
    detector->isOwn = isFrontal(*model);
    return detector.release();
  } catch (...) {
    return nullptr;
  }
}

size_t side(const overcrank_face_detector *detector) {
  return detector ? detector->side() : 0;
}

void destroy(overcrank_face_detector *detector) {
  delete detector;
}

int find(
    overcrank_face_detector *detector, const uint8_t *pixels, size_t width, size_t height,
    size_t row, size_t step, double scale, double threshold, overcrank_face *faces,
    size_t capacity) {
  const double largest = 1 << 14;
  if (!detector || !pixels || !(scale > 0) || width == 0 || height == 0) return -1;
  double scaledWidth = std::round(static_cast<double>(width) * scale);
  double scaledHeight = std::round(static_cast<double>(height) * scale);
  if (scaledWidth > largest || scaledHeight > largest) return -1;
  // Smaller images cannot contain a face.
  const double least = static_cast<double>(detector->side()) / 2;
  if (scaledWidth < least || scaledHeight < least) return 0;
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
    const auto found = detector->detect(false, threshold, capacity);
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

/// Limits a scanner to the three sizes that a face of known size may have.
class FewSizes {
public:
  explicit FewSizes(Scanner &scanner)
      : scanner(scanner), levels(scanner.get_max_pyramid_levels()) {
    scanner.set_max_pyramid_levels(std::min(levels, 3ul));
  }
  ~FewSizes() { scanner.set_max_pyramid_levels(levels); }
  FewSizes(const FewSizes &) = delete;
  FewSizes &operator=(const FewSizes &) = delete;

private:
  Scanner &scanner;
  const unsigned long levels;
};

/// Whether a part can be drawn: 1, 0 if it is too small to contain a face, or -1 if it is invalid.
int check(
    const overcrank_face_detector *detector, const uint8_t *pixels, size_t width, size_t height,
    const overcrank_face_part *part) {
  const size_t largest = 1 << 14;
  if (!detector || !pixels || !part || !(part->scale > 0) || width == 0 || height == 0) return -1;
  if (!std::isfinite(part->x + part->y + part->angle)) return -1;
  if (part->width > largest || part->height > largest) return -1;
  if (part->width < detector->side() / 2 || part->height < detector->side() / 2) return 0;
  return 1;
}

/// Draws a part of an image into the image of the detector.
void draw(
    overcrank_face_detector *detector, const uint8_t *pixels, size_t width, size_t height,
    size_t row, size_t step, const overcrank_face_part *part) {
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
}

/// Writes the faces of a part as upright squares in the image.
int write(
    const std::vector<dlib::rect_detection> &found, const overcrank_face_part *part,
    overcrank_face *faces, size_t capacity) {
  const double across = std::cos(part->angle) / part->scale;
  const double down = std::sin(part->angle) / part->scale;
  const double middleX = static_cast<double>(part->width) / 2;
  const double middleY = static_cast<double>(part->height) / 2;
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
}

int find_part(
    overcrank_face_detector *detector, const uint8_t *pixels, size_t width, size_t height,
    size_t row, size_t step, const overcrank_face_part *part, int front_only, double threshold,
    overcrank_face *faces, size_t capacity, bool isKnown) {
  const int usable = check(detector, pixels, width, height, part);
  if (usable != 1) return usable;
  try {
    std::optional<FewSizes> few;
    if (isKnown) few.emplace(detector->scanner);
    draw(detector, pixels, width, height, row, step, part);
    return write(detector->detect(front_only, threshold, capacity, isKnown), part, faces, capacity);
  } catch (...) {
    return -1;
  }
}

int find_in(
    overcrank_face_detector *detector, const uint8_t *pixels, size_t width, size_t height,
    size_t row, size_t step, const overcrank_face_part *part, int front_only, double threshold,
    overcrank_face *faces, size_t capacity) {
  return find_part(
      detector, pixels, width, height, row, step, part, front_only, threshold, faces, capacity,
      false);
}

int find_known(
    overcrank_face_detector *detector, const uint8_t *pixels, size_t width, size_t height,
    size_t row, size_t step, const overcrank_face_part *part, int front_only, double threshold,
    overcrank_face *faces, size_t capacity) {
  return find_part(
      detector, pixels, width, height, row, step, part, front_only, threshold, faces, capacity, true);
}

int views(
    overcrank_face_detector *detector, const uint8_t *pixels, size_t width, size_t height,
    size_t row, size_t step, const overcrank_face_part *part, double *confidences,
    size_t capacity) {
  const int usable = check(detector, pixels, width, height, part);
  if (usable != 1 || !detector->isOwn) return std::min(usable, 0);
  try {
    draw(detector, pixels, width, height, row, step, part);
    detector->scanner.load(detector->image);
    std::vector<std::pair<double, dlib::rectangle>> found;
    // No view of a face is as far below its threshold.
    const double least = -4;
    const double reach = static_cast<double>(detector->side()) * 3 / 8;
    const size_t count = std::min(detector->views.size(), capacity);
    for (size_t i = 0; i < count; i++) {
      const auto &view = detector->views[i];
      detector->scanner.detect(view.filters, found, view.threshold + least);
      confidences[i] = least;
      for (const auto &one : found) {
        const auto &rect = one.second;
        const double x = static_cast<double>(rect.left() + rect.right() + 1) / 2 -
                         static_cast<double>(part->width) / 2;
        const double y = static_cast<double>(rect.top() + rect.bottom() + 1) / 2 -
                         static_cast<double>(part->height) / 2;
        if (std::hypot(x, y) > reach) continue;
        confidences[i] = std::max(confidences[i], one.first - view.threshold);
      }
    }
    return static_cast<int>(count);
  } catch (...) {
    return -1;
  }
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const overcrank_face_functions *
overcrank_face_functions_3() {
  static const overcrank_face_functions functions = {
      create, is_valid, create_with, side, destroy, find, find_in, views, find_known};
  return &functions;
}

extern "C" __attribute__((visibility("default"))) const overcrank_face_functions *
overcrank_face_functions_2() {
  return overcrank_face_functions_3();
}

extern "C" __attribute__((visibility("default"))) const overcrank_face_functions *
overcrank_face_functions_1() {
  return overcrank_face_functions_3();
}
