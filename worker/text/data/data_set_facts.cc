#include "worker/text/data/data_set_facts.h"

#include "common/base/limits.h"
#include "common/base/status.h"
#include "common/files/sha256.h"
#include "worker/text/data/aspect_file.h"
#include "worker/text/data/dataset.h"
#include "worker/text/data/readers.h"
#include "worker/text/data/text_questions.h"
#include "worker/text/files/text_place.h"

namespace hpo::text {
namespace {

LengthHistogram MeasureLengths(const DataFile& file, const Tokenizer& tokenizer) {
  LengthHistogram histogram;
  for (const DataFileRow& row : file.rows) {
    std::optional<absl::string_view> pair;
    if (row.pair.has_value()) pair = *row.pair;
    ++histogram[static_cast<int64_t>(tokenizer.Encode(row.text, pair, kNoTruncation).ids.size())];
  }
  return histogram;
}

// What of a row memory depends on besides its text.
RowTargets TargetsOf(TaskKind task) {
  if (task == TaskKind::kTextClassification) return {};
  return {.kind = RowTargets::Kind::kNothing, .numbers = {}};
}

absl::StatusOr<DataSetFacts> MeasureAspects(const std::string& path,
                                            std::span<const Tokenizer* const> tokenizers,
                                            bool with_spans, std::vector<std::string>& warnings) {
  HPO_ASSIGN_OR_RETURN(const AspectFile file, ReadAspectFile(path));
  warnings = file.warnings;
  DataSetFacts facts;
  facts.rows = static_cast<int64_t>(file.rows.size());
  facts.labels = ClassesOf(file);
  facts.pairs = true;
  std::vector<std::vector<TextQuestion>> questions;
  for (const AspectRow& row : file.rows) {
    questions.push_back(QuestionsOf(row, with_spans));
    ++facts.lengths[kQueryCounts][static_cast<int64_t>(questions.back().size())];
  }
  for (const Tokenizer* tokenizer : tokenizers) {
    LengthHistogram& lengths = facts.lengths[tokenizer->digest()];
    if (!lengths.empty()) continue;
    for (size_t i = 0; i < file.rows.size(); ++i) {
      for (const TextQuestion& question : questions[i]) {
        ++lengths[static_cast<int64_t>(
            tokenizer->Encode(question.words, file.rows[i].text, kNoTruncation).ids.size())];
      }
    }
  }
  return facts;
}

absl::StatusOr<DataSetFacts> MeasureRows(const std::string& path,
                                         std::span<const Tokenizer* const> tokenizers,
                                         TaskKind task, std::vector<std::string>& warnings) {
  HPO_ASSIGN_OR_RETURN(const DataFile file, ReadDataFile(path, TargetsOf(task)));
  warnings = file.warnings;
  DataSetFacts facts;
  facts.rows = static_cast<int64_t>(file.rows.size());
  facts.labels = SortedLabels(file);
  if (static_cast<int64_t>(facts.labels.size()) > kLabelLimit.most) {
    return DataError(path, file.rows.back().line,
                     absl::StrCat("label: expected at most ", kLabelLimit.most, " labels, got ",
                                  facts.labels.size(),
                                  " up to this last row; are text and label exchanged, or is this "
                                  "a task of text-regression?"));
  }
  facts.multi_label = file.multi_label;
  facts.pairs = file.pairs;
  for (const Tokenizer* tokenizer : tokenizers) {
    LengthHistogram& lengths = facts.lengths[tokenizer->digest()];
    if (lengths.empty()) lengths = MeasureLengths(file, *tokenizer);
  }
  return facts;
}

}  // namespace

absl::StatusOr<DataSetFacts> MeasureDataSet(const std::string& path, const std::string& name,
                                            std::span<const Tokenizer* const> tokenizers,
                                            TaskKind task, std::vector<std::string>* warnings) {
  std::vector<std::string> said;
  absl::StatusOr<DataSetFacts> facts =
      AsksQueries(task) ? MeasureAspects(path, tokenizers, task == TaskKind::kMultiQuerySpans, said)
                        : MeasureRows(path, tokenizers, task, said);
  HPO_RETURN_IF_ERROR(facts.status());
  if (warnings != nullptr) warnings->insert(warnings->end(), said.begin(), said.end());
  facts->name = name;
  HPO_ASSIGN_OR_RETURN(facts->digest, Sha256File(path));
  return facts;
}

}  // namespace hpo::text
