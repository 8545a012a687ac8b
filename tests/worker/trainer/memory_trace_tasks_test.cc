// The drift guard (memory_trace_test.cc) over the tasks.
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/worker/trainer/same_events.h"

namespace hpo::trainer {
namespace {

TEST(MemoryTraceOfTasks, IsTheTrainersForRegression) {
  for (const int64_t numbers : {1, 3}) {
    for (const char* family : {"bert", "qwen2"}) {
      SyntheticTrial trial = Small();
      trial.task = "text-regression";
      trial.family = family;
      trial.labels = numbers;
      trial.micro_batch = 4;
      ExpectSameEvents(trial);
    }
  }
}

SyntheticTrial LanguageTrial(const char* family, bool tied) {
  SyntheticTrial trial = Small();
  trial.task = "language-modeling";
  trial.family = family;
  trial.micro_batch = 4;
  trial.more_config = {{"tie_word_embeddings", tied}};
  return trial;
}

// Heads tied and not, one piece of the loss and several with a shorter last one.
TEST(MemoryTraceOfTasks, IsTheTrainersForLanguageModeling) {
  for (const char* family : {"gpt2", "llama", "qwen2"}) {
    for (const bool tied : {false, true}) {
      for (const int64_t loss_rows : {0, 50}) {
        for (const char* precision : {"fp32", "fp16"}) {
          SyntheticTrial trial = LanguageTrial(family, tied);
          trial.params = {{"memory.loss_rows", loss_rows},
                          {"train.precision", std::string(precision)}};
          SCOPED_TRACE(absl::StrCat(tied ? "tied, " : "", loss_rows, ", ", precision));
          ExpectSameEvents(trial);
        }
      }
    }
  }
}

// Adapters under a language model whose head is its own, in float32, or the stored embeddings.
TEST(MemoryTraceOfTasks, IsTheTrainersForLanguageModelingOnAStoredBase) {
  for (const char* family : {"gpt2", "qwen2"}) {
    for (const bool tied : {false, true}) {
      for (const char* base : {"fp32", "bf16", "nf4"}) {
        for (const char* precision : {"fp32", "fp16"}) {
          SyntheticTrial trial = LanguageTrial(family, tied);
          trial.params = {{"lora.rank", int64_t{4}},
                          {"lora.base", std::string(base)},
                          {"train.precision", std::string(precision)},
                          {"memory.loss_rows", int64_t{50}}};
          SCOPED_TRACE(absl::StrCat(tied ? "tied, " : "", base, ", trained in ", precision));
          ExpectSameEvents(trial);
        }
      }
    }
  }
}

// A model of zeros, which stays one: it says no spans. What others ask on about theirs no trace
// foretells; it needs no more than what runs here (quadruplet_reader_test.cc).
SyntheticTrial FindingNoSpans(SyntheticTrial trial) {
  trial.more_config["initializer_range"] = 1e-60;  // 0 in float32
  trial.params["train.lr"] = 0.0;
  return trial;
}

// `at_once`: queries that run together.
void ExpectSameEventsOfQueries(const char* task, std::initializer_list<const char*> families,
                               std::initializer_list<int64_t> at_once) {
  for (const char* family : families) {
    for (const int64_t queries : at_once) {
      SyntheticTrial trial = Small();
      trial.task = task;
      trial.family = family;
      trial.micro_batch = 4;
      trial.params = {{"aspects.at_once", queries}};
      SCOPED_TRACE(absl::StrCat(family, ", ", queries));
      ExpectSameEvents(FindingNoSpans(trial));
    }
  }
}

// Texts of one to three aspects, together and a few at a time.
TEST(MemoryTraceOfTasks, IsTheTrainersForMultiQuery) {
  ExpectSameEventsOfQueries("multi-query", {"bert", "distilbert"}, {0, 4});
}

TEST(MemoryTraceOfTasks, IsTheTrainersForMultiQueryWithWeightsAndSmoothing) {
  for (const char* task : {"multi-query", "multi-query-spans"}) {
    for (const char* weights : {"none", "balanced"}) {
      SyntheticTrial trial = Small();
      trial.task = task;
      trial.micro_batch = 4;
      trial.params = {{"train.class_weights", std::string(weights)},
                      {"train.label_smoothing", 0.1}};
      SCOPED_TRACE(absl::StrCat(task, " ", weights));
      ExpectSameEvents(FindingNoSpans(trial));
    }
  }
}

// The span head and its loss, under heads of every kind; one row alone is not copied.
TEST(MemoryTraceOfTasks, IsTheTrainersForMultiQueryWithSpans) {
  ExpectSameEventsOfQueries("multi-query-spans", {"bert", "distilbert", "gpt2"}, {0, 1, 4});
}

TEST(MemoryTraceOfTasks, IsTheTrainersForSpansWithEveryTechnique) {
  const ParamMap techniques[] = {{{"lora.rank", int64_t{4}}, {"lora.base", std::string("nf4")}},
                                 {{"memory.checkpoint_every", int64_t{1}}},
                                 {{"train.precision", std::string("fp16")}},
                                 {{"aspects.padding", std::string("corpus")}},
                                 {{"train.optimizer", std::string("adafactor")}},
                                 {{"model.freeze_layers", int64_t{1}}}};
  for (const ParamMap& params : techniques) {
    SyntheticTrial trial = Small();
    trial.task = "multi-query-spans";
    trial.micro_batch = 4;
    trial.head_sizes = {33};
    trial.params = params;
    SCOPED_TRACE(params.begin()->first);
    ExpectSameEvents(FindingNoSpans(trial));
  }
}

}  // namespace
}  // namespace hpo::trainer
