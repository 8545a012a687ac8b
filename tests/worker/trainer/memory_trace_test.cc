// The drift guard: what the trainer allocates and frees on a CPU, event by event, against the trace
// that memory's model generates for it. When a change of model or training code fails this,
// memory/need/trial_trace.cc (or an operation of memory/ops) has to follow it.
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "memory/need/memory_replay.h"
#include "nlohmann/json.hpp"
#include "tests/worker/trainer/same_events.h"
#include "tests/worker/trainer/synthetic_trial.h"
#include "tests/worker/trainer/tiny_trial.h"
#include "worker/trainer/program/run_trial.h"

namespace hpo::trainer {
namespace {

TEST(MemoryTrace, IsTheTrainersWithAndWithoutDropout) {
  for (const double hidden : {0.0, 0.1}) {
    for (const double attention : {0.0, 0.1}) {
      SyntheticTrial trial = Small();
      trial.hidden_dropout = hidden;
      trial.attention_dropout = attention;
      ExpectSameEvents(trial);
    }
  }
}

TEST(MemoryTrace, IsTheTrainersInPartsWithAShorterLastOne) {
  for (const double dropout : {0.0, 0.1}) {
    SyntheticTrial trial = Small();
    trial.hidden_dropout = trial.attention_dropout = dropout;
    trial.micro_batch = 3;
    ExpectSameEvents(trial);
  }
}

// One row, one head: what is a copy elsewhere is a view.
TEST(MemoryTrace, IsTheTrainersForOneRowAndForOneHead) {
  for (const double dropout : {0.0, 0.1}) {
    for (const int64_t rows : {1, 4}) {
      for (const int64_t heads : {1, 3}) {
        SyntheticTrial trial = Small();
        trial.hidden_dropout = trial.attention_dropout = dropout;
        trial.micro_batch = rows;
        trial.heads = heads;
        ExpectSameEvents(trial);
      }
    }
  }
}

TEST(MemoryTrace, IsTheTrainersWithHeadLayersAndSeveralLabels) {
  for (const bool multi_label : {false, true}) {
    for (const double head_dropout : {0.0, 0.2}) {
      SyntheticTrial trial = Small();
      trial.multi_label = multi_label;
      trial.head_dropout = head_dropout;
      trial.head_sizes = {33, 17};
      ExpectSameEvents(trial);
    }
  }
}

TEST(MemoryTrace, IsTheTrainersWithClassWeightsAndLabelSmoothing) {
  for (const bool multi_label : {false, true}) {
    for (const char* weights : {"none", "balanced"}) {
      for (const double smoothing : {0.0, 0.1}) {
        SyntheticTrial trial = Small();
        trial.multi_label = multi_label;
        trial.micro_batch = 4;
        trial.params = {{"train.class_weights", std::string(weights)},
                        {"train.label_smoothing", smoothing}};
        SCOPED_TRACE(absl::StrCat(weights, " ", smoothing));
        ExpectSameEvents(trial);
      }
    }
  }
}

// Several steps and epochs over rows of many lengths, the last batch shorter; the evaluation in
// batches of its own.
TEST(MemoryTrace, IsTheTrainersOverRealLengths) {
  SyntheticTrial trial = Small();
  trial.batch_size = 4;
  trial.micro_batch = 2;
  trial.eval_batch_multiplier = 2;
  trial.train_lengths = {3, 60, 17, 33, 45, 20, 9, 51, 64, 12};
  trial.validation_lengths = {5, 70, 23, 41, 38};
  trial.max_length = 66;
  ExpectSameEvents(trial);
}

// Blocks of the fused attention kernel change at 192 and 768 tokens.
TEST(MemoryTrace, IsTheTrainersForLongRows) {
  for (const int64_t tokens : {176, 192, 520, 768}) {
    SyntheticTrial trial = Small();
    trial.hidden_dropout = trial.attention_dropout = 0.0;
    trial.layers = 1;
    trial.positions = 1000;
    trial.max_length = 1000;
    trial.batch_size = trial.micro_batch = 2;
    trial.labels = 2;
    trial.train_lengths = {tokens, tokens};
    trial.validation_lengths = {tokens};
    ExpectSameEvents(trial);
  }
}

// Parameters large enough for states of 8 bits, and a table of more rows than are squared at once.
TEST(MemoryTrace, IsTheTrainersWithEveryOptimizer) {
  for (const char* optimizer : {"adamw_8bit", "adafactor", "sgd"}) {
    SyntheticTrial trial = Small();
    trial.hidden = 72;
    trial.vocabulary = 4001;
    trial.micro_batch = 4;
    trial.head_sizes = {70};
    trial.params = {{"train.optimizer", std::string(optimizer)}};
    ExpectSameEvents(trial);
  }
  SyntheticTrial trial = Small();
  trial.params = {{"train.optimizer", std::string("sgd")}, {"train.momentum", 0.0}};
  ExpectSameEvents(trial);
}

// The families that have BERT's layers, under heads of their own.
TEST(MemoryTrace, IsTheTrainersForEveryFamilyOfBertsKind) {
  for (const char* family : {"roberta", "xlm-roberta", "electra", "distilbert"}) {
    for (const double dropout : {0.0, 0.1}) {
      SyntheticTrial trial = Small();
      trial.family = family;
      trial.hidden_dropout = trial.attention_dropout = dropout;
      trial.micro_batch = 3;
      if (trial.family == "electra") trial.more_config = {{"embedding_size", 16}};
      ExpectSameEvents(trial);
      trial.head_sizes = {33};
      ExpectSameEvents(trial);
    }
  }
}

// DeBERTa's options, with few positions to a bucket and texts longer than the table.
TEST(MemoryTrace, IsTheTrainersForDeberta) {
  const nlohmann::json v3 = {{"relative_attention", true},    {"position_buckets", 12},
                             {"max_relative_positions", -1},  {"norm_rel_ebd", "layer_norm"},
                             {"share_att_key", true},         {"pos_att_type", "p2c|c2p"},
                             {"position_biased_input", false}};
  nlohmann::json v2 = v3;
  v2.update({{"conv_kernel_size", 3}, {"conv_act", "gelu"}, {"embedding_size", 16}});
  nlohmann::json own = v3;
  own.update({{"share_att_key", false}, {"norm_rel_ebd", "none"}, {"position_biased_input", true}});
  nlohmann::json one_term = v3;
  one_term.update({{"pos_att_type", "c2p"}, {"position_buckets", -1}});
  nlohmann::json no_term = v3;  // its positions get no gradient
  no_term["pos_att_type"] = "";
  nlohmann::json absolute = v3;
  absolute.update({{"relative_attention", false}, {"position_biased_input", true}});
  for (const nlohmann::json& config : {v3, v2, own, one_term, no_term, absolute}) {
    for (const double dropout : {0.0, 0.1}) {
      SyntheticTrial trial = Small();
      trial.family = "deberta-v2";
      trial.token_types = config == own ? 2 : 0;
      trial.more_config = config;
      trial.hidden_dropout = trial.attention_dropout = dropout;
      for (const int64_t rows : {3, 1}) {
        trial.micro_batch = rows;
        SCOPED_TRACE(config.dump());
        ExpectSameEvents(trial);
      }
      trial.heads = 1;
      ExpectSameEvents(trial);
    }
  }
}

// One row and one head are views where others are copies; keys are repeated for several queries.
using RowsHeadsKeys = std::tuple<int64_t, int64_t, int64_t>;

void ExpectSameEventsOfDecoders(const char* precision, const std::vector<RowsHeadsKeys>& shapes) {
  for (const char* family : {"gpt2", "llama", "qwen2"}) {
    for (const double dropout : {0.0, 0.1}) {
      for (const auto& [rows, heads, keys] : shapes) {
        SyntheticTrial trial = Small();
        trial.family = family;
        trial.hidden_dropout = trial.attention_dropout = dropout;
        trial.micro_batch = rows;
        trial.heads = heads;
        trial.more_config = {{"num_key_value_heads", keys}};
        trial.params = {{"train.precision", std::string(precision)}};
        SCOPED_TRACE(trial.more_config.dump());
        ExpectSameEvents(trial);
      }
    }
  }
}

TEST(MemoryTrace, IsTheTrainersForDecoders) {
  ExpectSameEventsOfDecoders("fp32", {{3, 2, 2}, {3, 4, 2}, {3, 3, 1}, {1, 4, 2}, {7, 1, 1}});
}

// Rotated queries and keys are float32 until attention casts them. Not one row by one: those
// gradients are beyond float16, and the trainer skips the step.
TEST(MemoryTrace, IsTheTrainersForDecodersInFloat16) {
  ExpectSameEventsOfDecoders("fp16", {{3, 2, 2}, {3, 4, 2}, {3, 3, 1}, {7, 1, 1}});
}

// Segments of one layer, of two with a shorter last one, of all; attention fused and written out.
TEST(MemoryTrace, IsTheTrainersWithLayersComputedAgain) {
  for (const double dropout : {0.0, 0.1}) {
    for (const int64_t every : {1, 2, 5}) {
      SyntheticTrial trial = Small();
      trial.hidden_dropout = trial.attention_dropout = dropout;
      trial.layers = 3;
      trial.micro_batch = 3;
      trial.params = {{"memory.checkpoint_every", every}};
      ExpectSameEvents(trial);
    }
  }
}

SyntheticTrial In16Bits(const char* precision, double dropout, int64_t every) {
  SyntheticTrial trial = Small();
  trial.hidden_dropout = trial.attention_dropout = dropout;
  trial.layers = 3;
  trial.micro_batch = 4;
  trial.head_sizes = {33};
  trial.params = {{"train.precision", std::string(precision)}, {"memory.checkpoint_every", every}};
  return trial;
}

TEST(MemoryTrace, IsTheTrainersInFloat16) {
  for (const double dropout : {0.0, 0.1}) {
    for (const int64_t every : {0, 2}) {
      SyntheticTrial trial = In16Bits("fp16", dropout, every);
      ExpectSameEvents(trial);
      // Its layers' inputs have 16 bits too.
      trial.family = "electra";
      trial.more_config = {{"embedding_size", 16}};
      ExpectSameEvents(trial);
    }
  }
}

// As float16, but for scratch of oneDNN's products, which is bounded.
TEST(MemoryTrace, BoundsTheTrainersInBfloat16) {
  if (!TestDevice().device.is_cpu()) GTEST_SKIP() << "given passes are replayed for a CPU alone";
  for (const double dropout : {0.0, 0.1}) {
    for (const int64_t every : {0, 2}) {
      const SyntheticTrial trial = In16Bits("bf16", dropout, every);
      SCOPED_TRACE(Describe(trial));
      const SyntheticFolder folder(trial, testing::TempDir());
      const auto described = DescribeJob(folder.Job(), /*threads=*/1);
      ASSERT_TRUE(described.ok()) << described.status();
      const auto predicted =
          memory::ReplayMemory(described->input, described->plan, described->passes);
      ASSERT_TRUE(predicted.ok()) << predicted.status();
      RecordingEvents events;
      const OutcomeMessage outcome = RunTrial(folder.Job(), TestDevice(), events, events);
      const Bytes counted = outcome.memory.live_peak - outcome.memory.baseline;
      EXPECT_LE(counted, predicted->live_peak);
      EXPECT_LE(predicted->live_peak - counted, MiB(2));
      const auto bound = memory::EstimateMemory(described->input, described->plan);
      EXPECT_LE(predicted->live_peak, bound->live_peak);
    }
  }
}

// Families whose layers share what gradients flow through, or have a bias of their own.
TEST(MemoryTrace, IsTheTrainersWithOtherFamiliesLayersComputedAgain) {
  for (const char* family : {"roberta", "deberta-v2", "gpt2", "qwen2"}) {
    for (const double dropout : {0.0, 0.1}) {
      SyntheticTrial trial = Small();
      trial.family = family;
      trial.layers = 3;
      trial.hidden_dropout = trial.attention_dropout = dropout;
      trial.micro_batch = 3;
      if (trial.family == "deberta-v2") {
        trial.more_config = {{"relative_attention", true},   {"position_buckets", 12},
                             {"norm_rel_ebd", "layer_norm"}, {"share_att_key", true},
                             {"pos_att_type", "p2c|c2p"},    {"position_biased_input", false}};
        trial.token_types = 0;
      }
      trial.params = {{"memory.checkpoint_every", int64_t{2}}};
      SCOPED_TRACE(family);
      ExpectSameEvents(trial);
    }
  }
}

nlohmann::json Deberta() {
  return {{"relative_attention", true},    {"position_buckets", 12}, {"max_relative_positions", -1},
          {"norm_rel_ebd", "layer_norm"},  {"share_att_key", true},  {"pos_att_type", "p2c|c2p"},
          {"position_biased_input", false}};
}

// Embeddings alone, some layers, everything under the head; what backward no longer passes keeps
// nothing.
TEST(MemoryTrace, IsTheTrainersWithFrozenParameters) {
  for (const char* family : {"bert", "electra", "deberta-v2", "gpt2", "qwen2"}) {
    for (const double dropout : {0.0, 0.1}) {
      for (const auto& [embeddings, layers] :
           {std::pair(true, 0), std::pair(false, 2), std::pair(true, 1), std::pair(true, 3)}) {
        SyntheticTrial trial = Small();
        trial.family = family;
        trial.layers = 3;
        trial.hidden_dropout = trial.attention_dropout = dropout;
        trial.micro_batch = 3;
        trial.params = {{"model.freeze_embeddings", embeddings},
                        {"model.freeze_layers", int64_t{layers}}};
        if (trial.family == "electra") trial.more_config = {{"embedding_size", 16}};
        if (trial.family == "deberta-v2") {
          trial.more_config = Deberta();
          trial.more_config["conv_kernel_size"] = 3;
          trial.token_types = 0;
        }
        SCOPED_TRACE(absl::StrCat(family, ", embeddings ", embeddings, ", layers ", layers));
        ExpectSameEvents(trial);
        trial.params["memory.checkpoint_every"] = int64_t{2};
        ExpectSameEvents(trial);
      }
    }
  }
}

// Adapters on some layers and on all, with and without dropout of their own; the lowest layers'
// inputs need no gradients.
TEST(MemoryTrace, IsTheTrainersWithAdapters) {
  for (const char* family : {"bert", "roberta", "deberta-v2", "gpt2", "qwen2"}) {
    for (const double dropout : {0.0, 0.1}) {
      for (const char* targets : {"", "all-linear"}) {
        SyntheticTrial trial = Small();
        trial.family = family;
        trial.hidden_dropout = trial.attention_dropout = dropout;
        trial.micro_batch = 3;
        trial.params = {{"lora.rank", int64_t{4}},
                        {"lora.dropout", 0.1 - dropout},
                        {"lora.targets", std::string(targets)}};
        if (trial.family == "deberta-v2") {
          trial.more_config = Deberta();
          trial.token_types = 0;
        }
        if (trial.family == "qwen2") trial.more_config = {{"num_key_value_heads", 1}};
        SCOPED_TRACE(absl::StrCat(family, ", targets '", targets, "'"));
        ExpectSameEvents(trial);
        trial.params["memory.checkpoint_every"] = int64_t{1};
        ExpectSameEvents(trial);
      }
    }
  }
}

TEST(MemoryTrace, IsTheTrainersWithAdaptersOfOneLayerInFloat16) {
  for (const char* target : {"layer.1.attention.self.key", "layer.2.output.dense"}) {
    SyntheticTrial trial = In16Bits("fp16", 0.1, 0);
    trial.params["lora.rank"] = int64_t{4};
    trial.params["lora.targets"] = std::string(target);
    ExpectSameEvents(trial);
  }
}

// Weights made again from fewer bits, forward and backward; widths that are no whole blocks.
TEST(MemoryTrace, IsTheTrainersWithAdaptersOnAStoredBase) {
  for (const char* family : {"bert", "electra", "deberta-v2", "gpt2", "qwen2"}) {
    for (const char* base : {"bf16", "nf4"}) {
      for (const double dropout : {0.0, 0.1}) {
        SyntheticTrial trial = Small();
        trial.family = family;
        trial.hidden_dropout = trial.attention_dropout = dropout;
        trial.micro_batch = 3;
        trial.params = {{"lora.rank", int64_t{4}}, {"lora.base", std::string(base)}};
        if (trial.family == "electra") trial.more_config = {{"embedding_size", 16}};
        if (trial.family == "deberta-v2") {
          trial.more_config = Deberta();
          trial.token_types = 0;
        }
        SCOPED_TRACE(absl::StrCat(family, " on ", base));
        ExpectSameEvents(trial);
        trial.params["lora.targets"] = std::string("all-linear");
        trial.params["memory.checkpoint_every"] = int64_t{1};
        ExpectSameEvents(trial);
        if (trial.family != "bert" && trial.family != "deberta-v2") continue;
        trial.params["train.precision"] = std::string("fp16");
        ExpectSameEvents(trial);
      }
    }
  }
}

// On a CPU oneDNN's products take scratch. Where a card has no fused attention in bfloat16 (T4), it
// is written out.
TEST(MemoryTrace, IsTheTrainersInBfloat16OnACard) {
  if (TestDevice().device.is_cpu()) GTEST_SKIP() << "needs a card: HPO_TEST_DEVICE=cuda:0";
  for (const char* family : {"bert", "roberta", "deberta-v2", "gpt2", "qwen2"}) {
    for (const double dropout : {0.0, 0.1}) {
      for (const int64_t every : {0, 2}) {
        SyntheticTrial trial = In16Bits("bf16", dropout, every);
        trial.family = family;
        if (trial.family == "deberta-v2") {
          trial.more_config = Deberta();
          trial.token_types = 0;
        }
        if (trial.family == "qwen2") trial.more_config = {{"num_key_value_heads", 1}};
        SCOPED_TRACE(family);
        ExpectSameEvents(trial);
        trial.params["lora.rank"] = int64_t{4};
        trial.params["lora.base"] = std::string("nf4");
        ExpectSameEvents(trial);
      }
    }
  }
}

// Rows of several lengths, some of them alike, without padding.
SyntheticTrial Unpadded(const char* family, double dropout) {
  SyntheticTrial trial = Small();
  trial.family = family;
  trial.hidden_dropout = trial.attention_dropout = dropout;
  trial.train_lengths = {30, 21, 30, 17, 9, 17, 17};
  trial.validation_lengths = {40, 7, 40, 33, 12, 12, 12, 5};
  trial.params = {{"memory.unpadded", true}};
  if (trial.family == "electra") trial.more_config = {{"embedding_size", 16}};
  return trial;
}

TEST(MemoryTrace, IsTheTrainersWithoutPadding) {
  for (const char* family : {"bert", "roberta", "xlm-roberta", "electra", "distilbert"}) {
    for (const double dropout : {0.0, 0.1}) {
      SyntheticTrial trial = Unpadded(family, dropout);
      ExpectSameEvents(trial);
      trial.micro_batch = 3;
      ExpectSameEvents(trial);
    }
  }
}

// What is a copy elsewhere is a view; one group; every row by itself.
TEST(MemoryTrace, IsTheTrainersWithoutPaddingOfOneRowOrOneHeadOrOneLength) {
  for (const double dropout : {0.0, 0.1}) {
    for (const int64_t heads : {1, 3}) {
      for (const int64_t rows : {1, 2, 7}) {
        SyntheticTrial trial = Unpadded("bert", dropout);
        trial.heads = heads;
        trial.micro_batch = rows;
        ExpectSameEvents(trial);
      }
      SyntheticTrial alike = Unpadded("bert", dropout);
      alike.heads = heads;
      alike.train_lengths = {17, 17, 17, 17, 17, 17, 17};
      ExpectSameEvents(alike);
    }
  }
}

TEST(MemoryTrace, IsTheTrainersWithoutPaddingOverRealLengths) {
  for (const double dropout : {0.0, 0.1}) {
    SyntheticTrial trial = Unpadded("bert", dropout);
    trial.batch_size = 4;
    trial.micro_batch = 2;
    trial.eval_batch_multiplier = 2;
    trial.epochs = 2;
    trial.train_lengths = {3, 60, 17, 33, 45, 20, 9, 51, 64, 12};
    trial.validation_lengths = {5, 70, 23, 41, 38};
    trial.max_length = 50;
    ExpectSameEvents(trial);
  }
}

TEST(MemoryTrace, IsTheTrainersWithoutPaddingUnderEveryTask) {
  for (const char* kind : {"labels", "several labels", "numbers"}) {
    SyntheticTrial trial = Unpadded("bert", 0.1);
    trial.head_sizes = {33};
    trial.multi_label = std::string(kind) == "several labels";
    if (std::string(kind) == "numbers") trial.task = "text-regression";
    SCOPED_TRACE(kind);
    ExpectSameEvents(trial);
  }
}

// Counted: what the real batches say, and no more than the lengths alone do.
TEST(MemoryTrace, PredictsTheTrainersPeakWithoutPadding) {
  if (!TestDevice().device.is_cpu()) GTEST_SKIP() << "given passes are replayed for a CPU alone";
  for (const double dropout : {0.0, 0.1}) {
    SyntheticTrial trial = Unpadded("bert", dropout);
    trial.batch_size = 6;
    trial.micro_batch = 2;
    trial.epochs = 2;
    trial.train_lengths = {3, 60, 17, 33, 45, 20, 9, 51, 64, 12, 30, 30, 8};
    const SyntheticFolder folder(trial, testing::TempDir());
    const auto described = DescribeJob(folder.Job(), /*threads=*/1);
    ASSERT_TRUE(described.ok()) << described.status();
    RecordingEvents events;
    const OutcomeMessage outcome = RunTrial(folder.Job(), TestDevice(), events, events);
    const Bytes counted = outcome.memory.live_peak - outcome.memory.baseline;
    const auto exact = memory::ReplayMemory(described->input, described->plan, described->passes);
    const auto by_lengths = memory::ReplayMemory(described->input, described->plan);
    ASSERT_TRUE(exact.ok() && by_lengths.ok()) << exact.status() << by_lengths.status();
    EXPECT_EQ(exact->live_peak, counted);
    EXPECT_GE(by_lengths->live_peak, counted);
    EXPECT_LE(by_lengths->live_peak - counted, KiB(4));
  }
}

// With the techniques that change what backward passes and keeps.
TEST(MemoryTrace, IsTheTrainersWithoutPaddingBesideOtherTechniques) {
  const ParamMap techniques[] = {
      {{"memory.checkpoint_every", int64_t{2}}},
      {{"train.precision", std::string("fp16")}},
      {{"train.precision", std::string("fp16")}, {"memory.checkpoint_every", int64_t{1}}},
      {{"model.freeze_embeddings", true}, {"model.freeze_layers", int64_t{1}}},
      {{"lora.rank", int64_t{4}}},
      {{"lora.rank", int64_t{4}},
       {"lora.dropout", 0.1},
       {"lora.targets", std::string("all-linear")}},
      {{"lora.rank", int64_t{4}}, {"lora.base", std::string("nf4")}},
      {{"lora.rank", int64_t{4}}, {"memory.checkpoint_every", int64_t{1}}},
      {{"lora.rank", int64_t{4}},
       {"lora.base", std::string("bf16")},
       {"train.precision", std::string("fp16")}},
  };
  for (const char* family : {"bert", "roberta", "electra"}) {
    for (const double dropout : {0.0, 0.1}) {
      for (const ParamMap& params : techniques) {
        SyntheticTrial trial = Unpadded(family, dropout);
        trial.layers = 3;
        trial.micro_batch = 4;
        trial.params.insert(params.begin(), params.end());
        SCOPED_TRACE(FormatParams(params));
        ExpectSameEvents(trial);
      }
    }
  }
}

// Weights from a file, gradients scaled, the best weights written.
TEST(MemoryTrace, IsTheTrainersFromLoadingToSaving) {
  const TinyTrial tiny;
  ExpectSameEvents(tiny.Job(), /*scales_gradients=*/true);
}

}  // namespace
}  // namespace hpo::trainer
