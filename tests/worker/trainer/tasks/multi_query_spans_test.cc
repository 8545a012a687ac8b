// The six passes over a text, against PyTorch (tests/golden/span_queries, by
// scripts/reference/span_queries.py) and as whole trials.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/worker/trainer/golden_tensors.h"
#include "tests/worker/trainer/same_events.h"
#include "tests/worker/trainer/tiny_trial.h"
#include "worker/trainer/models/files/weight_files.h"
#include "worker/trainer/models/files/weights.h"
#include "worker/trainer/program/run_trial.h"
#include "worker/trainer/scores/quadruplet_scores.h"
#include "worker/trainer/tasks/make_task.h"
#include "worker/trainer/training/effective_batch.h"

namespace hpo::trainer {
namespace {

using testing::HasSubstr;
using Asks = text::TextQuestion::Asks;

TrainerJob SpanJob(TrainerJob job) {
  job.task.trainer.task = "multi-query-spans";
  job.task.trainer.labels.clear();
  job.task.objective = {.metric = "aspect_f1", .direction = Direction::kMaximize};
  return job;
}

class SpanGoldenTest : public testing::Test {
 protected:
  void SetUp() override {
    job_ = SpanJob(trial_.Job());
    job_.model_path = GoldenPath("span_queries");
    job_.task.trainer.train = job_.task.trainer.validation =
        GoldenPath("span_queries/aspects.jsonl");
    job_.task.params["tok.max_length"] = int64_t{24};
    job_.task.params["model.dropout"] = 0.0;
    const auto options = ReadTrainingOptions(job_.task.params, job_.task.seed);
    ASSERT_TRUE(options.ok()) << options.status();
    auto folder = OpenModelFolder(job_, *options);
    ASSERT_TRUE(folder.ok()) << folder.status();
    folder_ = *std::move(folder);
    auto data = LoadTextData(job_, *options, folder_);
    ASSERT_TRUE(data.ok()) << data.status();
    data_ = *std::move(data);
    auto task =
        MakeTask(folder_.shape, *options,
                 {.data = data_, .tokenizer = folder_.tokenizer.get(), .max_positions = 32});
    ASSERT_TRUE(task.ok()) << task.status();
    task_ = *std::move(task);
    const auto weights = OpenWeights(job_.model_path);
    ASSERT_TRUE(weights.ok()) << weights.status();
    const auto report = LoadParameters(task_->module(), *weights);
    ASSERT_TRUE(report.ok()) << report.status();
    ASSERT_TRUE(report->missing.empty());
    texts_.resize(static_cast<size_t>(data_.train.num_rows()));
    std::iota(texts_.begin(), texts_.end(), 0);
  }

  SafetensorsFile Expected() const {
    auto file = SafetensorsFile::Open(GoldenPath("span_queries/expected.safetensors"));
    EXPECT_TRUE(file.ok()) << file.status();
    return *std::move(file);
  }

  TinyTrial trial_;
  TrainerJob job_;
  RecordingEvents events_;
  StageLog log_{job_, *TestDevice().memory, events_};
  ModelFolder folder_;
  TextData data_;
  std::unique_ptr<Task> task_;
  text::BatchRows texts_;
};

TEST_F(SpanGoldenTest, SpansAreWhereHuggingFacesOffsetsHaveThem) {
  const SafetensorsFile expected = Expected();
  const text::QuerySet& set = *data_.train_queries;
  int64_t spans = 0;
  for (int64_t query = 0; query < set.queries.num_rows(); ++query) {
    if (set.spans.queries[static_cast<size_t>(query)].asks == Asks::kClass) continue;
    SCOPED_TRACE(query);
    const torch::Tensor targets = GoldenTensor(expected, absl::StrCat("spans.", query));
    const text::TokenBatch batch = text::PadQueries(set, text::BatchRows{query}, 32);
    const torch::Tensor ours =
        torch::tensor(batch.span_targets).view({batch.length, 2}).narrow(0, 0, targets.size(0));
    EXPECT_TRUE(torch::equal(ours, targets));
    EXPECT_FLOAT_EQ(std::accumulate(batch.span_weights.begin(), batch.span_weights.end(), 0.0f),
                    0.5f);
    ++spans;
  }
  EXPECT_EQ(spans, 20);
}

// However they run together.
TEST_F(SpanGoldenTest, LossAndGradientsArePyTorchs) {
  const SafetensorsFile expected = Expected();
  const double loss = GoldenTensor(expected, "loss").item<double>();
  for (const text::QueryPadding padding :
       {text::QueryPadding::kNone, text::QueryPadding::kBatch, text::QueryPadding::kCorpus}) {
    for (const int64_t at_once : {0, 1, 5}) {
      SCOPED_TRACE(testing::Message() << static_cast<int>(padding) << " " << at_once);
      data_.query_layout = {.padding = padding, .at_once = at_once};
      const EffectiveBatch batch{.rows = texts_, .plan = {.effective_batch = 4, .micro_batch = 3}};
      EXPECT_NEAR(ComputeGradients(*task_, batch, torch::kCPU, log_), loss, 1e-5);
      for (auto& item : task_->module().named_parameters()) {
        const torch::Tensor gradient = GoldenTensor(expected, "grad." + item.key());
        EXPECT_LE(LargestDifference(item.value().grad(), gradient), 1e-4) << item.key();
        item.value().mutable_grad().reset();
      }
    }
  }
}

TEST_F(SpanGoldenTest, MetricsAreEqualWhateverTheLayout) {
  const Metrics plain = task_->Evaluate(text::EvaluationBatches(data_.validation, 1));
  EXPECT_EQ(plain.size(), MetricsOf(TaskKind::kMultiQuerySpans).size());
  for (const absl::string_view metric : MetricsOf(TaskKind::kMultiQuerySpans)) {
    EXPECT_TRUE(plain.contains(std::string(metric))) << metric;
  }
  EXPECT_NEAR(plain.at("loss"), GoldenTensor(Expected(), "loss").item<double>(), 1e-5);
  for (const text::QueryPadding padding :
       {text::QueryPadding::kBatch, text::QueryPadding::kCorpus}) {
    for (const int64_t at_once : {0, 3}) {
      data_.query_layout = {.padding = padding, .at_once = at_once};
      const Metrics metrics = task_->Evaluate(text::EvaluationBatches(data_.validation, 4));
      for (const auto& [name, value] : plain) EXPECT_NEAR(metrics.at(name), value, 1e-5) << name;
    }
  }
}

// Texts of one or two aspects with their opinions, one of nine.
std::string Rows(int count) {
  std::string rows;
  for (int row = 0; row < count; ++row) {
    const int aspects = row == 3 ? 9 : 1 + row % 2;
    std::string text;
    std::string pairs;
    for (int i = 0; i < aspects; ++i) {
      // Words give away what they are.
      const std::string aspect = absl::StrCat("w", (7 * row + i) % 12);
      const std::string opinion = absl::StrCat("w", 30 + (5 * row + i) % 12);
      absl::StrAppend(&text, "w90 ", aspect, " w91 ", opinion, " w92 ");
      absl::StrAppend(&pairs, i > 0 ? "," : "", R"({"Aspect":")", aspect, R"(","Category":")",
                      row % 3 == 0 ? "food" : "place", R"(","Opinion":")", opinion, R"(","VA":"5#)",
                      1 + i % 4, "\"}");
    }
    absl::StrAppend(&rows, "{\"Text\":\"", text, "\",\"Quadruplet\":[", pairs, "]}\n");
  }
  return rows;
}

// With the words of the questions, which tell what is asked.
std::string SpanVocabulary() {
  std::string words = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nwhich\naspects\nopinions\nof\nare\n?\n";
  for (int i = 0; i < 100; ++i) absl::StrAppend(&words, "w", i, "\n");
  return words;
}

class SpanTrialTest : public testing::Test {
 protected:
  TrainerJob Job() {
    TrainerJob job = SpanJob(trial_.Job());
    trial_.Write("model/vocab.txt", SpanVocabulary());
    job.task.trainer.train = trial_.Write("aspects.jsonl", Rows(32));
    job.task.trainer.validation = trial_.Write("others.jsonl", Rows(12));
    job.task.params["train.lr"] = 5e-3;
    job.task.trainer.model_init = "random";
    return job;
  }

  OutcomeMessage Run(const TrainerJob& job) {
    events_ = RecordingEvents();
    OutcomeMessage message = RunTrial(job, TestDevice(), events_, events_);
    EXPECT_TRUE(message.outcome.has_value());
    return message;
  }

  std::vector<Metrics> Measured() const {
    std::vector<Metrics> metrics;
    for (const auto& message : events_.All<MeasurementMessage>()) {
      metrics.push_back(message.measurement.metrics);
    }
    return metrics;
  }

  // The quadruplets next to the best weights are those that were measured.
  void ExpectTheFileScores(const Metrics& best) const {
    const auto said = ReadLines("out/best/quadruplets.jsonl");
    const auto actual = ReadLines("others.jsonl");
    ASSERT_EQ(said.size(), actual.size());
    QuadrupletScores scores;
    for (size_t i = 0; i < said.size(); ++i) {
      EXPECT_EQ(said[i].text, actual[i].text);
      scores.AddText(actual[i].aspects, said[i].aspects);
    }
    Metrics metrics;
    scores.Summarize(metrics);
    EXPECT_DOUBLE_EQ(metrics.at("quadruplet_f1"), best.at("quadruplet_f1"));
    EXPECT_DOUBLE_EQ(metrics.at("quadruplet_cf1"), best.at("quadruplet_cf1"));
  }

  std::vector<text::AspectRow> ReadLines(const std::string& name) const {
    std::vector<text::AspectRow> rows;
    std::ifstream file(trial_.Path(name));
    for (std::string line; std::getline(file, line);) {
      const auto read = text::ParseAspectLines(line, name);
      // A row without any is none to train on.
      rows.push_back(read.ok() ? read->rows[0]
                               : text::AspectRow{.text = nlohmann::json::parse(line)["Text"]});
    }
    return rows;
  }

  std::string FailureOf(const TrainerJob& job) {
    const OutcomeMessage message = Run(job);
    const auto* failed = std::get_if<Failed>(&*message.outcome);
    return failed == nullptr ? std::string() : failed->message;
  }

  TinyTrial trial_;
  RecordingEvents events_;
};

TEST_F(SpanTrialTest, ATrialLearnsSpansAndItsFolderIsTrainedFurther) {
  TrainerJob job = Job();
  job.task.trainer.epochs = 30;
  const OutcomeMessage message = Run(job);
  ASSERT_TRUE(std::holds_alternative<Completed>(*message.outcome))
      << OutcomeToJson(*message.outcome);
  const Metrics best = std::get<Completed>(*message.outcome).metrics;
  EXPECT_GT(best.at("aspect_f1"), 0.6);
  EXPECT_GT(Measured().back().at("opinion_f1"), 0.6);
  EXPECT_GT(best.at("quadruplet_f1"), 0.3);
  EXPECT_GT(best.at("quadruplet_cf1"), 0.3);
  EXPECT_LE(best.at("quadruplet_cf1"), best.at("quadruplet_f1"));
  ExpectTheFileScores(best);
  const auto file = SafetensorsFile::Open(trial_.Path("out/best/model.safetensors"));
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_NE(file->Find("qa_outputs.weight"), nullptr);
  EXPECT_EQ(file->Find("qa_outputs.weight")->shape, (std::vector<int64_t>{2, 32}));
  std::filesystem::rename(trial_.Path("out/best"), trial_.Path("best"));
  job.model_path = trial_.Path("best");
  job.task.trainer.model_init = "pretrained";
  job.task.trainer.epochs = 1;
  job.task.params["train.lr"] = 0.0;
  ASSERT_TRUE(std::holds_alternative<Completed>(*Run(job).outcome));
  EXPECT_DOUBLE_EQ(Measured().front().at("aspect_f1"), best.at("aspect_f1"));
  // Without spans their head is passed over.
  job.task.trainer.task = "multi-query";
  job.task.objective = {.metric = "va_rmse", .direction = Direction::kMinimize};
  EXPECT_TRUE(std::holds_alternative<Completed>(*Run(job).outcome));
}

TEST_F(SpanTrialTest, WhatDoesNotOccurInItsTextIsTold) {
  TrainerJob job = Job();
  job.task.trainer.validation = trial_.Write(
      "some.jsonl",
      R"({"Text":"w1 w30","Quadruplet":[{"Aspect":"w1","Category":"food","Opinion":"w30","VA":"1#1"},)"
      R"({"Aspect":"W1","Category":"food","Opinion":"NULL","VA":"1#1"}]})");
  ASSERT_TRUE(std::holds_alternative<Completed>(*Run(job).outcome));
  const auto logs = events_.All<LogMessage>();
  ASSERT_EQ(logs.size(), 1u);
  EXPECT_THAT(logs[0].text, HasSubstr("some.jsonl: 1 of 3 aspects and opinions do not occur in "
                                      "their texts"));
}

TEST_F(SpanTrialTest, AnAttemptThatGoesOnMeasuresTheSameToTheBit) {
  class StopOnce final : public StopSource {
   public:
    std::optional<StopRequest> Poll() override {
      if (asked_++ != 5) return std::nullopt;
      return StopRequest{.reason = "drain", .checkpoint = true};
    }

   private:
    int asked_ = 0;
  };
  TrainerJob job = Job();
  job.task.trainer.epochs = 3;
  job.task.params["aspects.at_once"] = int64_t{3};
  Run(job);
  const std::vector<Metrics> whole = Measured();
  ASSERT_EQ(whole.size(), 3u);
  job.checkpoints.folder = trial_.Path("checkpoints/tiny/000042");
  StopOnce stop;
  RecordingEvents stopped;
  RunTrial(job, TestDevice(), stopped, stop);
  EXPECT_EQ(stopped.All<MeasurementMessage>().size(), 1u);
  job.attempt = AttemptNumber{2};
  Run(job);
  EXPECT_EQ(Measured().back(), whole.back());
}

TEST_F(SpanTrialTest, TheRemediesNeedLessAndTheEstimateKnowsIt) {
  const auto peak_of = [&](const ParamMap& params) {
    TrainerJob job = Job();
    for (const auto& [name, value] : params) job.task.params[name] = value;
    job.task.params["train.batch_size"] = int64_t{4};
    job.task.plan = {.effective_batch = 4, .micro_batch = 4};
    return ExpectPeakWithinEstimates(job);
  };
  const Bytes corpus = peak_of({{"aspects.padding", std::string("corpus")}});
  const Bytes filtered = peak_of({{"aspects.padding", std::string("corpus")},
                                  {"aspects.max", int64_t{2}},
                                  {"train.optimizer", std::string("sgd")}});
  const Bytes own = peak_of({{"aspects.padding", std::string("none")}});
  const Bytes in_pieces = peak_of({{"aspects.at_once", int64_t{4}}});
  EXPECT_LT(filtered, corpus);
  EXPECT_LT(own, corpus);
  EXPECT_LT(in_pieces, own);
}

// Evaluation of eight texts at a time needs more than steps of one. The untrained model of the
// probe finds many spans, and asks on.
TEST_F(SpanTrialTest, TheRoundsNeedNoMoreThanTheEstimate) {
  for (const int64_t at_once : {0, 4}) {
    TrainerJob job = Job();
    job.task.params["aspects.at_once"] = at_once;
    job.task.params["train.batch_size"] = int64_t{1};
    job.task.params["train.eval_batch_multiplier"] = int64_t{8};
    job.task.params["train.optimizer"] = std::string("sgd");
    job.task.plan = {.effective_batch = 1, .micro_batch = 1};
    ExpectPeakWithinEstimates(job);
  }
}

TEST_F(SpanTrialTest, BadInputIsOneLine) {
  TrainerJob job = Job();
  job.task.trainer.task = "multi-query";
  EXPECT_THAT(FailureOf(job), HasSubstr("(the metrics of multi-query), got 'aspect_f1'"));
  job = Job();
  job.task.params["memory.unpadded"] = true;
  EXPECT_THAT(FailureOf(job), HasSubstr("got multi-query-spans, which runs padded"));
  job = Job();
  job.task.trainer.validation =
      trial_.Write("no_opinions.jsonl",
                   R"({"Text":"w1","Quadruplet":[{"Aspect":"w1","Category":"food","VA":"1#1"}]})");
  EXPECT_THAT(FailureOf(job), HasSubstr("no_opinions.jsonl: Opinion: expected at least one that "
                                        "occurs in its Text, letter for letter, got none"));
}

}  // namespace
}  // namespace hpo::trainer
