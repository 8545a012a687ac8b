#include "worker/trainer/tasks/trial_data.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/model_config.h"
#include "common/status.h"
#include "worker/text/data_file_builder.h"
#include "worker/text/dataset.h"

namespace hpo {
namespace {

absl::StatusOr<std::string> ReadTextFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file) return absl::NotFoundError(absl::StrCat(path, ": no such file, or unreadable"));
  return text.str();
}

LengthHistogram LengthsOf(const EncodedDataset& data) {
  LengthHistogram lengths;
  for (int64_t row = 0; row < data.num_rows(); ++row) ++lengths[data.Length(row)];
  return lengths;
}

absl::StatusOr<TaskData> ReadRows(const TrainerJob& job, TaskKind task) {
  switch (task) {
    case TaskKind::kTextClassification:
      return LoadTaskData(job.train_path, job.validation_path, job.labels);
    case TaskKind::kTextRegression:
      return LoadRegressionData(job.train_path, job.validation_path, job.labels);
    case TaskKind::kLanguageModeling:
      return LoadPlainTexts(job.train_path, job.validation_path);
  }
  return absl::InternalError("unreachable");
}

// Of a single token nothing is predicted.
absl::Status CheckPredictsTokens(const EncodedDataset& data, const Dataset& rows) {
  for (int64_t row = 0; row < data.num_rows(); ++row) {
    if (data.Length(row) >= 2) continue;
    return DataError(rows.path, rows.rows[static_cast<size_t>(row)].line,
                     absl::StrCat("text: expected at least 2 tokens to predict one from another, "
                                  "got ",
                                  data.Length(row)));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ModelFolder> OpenModelFolder(const TrainerJob& job, const TrainingOptions& options) {
  ModelFolder model;
  model.path = job.model_path;
  if (model.path.empty() || !std::filesystem::is_directory(model.path)) {
    return absl::NotFoundError(absl::StrCat(
        "model '", job.model_name, "': expected a folder with config.json, model.safetensors and ",
        "a tokenizer's files at '", model.path, "'"));
  }
  const std::string config_path = model.path + "/config.json";
  HPO_ASSIGN_OR_RETURN(model.config_json, ReadTextFile(config_path));
  HPO_ASSIGN_OR_RETURN(model.shape, ParseModelConfig(model.config_json, config_path));
  if (const absl::Status known = CheckTrainable(model.shape); !known.ok()) {
    return Annotate(known, config_path);
  }
  if (const std::optional<double> dropout = options.config.dropout; dropout.has_value()) {
    model.shape.hidden_dropout = *dropout;
    model.shape.attention_dropout = *dropout;
  }
  HPO_ASSIGN_OR_RETURN(model.tokenizer, MakeTokenizer(model.path, model.shape));
  return model;
}

absl::StatusOr<TextData> LoadTextData(const TrainerJob& job, const TrainingOptions& options,
                                      const ModelFolder& model) {
  TextData data;
  data.task = ParseTaskKind(job.task).value_or(TaskKind::kTextClassification);
  HPO_ASSIGN_OR_RETURN(TaskData files, ReadRows(job, data.task));
  KeepShare(files.train, options.data_subset, options.seed);
  data.labels = files.train.label_names;
  data.max_length = std::min(options.config.max_length, model.shape.max_positions);
  HPO_ASSIGN_OR_RETURN(data.train, EncodeDataset(files.train, *model.tokenizer, data.max_length));
  HPO_ASSIGN_OR_RETURN(data.validation,
                       EncodeDataset(files.validation, *model.tokenizer, data.max_length));
  if (data.task == TaskKind::kLanguageModeling) {
    HPO_RETURN_IF_ERROR(CheckPredictsTokens(data.train, files.train));
    HPO_RETURN_IF_ERROR(CheckPredictsTokens(data.validation, files.validation));
  }
  if (model.shape.type_vocab_size < 2) {
    for (EncodedDataset* rows : {&data.train, &data.validation}) {
      std::fill(rows->type_ids.begin(), rows->type_ids.end(), 0);
    }
  }
  return data;
}

EstimateInput EstimateInputOf(const ModelFolder& model, const TextData& data,
                              const TrainingOptions& options, const std::string& device,
                              Bytes baseline) {
  EstimateInput input;
  input.model = model.shape;
  input.config = options.config;
  input.workload.task = data.task;
  input.workload.num_labels = static_cast<int64_t>(data.labels.size());
  input.workload.multi_label = data.train.multi_label;
  input.workload.train_lengths = LengthsOf(data.train);
  input.workload.validation_lengths = LengthsOf(data.validation);
  input.device.kind = absl::StartsWith(device, "cuda") ? "cuda" : "cpu";
  if (input.device.kind == "cuda") input.device.workspace = baseline;
  return input;
}

}  // namespace hpo
