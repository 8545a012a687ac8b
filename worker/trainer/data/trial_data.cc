#include "worker/trainer/data/trial_data.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/files/read_file.h"
#include "common/models/model_config.h"
#include "worker/text/data/dataset.h"
#include "worker/text/files/text_place.h"
#include "worker/text/tokenizers/make_tokenizer.h"

namespace hpo::trainer {
namespace {

LengthHistogram LengthsOf(const text::EncodedDataset& data) {
  LengthHistogram lengths;
  for (int64_t row = 0; row < data.num_rows(); ++row) ++lengths[data.Length(row)];
  return lengths;
}

absl::StatusOr<text::TaskData> ReadRows(const TrainerSpec& trainer, TaskKind task) {
  switch (task) {
    case TaskKind::kTextClassification:
      return text::LoadTaskData(trainer.train, trainer.validation, trainer.labels);
    case TaskKind::kTextRegression:
      return text::LoadRegressionData(trainer.train, trainer.validation, trainer.labels);
    case TaskKind::kLanguageModeling:
      return text::LoadPlainTexts(trainer.train, trainer.validation);
    case TaskKind::kMultiQuery:
    case TaskKind::kMultiQuerySpans:
      break;
  }
  return absl::InternalError("unreachable");
}

// Of a single token nothing is predicted.
absl::Status CheckPredictsTokens(const text::EncodedDataset& data, const text::Dataset& rows) {
  for (int64_t row = 0; row < data.num_rows(); ++row) {
    if (data.Length(row) >= 2) continue;
    return text::DataError(
        rows.path, rows.rows[static_cast<size_t>(row)].line,
        absl::StrCat("text: expected at least 2 tokens to predict one from another, "
                     "got ",
                     data.Length(row)));
  }
  return absl::OkStatus();
}

absl::StatusOr<TextData> LoadRows(const TrainerSpec& trainer, const TrainingOptions& options,
                                  TaskKind task, text::RowEncoder encode) {
  TextData data;
  HPO_ASSIGN_OR_RETURN(const text::TaskData files, ReadRows(trainer, task));
  data.labels = files.train.label_names;
  HPO_ASSIGN_OR_RETURN(data.train, encode(files.train));
  HPO_ASSIGN_OR_RETURN(data.validation, encode(files.validation));
  if (task == TaskKind::kLanguageModeling) {
    HPO_RETURN_IF_ERROR(CheckPredictsTokens(data.train, files.train));
    HPO_RETURN_IF_ERROR(CheckPredictsTokens(data.validation, files.validation));
  }
  if (options.data_subset < 1.0) {
    data.train =
        text::SelectRows(data.train, text::ShareOf(files.train, options.data_subset, options.seed));
  }
  return data;
}

absl::StatusOr<TextData> LoadQueries(const TrainerSpec& trainer, const TrainingOptions& options,
                                     const text::Tokenizer* span_tokenizer, int64_t max_length,
                                     text::RowEncoder encode) {
  HPO_ASSIGN_OR_RETURN(text::QuerySets sets,
                       text::LoadQuerySets(trainer.train, trainer.validation,
                                           {.labels = trainer.labels,
                                            .most_aspects = options.config.most_aspects,
                                            .span_tokenizer = span_tokenizer,
                                            .max_length = max_length},
                                           encode));
  if (options.data_subset < 1.0) {
    sets.train = text::SelectTexts(
        sets.train, text::ShareOf(sets.train.num_texts(), options.data_subset, options.seed));
  }
  TextData data;
  data.labels = std::move(sets.labels);
  data.train = text::TextsOf(sets.train);
  data.validation = text::TextsOf(sets.validation);
  data.train_queries = std::move(sets.train);
  data.validation_queries = std::move(sets.validation);
  data.validation_texts = std::move(sets.validation_texts);
  data.query_layout = {.padding = options.query_padding, .at_once = options.config.queries_at_once};
  return data;
}

// Of a model that knows one type.
void ForgetTypes(TextData& data) {
  data.one_token_type = true;
  std::vector<text::EncodedDataset*> all = {&data.train, &data.validation};
  if (data.train_queries.has_value()) {
    all.insert(all.end(), {&data.train_queries->queries, &data.validation_queries->queries});
  }
  for (text::EncodedDataset* rows : all) std::fill(rows->type_ids.begin(), rows->type_ids.end(), 0);
}

}  // namespace

absl::StatusOr<ModelFolder> OpenModelFolder(const TrainerJob& job, const TrainingOptions& options) {
  ModelFolder model;
  model.path = job.model_path;
  if (model.path.empty() || !std::filesystem::is_directory(model.path)) {
    return absl::NotFoundError(absl::StrCat(
        "model '", job.model_name, "': expected a folder with config.json, model.safetensors and ",
        "a tokenizer's files, got '", model.path,
        "'; hpo-worker --models names the folder with it"));
  }
  const std::string config_path = model.path + "/config.json";
  HPO_ASSIGN_OR_RETURN(model.config_json, ReadFile(config_path));
  HPO_ASSIGN_OR_RETURN(model.shape, ParseModelConfig(model.config_json, config_path));
  if (const absl::Status known = CheckTrainable(model.shape); !known.ok()) {
    return Annotate(known, config_path);
  }
  if (const std::optional<double> dropout = options.config.dropout; dropout.has_value()) {
    model.shape.hidden_dropout = *dropout;
    model.shape.attention_dropout = *dropout;
  }
  HPO_ASSIGN_OR_RETURN(model.tokenizer, text::MakeTokenizer(model.path, model.shape));
  return model;
}

absl::StatusOr<TextData> LoadTextData(const TrainerJob& job, const TrainingOptions& options,
                                      const ModelFolder& model, const text::TokenCache& tokens) {
  const TrainerSpec& trainer = job.task.trainer;
  const TaskKind task = ParseTaskKind(trainer.task).value_or(TaskKind::kTextClassification);
  const int64_t max_length = std::min(options.config.max_length, model.shape.max_positions);
  std::vector<TruncatedRows> truncated;
  std::vector<std::string> warnings;
  const auto encode = [&](const text::Dataset& rows) {
    warnings.insert(warnings.end(), rows.warnings.begin(), rows.warnings.end());
    auto encoded = tokens.Encode(rows, *model.tokenizer, max_length);
    if (encoded.ok() && options.config.max_length > max_length) {
      truncated.push_back(
          {.path = rows.path,
           .truncated = text::CountTruncated(rows, *encoded, *model.tokenizer, max_length),
           .rows = encoded->num_rows()});
    }
    return encoded;
  };
  const text::Tokenizer* const span_tokenizer =
      task == TaskKind::kMultiQuerySpans ? model.tokenizer.get() : nullptr;
  absl::StatusOr<TextData> data =
      AsksQueries(task) ? LoadQueries(trainer, options, span_tokenizer, max_length, encode)
                        : LoadRows(trainer, options, task, encode);
  HPO_RETURN_IF_ERROR(data.status());
  data->task = task;
  data->max_length = max_length;
  data->truncated = std::move(truncated);
  data->warnings = std::move(warnings);
  if (model.shape.type_vocab_size < 2) ForgetTypes(*data);
  return data;
}

memory::EstimateInput EstimateInputOf(const ModelFolder& model, const TextData& data,
                                      const TrainingOptions& options, const DeviceProfile& device) {
  memory::EstimateInput input;
  input.model = model.shape;
  input.config = options.config;
  input.workload.task = data.task;
  input.workload.num_labels = static_cast<int64_t>(data.labels.size());
  input.workload.multi_label = data.train.multi_label;
  if (data.train_queries.has_value()) {
    input.workload.train_lengths = LengthsOf(data.train_queries->queries);
    input.workload.validation_lengths = LengthsOf(data.validation_queries->queries);
    input.workload.train_queries = text::QueryCounts(*data.train_queries);
    input.workload.validation_queries = text::QueryCounts(*data.validation_queries);
  } else {
    input.workload.train_lengths = LengthsOf(data.train);
    input.workload.validation_lengths = LengthsOf(data.validation);
  }
  input.device = device;
  return input;
}

}  // namespace hpo::trainer
