#include "worker/text/data/dataset.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "common/base/limits.h"
#include "common/base/random.h"
#include "common/base/status.h"
#include "worker/text/files/text_place.h"

namespace hpo::text {
namespace {

// Labels that an error lists at most.
constexpr size_t kMaxListed = 8;
constexpr size_t kMaxLabel = 40;  // bytes

// Apart from the streams that order batches and draw dropout from the same seed.
constexpr uint64_t kSubsetStream = 0x5b5e7;

using LabelIndex = absl::flat_hash_map<std::string, int32_t>;

std::string Listed(const std::vector<std::string>& labels) {
  const size_t shown = std::min(labels.size(), kMaxListed);
  const auto short_label = [](std::string* out, const std::string& label) {
    absl::StrAppend(out, label.size() > kMaxLabel ? Quoted(label) : label);
  };
  std::string text =
      absl::StrJoin(labels.begin(), labels.begin() + static_cast<int>(shown), ", ", short_label);
  if (shown < labels.size()) absl::StrAppend(&text, ", ... (", labels.size(), " in all)");
  return text;
}

// What an unknown label suggests: one that differs in spaces or letter case alone, numbers that are
// no classes, or texts. Empty: nothing.
std::string HintOn(const std::string& label, const std::vector<std::string>& labels) {
  constexpr size_t kManyLabels = 20;
  double number = 0.0;
  const bool is_number = absl::SimpleAtod(label, &number);
  for (const std::string& known : labels) {
    double known_number = 0.0;
    if (is_number && absl::SimpleAtod(known, &known_number) && known_number == number) {
      return absl::StrCat("; it is the number ", Quoted(known), " in another form");
    }
    if (!absl::EqualsIgnoreCase(absl::StripAsciiWhitespace(known),
                                absl::StripAsciiWhitespace(label))) {
      continue;
    }
    return absl::StrCat("; it differs from ", Quoted(known), " in spaces or capital letters alone");
  }
  if (label.size() > kMaxLabel && absl::StrContains(label, ' ')) {
    return "; the columns of text and label are perhaps exchanged";
  }
  const bool numbers = labels.size() >= kManyLabels &&
                       std::all_of(labels.begin(), labels.end(), [&](const std::string& known) {
                         return absl::SimpleAtod(known, &number);
                       });
  return numbers ? "; numbers that are no classes need the study's trainer.task to be "
                   "text-regression"
                 : "";
}

absl::StatusOr<LabelIndex> IndexLabels(const std::vector<std::string>& labels) {
  LabelIndex index;
  for (const std::string& label : labels) {
    if (!index.emplace(label, static_cast<int32_t>(index.size())).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("trainer.labels: expected each label once, got ", Quoted(label), " twice"));
    }
  }
  return index;
}

absl::Status CheckAllTrained(const DataFile& train, const std::vector<std::string>& labels) {
  absl::flat_hash_set<absl::string_view> present;
  for (const DataFileRow& row : train.rows) present.insert(row.labels.begin(), row.labels.end());
  for (const std::string& label : labels) {
    if (!present.contains(label)) {
      return DataError(train.path, train.rows.back().line,
                       absl::StrCat("expected rows with every label of trainer.labels, got none "
                                    "with '",
                                    label, "' up to this last row"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckSameKind(const DataFile& train, const DataFile& validation) {
  const int64_t line = validation.rows.front().line;
  if (train.multi_label != validation.multi_label) {
    return DataError(
        validation.path, line,
        absl::StrCat("expected '", train.multi_label ? "labels" : "label", "' as in ", train.path,
                     ", got '", validation.multi_label ? "labels" : "label", "'"));
  }
  if (train.pairs != validation.pairs) {
    return DataError(validation.path, line,
                     absl::StrCat("pair: expected ", train.pairs ? "one" : "none", " as in ",
                                  train.path, ", got ", validation.pairs ? "one" : "none"));
  }
  return absl::OkStatus();
}

absl::StatusOr<Dataset> WithIndices(DataFile file, const std::vector<std::string>& labels,
                                    const LabelIndex& index, absl::string_view labels_from) {
  Dataset dataset{.path = std::move(file.path),
                  .label_names = labels,
                  .multi_label = file.multi_label,
                  .pairs = file.pairs,
                  .warnings = std::move(file.warnings)};
  dataset.rows.reserve(file.rows.size());
  for (DataFileRow& row : file.rows) {
    DatasetRow indexed{.text = std::move(row.text), .pair = std::move(row.pair), .line = row.line};
    for (const std::string& label : row.labels) {
      const auto found = index.find(label);
      if (found == index.end()) {
        return DataError(dataset.path, row.line,
                         absl::StrCat("label: expected one of ", labels_from, " (", Listed(labels),
                                      "), got ", Quoted(label), HintOn(label, labels)));
      }
      indexed.labels.push_back(found->second);
    }
    std::sort(indexed.labels.begin(), indexed.labels.end());
    dataset.rows.push_back(std::move(indexed));
  }
  return dataset;
}

// Without label names.
absl::StatusOr<Dataset> WithNumbers(DataFile file, const std::vector<std::string>& columns) {
  Dataset dataset{.path = std::move(file.path),
                  .label_names = columns,
                  .pairs = file.pairs,
                  .warnings = std::move(file.warnings)};
  dataset.rows.reserve(file.rows.size());
  for (DataFileRow& row : file.rows) {
    DatasetRow kept{.text = std::move(row.text), .pair = std::move(row.pair), .line = row.line};
    for (size_t i = 0; i < row.numbers.size(); ++i) {
      kept.numbers.push_back(static_cast<float>(row.numbers[i]));
      if (std::isfinite(kept.numbers.back())) continue;
      return DataError(
          dataset.path, row.line,
          absl::StrCat(columns[i], ": expected a number within float32, got ", row.numbers[i]));
    }
    dataset.rows.push_back(std::move(kept));
  }
  return dataset;
}

absl::StatusOr<TaskData> LoadWithoutLabels(const std::string& train_path,
                                           const std::string& validation_path,
                                           const RowTargets& targets) {
  HPO_ASSIGN_OR_RETURN(DataFile train, ReadDataFile(train_path, targets));
  HPO_ASSIGN_OR_RETURN(DataFile validation, ReadDataFile(validation_path, targets));
  HPO_RETURN_IF_ERROR(CheckSameKind(train, validation));
  TaskData data;
  HPO_ASSIGN_OR_RETURN(data.train, WithNumbers(std::move(train), targets.numbers));
  HPO_ASSIGN_OR_RETURN(data.validation, WithNumbers(std::move(validation), targets.numbers));
  return data;
}

using RowsByLabels = std::map<std::vector<int32_t>, std::vector<int64_t>>;

std::vector<int64_t> ShareOfEach(RowsByLabels rows_by_labels, double share, uint64_t seed) {
  Rng random(seed, kSubsetStream);
  std::vector<int64_t> share_of_rows;
  for (auto& [labels, rows] : rows_by_labels) {
    const auto count = static_cast<size_t>(std::ceil(share * static_cast<double>(rows.size())));
    for (size_t i = 0; i < count; ++i) {
      std::swap(rows[i], rows[i + random.Below(rows.size() - i)]);
      share_of_rows.push_back(rows[i]);
    }
  }
  std::sort(share_of_rows.begin(), share_of_rows.end());
  return share_of_rows;
}

}  // namespace

absl::StatusOr<TaskData> LoadRegressionData(const std::string& train_path,
                                            const std::string& validation_path,
                                            const std::vector<std::string>& columns) {
  RowTargets targets{.kind = RowTargets::Kind::kNumbers, .numbers = columns};
  if (columns.empty()) targets.numbers = {"label"};
  HPO_RETURN_IF_ERROR(IndexLabels(targets.numbers).status());
  for (const std::string& name : targets.numbers) {
    if (name != "text" && name != "pair") continue;
    return absl::InvalidArgumentError(
        absl::StrCat("trainer.labels: expected fields of numbers, got '", name, "'"));
  }
  return LoadWithoutLabels(train_path, validation_path, targets);
}

absl::StatusOr<TaskData> LoadPlainTexts(const std::string& train_path,
                                        const std::string& validation_path) {
  HPO_ASSIGN_OR_RETURN(TaskData data,
                       LoadWithoutLabels(train_path, validation_path,
                                         {.kind = RowTargets::Kind::kNothing, .numbers = {}}));
  if (data.train.pairs) {
    return DataError(train_path, 1, "pair: expected texts alone, got pairs");
  }
  return data;
}

std::vector<std::string> SortedLabels(const DataFile& file) {
  std::set<std::string> distinct;
  for (const DataFileRow& row : file.rows) distinct.insert(row.labels.begin(), row.labels.end());
  std::vector<std::string> labels(distinct.begin(), distinct.end());
  std::vector<std::pair<int64_t, std::string>> numbers;
  for (const std::string& label : labels) {
    int64_t number = 0;
    if (!absl::SimpleAtoi(label, &number)) return labels;
    numbers.emplace_back(number, label);
  }
  std::sort(numbers.begin(), numbers.end());
  for (size_t i = 0; i < numbers.size(); ++i) labels[i] = std::move(numbers[i].second);
  return labels;
}

absl::StatusOr<TaskData> LoadTaskData(const std::string& train_path,
                                      const std::string& validation_path,
                                      const std::vector<std::string>& labels) {
  HPO_ASSIGN_OR_RETURN(DataFile train, ReadDataFile(train_path));
  HPO_ASSIGN_OR_RETURN(DataFile validation, ReadDataFile(validation_path));
  HPO_RETURN_IF_ERROR(CheckSameKind(train, validation));
  const bool listed = !labels.empty();
  const std::vector<std::string> names = listed ? labels : SortedLabels(train);
  HPO_ASSIGN_OR_RETURN(const LabelIndex index, IndexLabels(names));
  // Of several labels at once some are rare.
  if (listed && !train.multi_label) HPO_RETURN_IF_ERROR(CheckAllTrained(train, names));
  const std::string labels_from =
      listed ? "trainer.labels" : absl::StrCat("the labels of ", train_path);
  const int64_t last_line = train.rows.back().line;
  TaskData data;
  HPO_ASSIGN_OR_RETURN(data.train, WithIndices(std::move(train), names, index, labels_from));
  if (names.empty()) {
    return DataError(train_path, last_line,
                     "labels: expected a label in one of the rows, got none up to this last one");
  }
  if (names.size() < 2 && !data.train.multi_label) {
    return DataError(train_path, last_line,
                     absl::StrCat("expected at least two labels, got '", Listed(names),
                                  "' in every row up to this last one"));
  }
  HPO_ASSIGN_OR_RETURN(data.validation,
                       WithIndices(std::move(validation), names, index, labels_from));
  return data;
}

std::vector<int64_t> ShareOf(const Dataset& dataset, double share, uint64_t seed) {
  RowsByLabels rows;
  for (size_t row = 0; row < dataset.rows.size(); ++row) {
    const auto& labels = dataset.rows[row].labels;
    rows[dataset.multi_label ? std::vector<int32_t>() : labels].push_back(
        static_cast<int64_t>(row));
  }
  return ShareOfEach(std::move(rows), share, seed);
}

std::vector<int64_t> ShareOf(int64_t rows, double share, uint64_t seed) {
  std::vector<int64_t> all(static_cast<size_t>(rows));
  std::iota(all.begin(), all.end(), int64_t{0});
  return ShareOfEach({{{}, std::move(all)}}, share, seed);
}

}  // namespace hpo::text
