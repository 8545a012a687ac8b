#include "tests/worker/trainer/synthetic_trial.h"

#include <filesystem>
#include <fstream>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "memory/plan/memory_plan.h"
#include "nlohmann/json.hpp"
#include "tests/worker/trainer/test_device.h"
#include "worker/trainer/data/trial_batches.h"

namespace hpo::trainer {
namespace {

constexpr int64_t kSpecialTokens = 2;  // of a row: [CLS] and [SEP]

void WriteText(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  HPO_CHECK(file.good());
}

// Word pieces that stand for themselves.
constexpr const char* kReserved[] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
constexpr int64_t kNumReserved = 5;

std::string Vocabulary(int64_t size) {
  HPO_CHECK(size > kNumReserved);
  std::string text = absl::StrCat(absl::StrJoin(kReserved, "\n"), "\n");
  for (int64_t word = 0; word < size - kNumReserved; ++word)
    absl::StrAppend(&text, "w", word, "\n");
  return text;
}

std::string ConfigJson(const SyntheticTrial& trial) {
  nlohmann::json config = {{"model_type", trial.family},
                           {"vocab_size", trial.vocabulary},
                           {"max_position_embeddings", trial.positions},
                           {"pad_token_id", 0}};
  if (trial.family == "distilbert") {
    config.update({{"dim", trial.hidden},
                   {"n_layers", trial.layers},
                   {"n_heads", trial.heads},
                   {"hidden_dim", trial.intermediate},
                   {"dropout", trial.hidden_dropout},
                   {"attention_dropout", trial.attention_dropout}});
  } else if (trial.family == "gpt2") {
    config.update({{"n_embd", trial.hidden},
                   {"n_layer", trial.layers},
                   {"n_head", trial.heads},
                   {"n_inner", trial.intermediate},
                   {"n_positions", trial.positions},
                   {"resid_pdrop", trial.hidden_dropout},
                   {"embd_pdrop", trial.hidden_dropout},
                   {"attn_pdrop", trial.attention_dropout}});
  } else {
    config.update({{"hidden_size", trial.hidden},
                   {"num_hidden_layers", trial.layers},
                   {"num_attention_heads", trial.heads},
                   {"intermediate_size", trial.intermediate},
                   {"type_vocab_size", trial.token_types},
                   {"hidden_dropout_prob", trial.hidden_dropout},
                   {"attention_probs_dropout_prob", trial.attention_dropout},
                   {"attention_dropout", trial.attention_dropout}});
  }
  config.update(trial.more_config);
  return config.dump();
}

std::string LabelName(int64_t label) { return absl::StrFormat("label%04d", label); }

// Rows of 1, 2, 3, 1, ... aspects, each with its opinion where spans are asked for: first words of
// the text.
nlohmann::json AspectLine(const SyntheticTrial& trial, int64_t row,
                          const std::vector<std::string>& words) {
  const bool with_spans = trial.task == "multi-query-spans";
  nlohmann::json aspects = nlohmann::json::array();
  for (int64_t i = 0; i <= row % 3; ++i) {
    const size_t word = static_cast<size_t>(i) % words.size();
    aspects.push_back({{"Aspect", with_spans ? words[word] : absl::StrCat("w", i)},
                       {"Category", LabelName((row + i) % trial.labels)},
                       {"VA", absl::StrCat(i, "#", row)}});
    if (with_spans) aspects.back()["Opinion"] = words[(word + 1) % words.size()];
  }
  return {{"Text", absl::StrJoin(words, " ")}, {"Quadruplet", aspects}};
}

std::string Rows(const SyntheticTrial& trial, const std::vector<int64_t>& lengths) {
  const auto num_rows = static_cast<int64_t>(lengths.size());
  std::string rows;
  int64_t row = 0;
  for (const int64_t length : lengths) {
    HPO_CHECK(length > kSpecialTokens);
    std::vector<std::string> words;
    for (int64_t token = 0; token < length - kSpecialTokens; ++token) {
      words.push_back(
          absl::StrCat("w", (row * 31 + token * 7) % (trial.vocabulary - kNumReserved)));
    }
    nlohmann::json line = {{"text", absl::StrJoin(words, " ")}};
    if (absl::StartsWith(trial.task, "multi-query")) {
      line = AspectLine(trial, row, words);
    } else if (trial.task == "text-regression") {
      for (int64_t label = 0; label < trial.labels; ++label) {
        line[LabelName(label)] = 0.5 * static_cast<double>(row + label);
      }
    } else if (trial.multi_label) {
      std::vector<std::string> names;
      for (int64_t label = row % trial.labels; label < trial.labels; label += num_rows) {
        names.push_back(LabelName(label));
      }
      line["labels"] = names;
    } else {
      line["label"] = LabelName(row % trial.labels);
    }
    absl::StrAppend(&rows, line.dump(), "\n");
    ++row;
  }
  return rows;
}

}  // namespace

std::string Describe(const SyntheticTrial& trial) {
  return absl::StrFormat(
      "%s %s, hidden %d x %d, intermediate %d, heads %d, vocabulary %d, positions %d, dropout "
      "%.1f/%.1f/%.1f, head layers [%s], labels %d%s, batch %d x %d in parts of %d, evaluation x "
      "%d, rows %d/%d, length up to %d",
      trial.family, trial.task, trial.hidden, trial.layers, trial.intermediate, trial.heads,
      trial.vocabulary, trial.positions, trial.hidden_dropout, trial.attention_dropout,
      trial.head_dropout.value_or(trial.hidden_dropout), absl::StrJoin(trial.head_sizes, ","),
      trial.labels, trial.multi_label ? " (several a row)" : "", trial.batch_size, trial.grad_accum,
      trial.micro_batch, trial.eval_batch_multiplier, trial.train_lengths.size(),
      trial.validation_lengths.size(), trial.max_length);
}

SyntheticFolder::SyntheticFolder(const SyntheticTrial& trial, const std::string& parent)
    : trial_(trial), folder_(absl::StrCat(parent, "/synthetic_trial_", RandomId())) {
  std::filesystem::create_directories(folder_ + "/model");
  std::filesystem::create_directories(folder_ + "/out");
  WriteText(folder_ + "/model/config.json", ConfigJson(trial));
  WriteText(folder_ + "/model/vocab.txt", Vocabulary(trial.vocabulary));
  WriteText(folder_ + "/model/tokenizer_config.json",
            R"({"do_lower_case": true, "tokenizer_class": "BertTokenizer"})");
  WriteText(folder_ + "/train.jsonl", Rows(trial, trial.train_lengths));
  WriteText(folder_ + "/valid.jsonl", Rows(trial, trial.validation_lengths));
}

SyntheticFolder::~SyntheticFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

TrainerJob SyntheticFolder::Job() const {
  TrainerJob job;
  job.study = "synthetic";
  job.task.params = {{"train.batch_size", trial_.batch_size},
                     {"train.grad_accum", trial_.grad_accum},
                     {"train.eval_batch_multiplier", trial_.eval_batch_multiplier},
                     {"tok.max_length", trial_.max_length},
                     {"head.layers", static_cast<int64_t>(trial_.head_sizes.size())}};
  for (size_t i = 0; i < trial_.head_sizes.size(); ++i) {
    job.task.params[absl::StrCat("head.size_", i + 1)] = trial_.head_sizes[i];
  }
  if (trial_.head_dropout.has_value()) job.task.params["head.dropout"] = *trial_.head_dropout;
  for (const auto& [name, value] : trial_.params) job.task.params[name] = value;
  job.task.trainer.train = folder_ + "/train.jsonl";
  job.task.trainer.validation = folder_ + "/valid.jsonl";
  for (int64_t label = 0; label < trial_.labels; ++label)
    job.task.trainer.labels.push_back(LabelName(label));
  job.task.trainer.epochs = trial_.epochs;
  job.device = TestDeviceName();
  job.model_name = "synthetic";
  job.model_path = folder_ + "/model";
  job.task.trainer.model_init = "random";
  job.task.trainer.task = trial_.task;
  if (trial_.task == "text-classification") {
    job.task.objective = {.metric = "macro_f1", .direction = Direction::kMaximize};
  } else {
    job.task.objective = {.metric = "loss", .direction = Direction::kMinimize};
  }
  job.task.memory.policy = MemoryPolicy::kPlan;
  job.task.admission = false;
  job.task.plan = trial_.Plan();
  job.task.seed = trial_.seed;
  job.output_dir = folder_ + "/out";
  return job;
}

absl::StatusOr<JobDescription> DescribeJob(const TrainerJob& job, int64_t threads) {
  HPO_ASSIGN_OR_RETURN(const TrainingOptions options,
                       ReadTrainingOptions(job.task.params, job.task.seed));
  HPO_ASSIGN_OR_RETURN(const ModelFolder model, OpenModelFolder(job, options));
  HPO_ASSIGN_OR_RETURN(const TextData data, LoadTextData(job, options, model));
  const MemoryPlan plan =
      memory::StartingPlan(options.config, job.task.plan, job.task.memory.policy);
  DeviceProfile device = TestDevice().profile;
  device.workspace = {};  // there before the trial
  JobDescription description{
      .input = EstimateInputOf(model, data, options, device),
      .plan = plan,
      .passes = PassesOf(job, options, data, model.shape.max_positions, plan)};
  description.input.device.threads = threads;
  return description;
}

}  // namespace hpo::trainer
