// Tested by tests/cli/memory/memory_dataset_test.cc.
#include "cli/memory/dataset_diagnosis.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/status.h"

namespace hpo::cli {
namespace {

LengthHistogram UpTo(const LengthHistogram& histogram, int64_t most) {
  return {histogram.begin(), histogram.upper_bound(most)};
}

// Builds the treatments of one data set.
class Diagnosis {
 public:
  Diagnosis(const DatasetProfile& profile, const DiagnosisOptions& options,
            const memory::FitDecider& strict, const memory::FitDecider& plan, Bytes capacity)
      : profile_(profile), options_(options), strict_(strict), plan_(plan), capacity_(capacity) {}

  absl::StatusOr<Treatment> AsItIs() const {
    Treatment treatment = Of(profile_.items, options_.max_length);
    treatment.name = "as it is";
    treatment.note = HasItems() ? absl::StrCat("every sample padded to ", treatment.max_items)
                                : absl::StrCat("every text padded to ", treatment.length);
    return Judged(std::move(treatment));
  }

  absl::StatusOr<Treatment> WithoutOutliers() const {
    const int64_t most = options_.keep_up_to;
    const LengthHistogram& sizes = HasItems() ? profile_.items : profile_.tokens;
    const LengthHistogram kept = UpTo(sizes, most);
    Treatment treatment =
        HasItems() ? Of(kept, options_.max_length)
                   : Of({{1, SamplesUpTo(sizes, most)}},
                        std::min(options_.max_length, LongestPadded(kept, options_.max_length)));
    const int64_t dropped = profile_.samples - treatment.samples;
    treatment.name =
        absl::StrCat("without samples above ", most, HasItems() ? " items" : " tokens");
    treatment.note = absl::StrFormat(
        "%d of %d samples dropped (%.2f %%)", dropped, profile_.samples,
        100.0 * static_cast<double>(dropped) / static_cast<double>(profile_.samples));
    return Judged(std::move(treatment));
  }

  // Padding to each batch's own maximum. The batch that holds the largest sample needs what it did.
  absl::StatusOr<Treatment> PaddedPerBatch() const {
    Treatment treatment = Of(profile_.items, options_.max_length);
    const double mean_items = MeanBatchMaximum(profile_.items, options_.batch_size);
    treatment.mean_rows = mean_items * static_cast<double>(options_.batch_size * options_.passes);
    treatment.name = "padded per batch";
    treatment.note =
        absl::StrFormat("a mean batch has %.1f rows; the one with the largest sample still has %d",
                        treatment.mean_rows, treatment.rows);
    if (!HasItems()) {
      treatment.note = absl::StrFormat(
          "a mean batch is %.0f tokens long; the one with the longest text still %d",
          MeanBatchMaximum(profile_.tokens, options_.batch_size), treatment.length);
    }
    return Judged(std::move(treatment));
  }

  // Rows go through in chunks, each with its own backward: accumulation below the level of samples.
  absl::StatusOr<Treatment> InChunks() const {
    Treatment treatment = Of(profile_.items, options_.max_length);
    HPO_ASSIGN_OR_RETURN(treatment.verdict,
                         memory::JudgeConfig(plan_, ParamsOf(treatment), capacity_));
    const MemoryPlan& chosen = treatment.verdict.planned.plan;
    treatment.rows = chosen.micro_batch;
    treatment.mean_rows = static_cast<double>(treatment.rows);
    treatment.name =
        absl::StrCat("in chunks of ", treatment.rows, treatment.rows == 1 ? " row" : " rows");
    treatment.note =
        absl::StrCat(treatment.verdict.planned.fits ? "the largest that fits; " : "",
                     chosen.NumParts(), " for each effective batch, the same gradients");
    return treatment;
  }

  absl::StatusOr<Treatment> OneByOne() const {
    Treatment treatment = Of(profile_.items, options_.max_length);
    const int64_t all = treatment.rows;
    treatment.rows = 1;
    treatment.mean_rows = 1.0;
    HPO_ASSIGN_OR_RETURN(const auto one, memory::LargestBatchSize(strict_, ParamsOf(treatment, all),
                                                                  kAnyCapacity, /*most=*/1));
    if (!one.has_value()) return absl::InternalError("one row does not fit anywhere");
    treatment.name = "one row at a time";
    treatment.note = "the least there is";
    treatment.verdict = *one;
    treatment.verdict.usable = memory::UsableBytes(capacity_, strict_.device(), strict_.memory());
    treatment.verdict.planned.fits = treatment.verdict.required <= treatment.verdict.usable;
    return treatment;
  }

 private:
  static constexpr Bytes kAnyCapacity = GiB(1 << 20);

  bool HasItems() const { return !profile_.items_key.empty(); }

  // Batches of samples with so many items each.
  Treatment Of(const LengthHistogram& items, int64_t length) const {
    Treatment treatment;
    treatment.samples = SamplesUpTo(items, LargestOf(items));
    treatment.max_items = std::max<int64_t>(1, LargestOf(items));
    treatment.rows = options_.batch_size * treatment.max_items * options_.passes;
    treatment.mean_rows = static_cast<double>(treatment.rows);
    treatment.length = length;
    return treatment;
  }

  // `parts`: how often the rows accumulate on top of train.grad_accum.
  ParamMap ParamsOf(const Treatment& treatment, int64_t parts = 1) const {
    return {{"model.name", options_.model},
            {"train.batch_size", treatment.rows},
            {"train.grad_accum", options_.grad_accum * parts},
            {"tok.max_length", treatment.length}};
  }

  absl::StatusOr<Treatment> Judged(Treatment treatment) const {
    HPO_ASSIGN_OR_RETURN(treatment.verdict,
                         memory::JudgeConfig(strict_, ParamsOf(treatment), capacity_));
    return treatment;
  }

  const DatasetProfile& profile_;
  const DiagnosisOptions& options_;
  const memory::FitDecider& strict_;
  const memory::FitDecider& plan_;
  const Bytes capacity_;
};

}  // namespace

absl::StatusOr<DatasetDiagnosis> DiagnoseDataset(const DatasetProfile& profile,
                                                 const DiagnosisOptions& options,
                                                 const memory::FitDecider& strict,
                                                 const memory::FitDecider& plan, Bytes capacity) {
  const Diagnosis diagnosis(profile, options, strict, plan, capacity);
  DatasetDiagnosis result;
  HPO_ASSIGN_OR_RETURN(result.as_it_is, diagnosis.AsItIs());
  if (options.keep_up_to > 0) {
    HPO_ASSIGN_OR_RETURN(result.savings.emplace_back(), diagnosis.WithoutOutliers());
  }
  HPO_ASSIGN_OR_RETURN(result.savings.emplace_back(), diagnosis.PaddedPerBatch());
  if (!result.as_it_is.verdict.planned.fits) {
    HPO_ASSIGN_OR_RETURN(result.savings.emplace_back(), diagnosis.InChunks());
  }
  HPO_ASSIGN_OR_RETURN(result.savings.emplace_back(), diagnosis.OneByOne());
  result.useful_share =
      profile.items_key.empty()
          ? std::min(1.0, MeanOf(profile.tokens) / static_cast<double>(options.max_length))
          : MeanOf(profile.items) / static_cast<double>(result.as_it_is.max_items);
  return result;
}

}  // namespace hpo::cli
