// Measures how well memory is predicted on a device: hpo-trainer --memory-suite. On a card it is
// what scripts/gpu_memory_suite runs; on a CPU it runs against the counting allocator.
//
// Prints one JSON object a line, "type" first to be read:
//   profile        the device (DeviceProfileToJson, as "device")
//   configuration  "name", predicted and measured live, reserved and device peak bytes, "seconds"
//   ladder         "name", "limit_bytes", "expected" to run, "ran", "alloc_retries" meanwhile
//   storm          out-of-memory errors met and recovered from, and what they left behind
//   trace          "name", "file" and number of "events" of a golden trace (trace_text.h)
//   skipped        "name": there was no time left
//   done           "seconds"
#pragma once

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "nlohmann/json_fwd.hpp"

namespace hpo::trainer {

struct MemorySuiteOptions {
  std::string device = "cpu";
  std::string torch_build;
  std::string trace_folder;  // exists
  absl::Duration budget = absl::Minutes(7);
  int64_t num_ladders = 8;
  int64_t storm_cycles = 100;
};

using PrintLine = std::function<void(const nlohmann::json&)>;

// Runs all of it. What needs little comes first; configurations that would end after the budget are
// skipped. Not while anything else uses the device.
//   see ProfileDevice for a device that cannot be had; Unavailable, NotFound: trace_folder
absl::Status RunMemorySuite(const MemorySuiteOptions& options, const PrintLine& print);

}  // namespace hpo::trainer
