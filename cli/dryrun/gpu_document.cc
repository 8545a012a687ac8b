#include "cli/dryrun/gpu_document.h"

#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/files/dry_run_package.h"
#include "nlohmann/json.hpp"

namespace hpo::cli {
namespace {

using memory::FrontierVerdict;

constexpr FrontierVerdict kVerdicts[] = {FrontierVerdict::kFits, FrontierVerdict::kTight,
                                         FrontierVerdict::kDoesNotFit, FrontierVerdict::kNotKnown};

// 0 where it is null or absent.
int64_t IntegerOf(const nlohmann::json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_number_integer() ? found->get<int64_t>() : 0;
}

std::string TextOf(const nlohmann::json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>() : "";
}

FrontierVerdict VerdictOf(const std::string& text) {
  for (const FrontierVerdict verdict : kVerdicts) {
    if (text == VerdictText(verdict)) return verdict;
  }
  return FrontierVerdict::kNotKnown;
}

GpuDocument DocumentOf(const nlohmann::json& json) {
  GpuDocument document{.name = TextOf(json, "gpu"),
                       .gpu = {.total = Bytes{IntegerOf(json, "total_bytes")},
                               .margin = Bytes{IntegerOf(json, "margin_bytes")}},
                       .measured = {.verdict = VerdictOf(TextOf(json, "verdict")),
                                    .required = Bytes{IntegerOf(json, "required_bytes")}}};
  memory::FrontierMeasurement& measured = document.measured;
  if (measured.verdict == FrontierVerdict::kDoesNotFit) {
    measured.required = Bytes{IntegerOf(json, "needs_bytes")};
  } else {
    measured.freed_cache = IntegerOf(json, "retries") > 0;
  }
  return document;
}

}  // namespace

absl::StatusOr<std::vector<GpuDocument>> ReadGpuDocuments(absl::string_view output) {
  const size_t line = output.find("\n{");
  const size_t begin = absl::StartsWith(output, "{") || line == absl::string_view::npos ? 0 : line;
  const nlohmann::json json =
      nlohmann::json::parse(output.substr(begin), nullptr, /*allow_exceptions=*/false);
  const auto gpus = json.is_object() ? json.find("gpus") : json.end();
  if (!json.is_object() || gpus == json.end() || !gpus->is_array() || gpus->empty()) {
    const std::string complaint = DryRunComplaint(output);
    return absl::InvalidArgumentError(complaint.empty() ? "it printed nothing" : complaint);
  }
  std::vector<GpuDocument> documents;
  for (const nlohmann::json& gpu : *gpus) documents.push_back(DocumentOf(gpu));
  return documents;
}

std::string VerdictText(FrontierVerdict verdict) {
  switch (verdict) {
    case FrontierVerdict::kFits:
      return "fits";
    case FrontierVerdict::kTight:
      return "tight";
    case FrontierVerdict::kDoesNotFit:
      return "does not fit";
    case FrontierVerdict::kNotKnown:
      break;
  }
  return "not known";
}

}  // namespace hpo::cli
