#include "tests/worker/trainer/tiny_trial.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/ids.h"
#include "common/base/random.h"
#include "common/base/status.h"
#include "gtest/gtest.h"
#include "tests/worker/trainer/golden_tensors.h"
#include "worker/trainer/models/files/safetensors.h"

namespace hpo::trainer {
namespace {

constexpr int kVocabularySize = 120;  // tiny-bert's

std::string TinyVocabulary() {
  std::vector<std::string> words = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
  for (int i = 0; static_cast<int>(words.size()) < kVocabularySize; ++i) {
    words.push_back(absl::StrCat("w", i));
  }
  return absl::StrJoin(words, "\n") + "\n";
}

}  // namespace

void RecordingEvents::Send(const UpMessage& message) {
  messages.push_back(message);
  if (const auto* progress = std::get_if<ProgressMessage>(&message)) step_ = progress->step;
  if (const auto* measured = std::get_if<MeasurementMessage>(&message)) {
    step_ = measured->measurement.step;
  }
}

std::optional<StopRequest> RecordingEvents::Poll() {
  if (!stop_at_.has_value() || step_ < *stop_at_) return std::nullopt;
  return StopRequest{.reason = reason_, .checkpoint = false};
}

void RecordingEvents::StopAt(int64_t step, std::string reason) {
  stop_at_ = step;
  reason_ = std::move(reason);
}

std::vector<std::string> RecordingEvents::Stages() const {
  std::vector<std::string> stages;
  for (const MemoryMessage& message : All<MemoryMessage>()) stages.push_back(message.stage);
  return stages;
}

std::string TensorBytes(const std::string& path) {
  const auto file = SafetensorsFile::Open(path);
  EXPECT_TRUE(file.ok()) << file.status();
  std::string bytes;
  if (!file.ok()) return bytes;
  for (const auto& [name, view] : file->tensors()) {
    bytes.append(reinterpret_cast<const char*>(view.bytes.data()), view.bytes.size());
  }
  return bytes;
}

std::string BestWeights(const TinyTrial& trial) {
  return TensorBytes(trial.Path("out/best/model.safetensors"));
}

std::string TinyRows(int count, uint64_t seed) {
  Rng random(seed, 0);
  std::string rows;
  for (int i = 0; i < count; ++i) {
    const uint64_t label = random.Below(3);
    std::vector<std::string> words;
    for (uint64_t n = 3 + random.Below(26); n > 0; --n) {
      // Words 0-29 tell label a, 30-59 b, 60-89 c; a few tell nothing.
      const bool tells = random.Below(4) != 0;
      words.push_back(
          absl::StrCat("w", tells ? 30 * label + random.Below(30) : 90 + random.Below(20)));
    }
    absl::StrAppend(&rows, R"({"text":")", absl::StrJoin(words, " "), R"(","label":")",
                    std::string(1, static_cast<char>('a' + label)), "\"}\n");
  }
  return rows;
}

TinyTrial::TinyTrial() : folder_(absl::StrCat(testing::TempDir(), "/tiny_trial_", RandomId())) {
  namespace fs = std::filesystem;
  fs::create_directories(folder_ + "/model");
  fs::create_directories(folder_ + "/out");
  for (const char* file : {"config.json", "model.safetensors"}) {
    fs::copy_file(GoldenPath(absl::StrCat("tiny_models/tiny-bert/", file)),
                  absl::StrCat(folder_, "/model/", file));
  }
  Write("model/vocab.txt", TinyVocabulary());
  Write("model/tokenizer_config.json", R"({"do_lower_case": true})");
  Write("train.jsonl", TinyRows(48, 1));
  Write("valid.jsonl", TinyRows(24, 2));
}

TinyTrial::~TinyTrial() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

std::string TinyTrial::Write(const std::string& name, const std::string& contents) const {
  const std::string path = Path(name);
  std::ofstream(path, std::ios::binary) << contents;
  return path;
}

TrainerJob TinyTrial::Job() const {
  TrainerJob job;
  job.study = "tiny";
  job.trial = TrialNumber{42};
  job.task.params = {{"train.lr", 1e-3},
                     {"train.batch_size", int64_t{8}},
                     {"train.grad_accum", int64_t{1}},
                     {"tok.max_length", int64_t{32}},
                     {"model.dropout", 0.1},
                     {"model.name", std::string("tiny-bert")}};
  job.task.trainer.train = Path("train.jsonl");
  job.task.trainer.validation = Path("valid.jsonl");
  job.task.trainer.labels = {"a", "b", "c"};
  job.task.trainer.epochs = 1;
  job.device = TestDeviceName();
  job.model_name = "tiny-bert";
  job.model_path = Path("model");
  job.task.objective = {.metric = "macro_f1", .direction = Direction::kMaximize};
  job.task.admission = false;
  job.task.plan = {.effective_batch = 8, .micro_batch = 8};
  job.task.seed = 3;
  job.output_dir = Path("out");
  return job;
}

}  // namespace hpo::trainer
