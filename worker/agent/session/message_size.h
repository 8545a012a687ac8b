// How large messages to the server become, so that what has gathered while it was away goes in
// parts.
#pragma once

#include <cstddef>
#include <span>

#include "common/study/trial.h"

namespace hpo::agent {

// A message stays well below the 16 MiB that the server takes.
constexpr size_t kLargestPartBytes = size_t{4} << 20;
constexpr size_t kMostMeasurementsInPart = 10'000;

// At least as many bytes as the measurement takes in a message.
inline size_t MessageBytes(const Measurement& measurement) {
  constexpr size_t kNumbers = 64;    // step and epoch, with all tags and lengths
  constexpr size_t kPerMetric = 32;  // the value, with its tags and lengths
  size_t bytes = kNumbers;
  for (const auto& [name, value] : measurement.metrics) bytes += name.size() + kPerMetric;
  return bytes;
}

// How many of the first measurements go into one message; at least one, where there is one.
inline size_t CountForOnePart(std::span<const Measurement> measurements) {
  size_t count = 0;
  size_t bytes = 0;
  for (const Measurement& measurement : measurements) {
    bytes += MessageBytes(measurement);
    if (count > 0 && (bytes > kLargestPartBytes || count == kMostMeasurementsInPart)) break;
    ++count;
  }
  return count;
}

}  // namespace hpo::agent
