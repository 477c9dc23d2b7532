// SPDX-License-Identifier: Apache-2.0

// Writes dlib's own detector of faces to a file, as dlib stores detectors that it trained.
#include <dlib/image_processing/frontal_face_detector.h>

int main(int, char **arguments) {
  dlib::serialize(arguments[1]) << dlib::get_frontal_face_detector();
}
