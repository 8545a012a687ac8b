#include "cli/memory/memory_dataset.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "cli/memory/dataset_diagnosis.h"
#include "cli/memory/dataset_profile.h"
#include "cli/render/json.h"
#include "cli/render/table.h"
#include "common/base/status.h"
#include "memory/offline/offline_card.h"
#include "nlohmann/json.hpp"
#include "worker/text/tokenizers/make_tokenizer.h"

namespace hpo::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kDefaultModel[] = "bert-base-uncased";
constexpr int64_t kDefaultLength = 128;
constexpr int64_t kDefaultItems = 5;
constexpr double kDefaultPercentile = 99.0;
constexpr double kPercentiles[] = {50.0, 90.0, 99.0};

// Everything that was found out, ready to be shown.
struct DatasetReport {
  std::string file;
  DatasetProfile profile;
  ModelFacts model;
  memory::OfflineDevice device;
  DiagnosisOptions options;
  DatasetDiagnosis diagnosis;

  bool HasItems() const { return !profile.items_key.empty(); }
  const char* ItemsName() const { return HasItems() ? profile.items_key.c_str() : "inputs"; }
  const char* TokensName() const { return profile.counted_words ? "words" : "tokens"; }
};

// ---- JSON ----

Json HistogramJson(const LengthHistogram& histogram) {
  return {{"mean", MeanOf(histogram)},
          {"p50", PercentileOf(histogram, 50.0)},
          {"p90", PercentileOf(histogram, 90.0)},
          {"p99", PercentileOf(histogram, 99.0)},
          {"max", LargestOf(histogram)}};
}

Json TreatmentJson(const Treatment& treatment) {
  const memory::ConfigVerdict& verdict = treatment.verdict;
  return {{"name", treatment.name},
          {"note", treatment.note},
          {"samples", treatment.samples},
          {"max_items", treatment.max_items},
          {"rows", treatment.rows},
          {"mean_rows", treatment.mean_rows},
          {"length", treatment.length},
          {"needed_limit_bytes", verdict.planned.estimate.needed_limit.count},
          {"required_bytes", verdict.required.count},
          {"usable_bytes", verdict.usable.count},
          {"fits", verdict.planned.fits}};
}

Json ReportJson(const DatasetReport& report) {
  Json largest = Json::array();
  for (const LargestSample& sample : report.profile.largest) {
    largest.push_back({{"line", sample.line}, {"size", sample.size}});
  }
  Json savings = Json::array();
  for (const Treatment& treatment : report.diagnosis.savings) {
    savings.push_back(TreatmentJson(treatment));
  }
  const DiagnosisOptions& options = report.options;
  return {{"file", report.file},
          {"samples", report.profile.samples},
          {"items_key", report.HasItems() ? Json(report.profile.items_key) : Json(nullptr)},
          {"items", HistogramJson(report.profile.items)},
          {report.TokensName(), HistogramJson(report.profile.tokens)},
          {"largest", std::move(largest)},
          {"warnings", report.profile.warnings},
          {"model", report.model.name},
          {"batch_size", options.batch_size},
          {"grad_accum", options.grad_accum},
          {"passes", options.passes},
          {"card_bytes", report.device.cards.front().count},
          {"basis", memory::BasisJson(memory::TrainerBasis(report.device))},
          {"useful_share", report.diagnosis.useful_share},
          {"as_it_is", TreatmentJson(report.diagnosis.as_it_is)},
          {"savings", std::move(savings)}};
}

// ---- Text ----

std::string HistogramText(const LengthHistogram& histogram) {
  std::string text = absl::StrFormat("mean %.2f", MeanOf(histogram));
  for (const double percent : kPercentiles) {
    absl::StrAppendFormat(&text, ", p%.0f %d", percent, PercentileOf(histogram, percent));
  }
  return absl::StrCat(text, ", max ", LargestOf(histogram));
}

std::string ProfileText(const DatasetReport& report) {
  const DatasetProfile& profile = report.profile;
  std::string text = absl::StrCat(report.file, ": ", profile.samples, " samples\n");
  for (const std::string& warning : profile.warnings) {
    absl::StrAppend(&text, "  warning: ", warning, "\n");
  }
  const auto line = [&text](const std::string& name, const std::string& value) {
    absl::StrAppend(&text, "  ", name, std::string(12 - std::min<size_t>(11, name.size()), ' '),
                    value, "\n");
  };
  if (report.HasItems()) line(profile.items_key, HistogramText(profile.items));
  line(report.TokensName(), HistogramText(profile.tokens));
  line("largest", absl::StrJoin(profile.largest, ", ", [](std::string* out, const auto& sample) {
         absl::StrAppend(out, sample.size, " (line ", sample.line, ")");
       }));
  const DiagnosisOptions& options = report.options;
  const Treatment& now = report.diagnosis.as_it_is;
  line("batch",
       absl::StrCat(options.batch_size, " x ", now.max_items, " ", report.ItemsName(), " x ",
                    options.passes, options.passes == 1 ? " pass" : " passes", " = ", now.rows,
                    " rows of ", now.length, " tokens, of ", report.model.name));
  line("padding", absl::StrFormat("%.1f %% of it is data", 100.0 * report.diagnosis.useful_share));
  return text;
}

std::string ReportText(const DatasetReport& report, int width) {
  Table table({{"HOW"},
               {"ROWS", Align::kRight},
               {"NEEDED", Align::kRight},
               {"SAVES", Align::kRight},
               {"FITS"},
               {"NOTE"}});
  const Bytes now = report.diagnosis.as_it_is.verdict.required;
  const auto row = [&](const Treatment& treatment) {
    const Bytes needed = treatment.verdict.required;
    table.AddRow({treatment.name, absl::StrCat(treatment.rows), FormatBytes(needed),
                  needed < now ? FormatBytes(now - needed) : "-",
                  treatment.verdict.planned.fits ? "yes" : "no", treatment.note});
  };
  row(report.diagnosis.as_it_is);
  for (const Treatment& treatment : report.diagnosis.savings) row(treatment);
  const bool fits = report.diagnosis.as_it_is.verdict.planned.fits;
  return absl::StrCat(ProfileText(report), "\n", table.Render(width), "\n",
                      fits ? "fits " : "does not fit ", FormatBytes(report.device.cards.front()),
                      " as it is\n", memory::BasisText(memory::TrainerBasis(report.device)), "\n");
}

// ---- Command ----

absl::StatusOr<std::unique_ptr<text::Tokenizer>> LoadTokenizer(const std::string& folder) {
  if (folder.empty()) return nullptr;
  HPO_ASSIGN_OR_RETURN(const ModelFacts facts, memory::FindModel(folder));
  return text::MakeTokenizer(folder, facts.shape);
}

std::string ModelOf(const MemoryDatasetOptions& options) {
  if (!options.model.empty()) return options.model;
  return options.tokenizer.empty() ? kDefaultModel : options.tokenizer;
}

int64_t LengthOf(const MemoryDatasetOptions& options, const DatasetReport& report) {
  if (options.max_length > 0) return std::min(options.max_length, report.model.shape.max_positions);
  if (report.profile.counted_words) return kDefaultLength;
  return std::min(LongestPadded(report.profile.tokens, LargestOf(report.profile.tokens)),
                  report.model.shape.max_positions);
}

// 0 where no sample is above it, or lengths in tokens are not known.
int64_t KeepUpTo(const MemoryDatasetOptions& options, const DatasetReport& report) {
  const DatasetProfile& profile = report.profile;
  const LengthHistogram& sizes = report.HasItems() ? profile.items : profile.tokens;
  if (!report.HasItems() && profile.counted_words) return 0;
  int64_t keep = options.keep_up_to;
  if (keep == 0) {
    keep = report.HasItems() ? kDefaultItems : PercentileOf(sizes, kDefaultPercentile);
  }
  keep = std::max(keep, sizes.begin()->first);
  return keep < LargestOf(sizes) ? keep : 0;
}

}  // namespace

absl::StatusOr<bool> ShowMemoryDataset(Session& session, const MemoryDatasetOptions& options) {
  DatasetReport report;
  report.file = options.file;
  HPO_ASSIGN_OR_RETURN(report.device, memory::ParseDevice(options.device));
  HPO_ASSIGN_OR_RETURN(report.model, memory::FindTraceableModel(ModelOf(options)));
  HPO_ASSIGN_OR_RETURN(const std::unique_ptr<text::Tokenizer> tokenizer,
                       LoadTokenizer(options.tokenizer));
  HPO_ASSIGN_OR_RETURN(
      report.profile,
      ProfileDataset(options.file, {.items_key = options.items_key, .tokenizer = tokenizer.get()}));
  report.options = {.model = report.model.name,
                    .batch_size = options.batch_size,
                    .grad_accum = options.grad_accum,
                    .passes = options.passes,
                    .max_length = LengthOf(options, report),
                    .keep_up_to = KeepUpTo(options, report)};
  const auto decider = [&report](MemoryPolicy policy) {
    return memory::OfflineDecider({}, policy, {&report.model, 1}, report.device);
  };
  HPO_ASSIGN_OR_RETURN(
      report.diagnosis,
      DiagnoseDataset(report.profile, report.options, decider(MemoryPolicy::kStrict),
                      decider(MemoryPolicy::kPlan), report.device.cards.front()));
  if (session.json) {
    PrintJson(ReportJson(report), session.out);
  } else {
    session.out << ReportText(report, session.terminal.columns);
  }
  return report.diagnosis.as_it_is.verdict.planned.fits;
}

}  // namespace hpo::cli
