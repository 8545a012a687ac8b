#include "worker/agent/preflight/dry_run_document.h"

#include <cmath>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/json_reader.h"
#include "common/base/status.h"
#include "common/files/dry_run_package.h"
#include "nlohmann/json.hpp"

namespace hpo::agent {
namespace {

// Of one GPU.
struct GpuDocument {
  std::string verdict;
  Bytes required;
  std::optional<Bytes> least;
  Bytes margin;
  std::vector<std::string> notes;
};

absl::StatusOr<GpuDocument> GpuFromJson(const nlohmann::json& json) {
  GpuDocument gpu;
  JsonReader reader(json, "gpus");
  reader.Required("verdict", gpu.verdict);
  reader.Required("required_bytes", gpu.required);
  reader.Required("margin_bytes", gpu.margin);
  reader.Optional("least_bytes", gpu.least);
  reader.Optional("notes", gpu.notes);
  HPO_RETURN_IF_ERROR(reader.status());
  return gpu;
}

absl::StatusOr<std::vector<GpuDocument>> GpusFromText(const std::string& text) {
  HPO_ASSIGN_OR_RETURN(const nlohmann::json document, ParseJson(text));
  if (!document.is_object() || !document.contains("gpus")) {
    return absl::InvalidArgumentError("expected an object with gpus");
  }
  return ArrayFromJson<GpuDocument>(document["gpus"], GpuFromJson);
}

PreflightNeed NeedOf(const DeviceProfile& gpu) {
  return {.capability = gpu.capability, .threads = ResidentThreads(gpu)};
}

PreflightNeed NeedOf(const DeviceProfile& gpu, const GpuDocument& found) {
  PreflightNeed need = NeedOf(gpu);
  const bool is_known = found.verdict != "unknown" && found.least.has_value();
  need.state = is_known ? PreflightState::kMeasured : PreflightState::kUncertain;
  need.required = found.least.value_or(found.required);
  need.margin = found.margin;
  return need;
}

// Why the document is no answer, of a dry run that has left none.
std::string WhyNone(const DryRunEnd& end) {
  if (end.timed_out) {
    return absl::StrCat("the dry run was not done after ", absl::FormatDuration(end.took));
  }
  const std::string complaint = DryRunComplaint(end.complaint);
  if (complaint.empty()) return absl::StrCat("hpo_dryrun ", end.how);
  // Its own option is given by the worker's.
  return absl::StrReplaceAll(complaint, {{"--timeout", "--preflight-timeout"}});
}

}  // namespace

PreflightReport FailedReport(const std::string& id, const DeviceProfile& own, absl::string_view why,
                             absl::Duration took) {
  return {.id = id, .needs = {NeedOf(own)}, .took = took, .message = std::string(why)};
}

PreflightReport ReportOf(const std::string& id, const std::vector<DeviceProfile>& gpus,
                         const DryRunEnd& end) {
  const DeviceProfile& own = gpus.front();
  if (end.timed_out || absl::StripAsciiWhitespace(end.document).empty()) {
    return FailedReport(id, own, WhyNone(end), end.took);
  }
  const absl::StatusOr<std::vector<GpuDocument>> found = GpusFromText(end.document);
  if (!found.ok() || found->size() != gpus.size()) {
    const std::string what = found.ok() ? absl::StrCat("that of ", found->size(), " GPUs")
                                        : std::string(found.status().message());
    return FailedReport(id, own,
                        absl::StrCat("expected the document of ", gpus.size(), " GPUs, got ", what),
                        end.took);
  }
  PreflightReport report{.id = id, .took = end.took};
  for (size_t i = 0; i < gpus.size(); ++i) {
    const PreflightNeed need = NeedOf(gpus[i], (*found)[i]);
    // Of other GPUs what is certain.
    if (i == 0 || need.state == PreflightState::kMeasured) report.needs.push_back(need);
  }
  if (report.needs.front().state == PreflightState::kUncertain) {
    const std::vector<std::string>& notes = found->front().notes;
    report.message = notes.empty() ? "the least memory with which it runs is not known"
                                   : absl::StrJoin(notes, "; ");
  }
  return report;
}

std::string DescribeReport(const PreflightReport& report, Bytes total) {
  const PreflightNeed& own = report.needs.front();
  const std::string took =
      absl::StrCat("dry-run in ", std::lround(absl::ToDoubleSeconds(report.took)), " s");
  switch (own.state) {
    case PreflightState::kMeasured:
      return absl::StrCat(own.required > total ? "does not fit, requires " : "requires ",
                          FormatBytes(own.required), " of ", FormatBytes(total), ", ", took);
    case PreflightState::kUncertain:
      return absl::StrCat("requires about ", FormatBytes(own.required), " of ", FormatBytes(total),
                          ", ", took, ": ", report.message);
    case PreflightState::kFailed:
      break;
  }
  return absl::StrCat("cannot be dry-run: ", report.message);
}

}  // namespace hpo::agent
