// Tested by tests/cli/memory/memory_commands_test.cc.
#include "cli/memory/described_step.h"

#include <iostream>
#include <iterator>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/render/json.h"
#include "cli/render/table.h"
#include "common/base/status.h"
#include "common/files/read_file.h"
#include "memory/offline/described_step_trace.h"
#include "memory/offline/step_advice.h"
#include "nlohmann/json.hpp"

namespace hpo::cli {
namespace {

using Json = nlohmann::ordered_json;

struct DescribedAnswer {
  memory::StepDescription step;
  memory::StepEstimate estimate;
  std::optional<int64_t> largest_batch;
  std::vector<memory::StepChange> changes;

  bool HasTotal() const { return step.device.total.count != memory::AllocatorOptions::kUnlimited; }
};

absl::StatusOr<std::string> ReadDescription(const std::string& path) {
  if (path != "-") return ReadFile(path);
  return std::string(std::istreambuf_iterator<char>(std::cin), {});
}

Json AnswerJson(const DescribedAnswer& answer) {
  const memory::StepEstimate& estimate = answer.estimate;
  Json by_class;
  for (size_t i = 0; i < memory::kNumMemoryClasses; ++i) {
    by_class[Name(static_cast<memory::MemoryClass>(i))] = estimate.by_class[i].count;
  }
  by_class["base"] = answer.step.device.base.count;
  Json json = {
      {"parameters", estimate.num_parameters},
      {"bytes_by_class", by_class},
      {"tensor_peak_bytes", estimate.tensors.count},
      {"live_peak_bytes", estimate.live_peak.count},
      {"reserved_peak_bytes", estimate.reserved_peak.count},
      {"needed_limit_bytes", estimate.needed_limit.count},
      {"device_peak_bytes", estimate.device_peak.count},
      {"device_needed_bytes", estimate.device_needed.count},
      {"peak_phase", estimate.peak_phase},
      {"fragile", estimate.fragile},
      {"reserved_peak_range_bytes", {estimate.reserved_low.count, estimate.reserved_high.count}},
      {"total_bytes", nullptr},
      {"fits", estimate.fits},
      {"largest_batch", nullptr},
      {"changes", Json::array()}};
  if (!answer.HasTotal()) return json;
  json["total_bytes"] = answer.step.device.total.count;
  if (answer.largest_batch.has_value()) json["largest_batch"] = *answer.largest_batch;
  for (const memory::StepChange& change : answer.changes) {
    json["changes"].push_back({{"change", change.what},
                               {"batch", change.step.batch},
                               {"accumulation", change.step.accumulation},
                               {"device_needed_bytes", change.device_needed.count}});
  }
  return json;
}

std::string VerdictText(const DescribedAnswer& answer) {
  const memory::StepEstimate& estimate = answer.estimate;
  std::string text =
      absl::StrCat(estimate.num_parameters, " parameters, peak in the ", estimate.peak_phase, "\n");
  if (estimate.fragile) {
    absl::StrAppend(&text, "fragile: segments take ", FormatBytes(estimate.reserved_low), " to ",
                    FormatBytes(estimate.reserved_high),
                    " by how the steps begin; expandable segments avoid that\n");
  }
  if (!answer.HasTotal()) return text;
  const std::string total = FormatBytes(answer.step.device.total);
  if (estimate.fits) return absl::StrCat(text, "fits ", total, "\n");
  absl::StrAppend(&text, "does not fit ", total, ": ",
                  FormatBytes(estimate.device_needed - answer.step.device.total), " too much\n");
  for (const memory::StepChange& change : answer.changes) {
    absl::StrAppend(&text, "  with ", change.what, ": ", FormatBytes(change.device_needed), "\n");
  }
  const bool enough =
      !answer.changes.empty() && answer.changes.back().device_needed <= answer.step.device.total;
  if (!enough) absl::StrAppend(&text, "  not enough: shorten the texts or take a smaller model\n");
  return text;
}

std::string AnswerText(const DescribedAnswer& answer, int width) {
  Table table({{"CLASS"}, {"BYTES", Align::kRight}});
  const memory::StepEstimate& estimate = answer.estimate;
  for (size_t i = 0; i < memory::kNumMemoryClasses; ++i) {
    table.AddRow({Name(static_cast<memory::MemoryClass>(i)), FormatBytes(estimate.by_class[i])});
  }
  table.AddRow({"live peak", FormatBytes(estimate.live_peak)});
  table.AddRow({"reserved peak", FormatBytes(estimate.reserved_peak)});
  table.AddRow({"needed limit", FormatBytes(estimate.needed_limit)});
  table.AddRow({"base", FormatBytes(answer.step.device.base)});
  table.AddRow({"device peak", FormatBytes(estimate.device_peak)});
  table.AddRow({"device needed", FormatBytes(estimate.device_needed)});
  return absl::StrCat(table.Render(width), "\n", VerdictText(answer));
}

}  // namespace

absl::StatusOr<bool> EstimateDescribedStep(Session& session, const std::string& path) {
  HPO_ASSIGN_OR_RETURN(const std::string text, ReadDescription(path));
  DescribedAnswer answer;
  HPO_ASSIGN_OR_RETURN(answer.step,
                       memory::ParseStepDescription(text, path == "-" ? "standard input" : path));
  answer.estimate = memory::EstimateStep(answer.step);
  if (answer.HasTotal()) {
    answer.largest_batch = memory::LargestBatch(answer.step);
    if (!answer.estimate.fits) answer.changes = memory::CheapestChanges(answer.step);
  }
  if (session.json) {
    PrintJson(AnswerJson(answer), session.out);
  } else {
    session.out << AnswerText(answer, session.terminal.columns);
  }
  return answer.estimate.fits;
}

}  // namespace hpo::cli
