#include "emulator/streams/copies.h"

#include <cstring>
#include <string>

#include "emulator/device_values.h"
#include "emulator/machine.h"
#include "emulator/streams/streams.h"

namespace hpo::emulator {
namespace {

void Copy(void* to, const void* from, size_t bytes) {
  if (bytes == 0) return;
  Machine& machine = Machine::Get();
  const bool from_device = machine.IsDeviceAddress(from);
  if (machine.IsDeviceAddress(to)) {
    if (from_device) return Values().Copy(to, from, bytes);
    return Values().Remember(to, {static_cast<const char*>(from), bytes});
  }
  if (!from_device) {
    std::memmove(to, from, bytes);
  } else if (const auto known = Values().Find(from, bytes); known.has_value()) {
    std::memcpy(to, known->data(), bytes);
  } else {
    std::memset(to, 0, bytes);
  }
}

void Set(void* to, int value, size_t bytes) {
  if (!Machine::Get().IsDeviceAddress(to)) {
    std::memset(to, value, bytes);
  } else if (bytes > DeviceValues::kLongest) {
    Values().Forget(to, bytes);
  } else {
    Values().Remember(to, std::string(bytes, static_cast<char>(value)));
  }
}

}  // namespace

int EnqueueCopy(void* to, const void* from, size_t bytes, void* stream) {
  return Streams::Get().Enqueue(stream, NodeKind::kCopy, [=] { Copy(to, from, bytes); });
}

int EnqueueCopy2D(void* to, const void* from, const Rectangle& rectangle, void* stream) {
  return Streams::Get().Enqueue(stream, NodeKind::kCopy, [=] {
    for (size_t row = 0; row < rectangle.height; ++row) {
      Copy(static_cast<char*>(to) + row * rectangle.to_pitch,
           static_cast<const char*>(from) + row * rectangle.from_pitch, rectangle.width);
    }
  });
}

int EnqueueSet(void* to, int value, size_t bytes, void* stream) {
  return Streams::Get().Enqueue(stream, NodeKind::kSet, [=] { Set(to, value, bytes); });
}

}  // namespace hpo::emulator
