// The frontier of a study's space on GPUs: as text and as JSON. Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/dryrun/gpu_document.h"
#include "memory/frontier/frontier.h"
#include "nlohmann/json_fwd.hpp"

namespace hpo::cli {

struct FrontierReport {
  std::string study;
  std::vector<std::string> command;  // with its placeholders
  const memory::Frontier& frontier;
  // Name and memory of each GPU; empty where nothing was measured.
  std::vector<GpuDocument> gpus;
  std::map<size_t, std::string> errors;  // of configurations that could not be dry-run
  // Axes of the chart: across, then down. At most two.
  std::vector<size_t> axes;
  bool was_interrupted = false;
};

// Charts in lines of `width` columns, 0: unlimited.
std::string FrontierText(const FrontierReport& report, int width);

nlohmann::ordered_json FrontierJson(const FrontierReport& report);

// Number of configurations of the space with this verdict on a GPU.
size_t CountOf(const memory::Frontier& frontier, size_t gpu, memory::FrontierVerdict verdict);

}  // namespace hpo::cli
