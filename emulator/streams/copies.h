// Copies and memsets of device and host memory, through the runtime or the driver.
#pragma once

#include <cstddef>

namespace hpo::emulator {

// Each returns a StreamCode. What is copied from a device to the host is true where it is known
// (device_values.h), otherwise zero.
int EnqueueCopy(void* to, const void* from, size_t bytes, void* stream);

struct Rectangle {
  size_t width = 0;  // bytes
  size_t height = 0;
  size_t to_pitch = 0;  // bytes from one row to the next
  size_t from_pitch = 0;
};
int EnqueueCopy2D(void* to, const void* from, const Rectangle& rectangle, void* stream);

int EnqueueSet(void* to, int value, size_t bytes, void* stream);

}  // namespace hpo::emulator
