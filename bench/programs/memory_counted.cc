// Runs the trainer on random configurations on a CPU, and compares what its counting allocator
// counted with what memory's model said before; then runs configurations under limits around the
// predicted need. bench/memory_counted starts it and says which goals are met.
#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/log.h"
#include "common/base/random.h"
#include "common/command_line/exit_status.h"
#include "common/models/model_modules.h"
#include "memory/need/memory_replay.h"
#include "nlohmann/json.hpp"
#include "tests/worker/trainer/synthetic_trial.h"
#include "worker/trainer/device/trial_device.h"
#include "worker/trainer/program/run_trial.h"

namespace hpo {
namespace {

constexpr Bytes kBlock{512};

struct Arguments {
  uint64_t seed = 1;
  int configurations = 240;
  int ladder_configurations = 50;
  int ladder_limits = 20;
  int threads = 1;
  std::string folder;
  bool verbose = false;
};

// ---- Random configurations ---------------------------------------------------------------------

class Draw {
 public:
  Draw(uint64_t seed, uint64_t stream) : rng_(seed, stream) {}
  int64_t Between(int64_t least, int64_t most) {
    return least + static_cast<int64_t>(rng_.Below(static_cast<uint64_t>(most - least + 1)));
  }
  // Small numbers as likely as large ones.
  int64_t LogBetween(int64_t least, int64_t most) {
    const double low = std::log(static_cast<double>(least));
    const double high = std::log(static_cast<double>(most) + 1.0);
    const double value = std::exp(low + (high - low) * rng_.Uniform());
    return std::clamp(static_cast<int64_t>(value), least, most);
  }
  bool Chance(double probability) { return rng_.Uniform() < probability; }
  template <typename T>
  T OneOf(const std::vector<T>& values) {
    return values[static_cast<size_t>(Between(0, static_cast<int64_t>(values.size()) - 1))];
  }
  double Dropout() { return Chance(0.35) ? 0.0 : 0.05 + 0.4 * rng_.Uniform(); }
  std::vector<int64_t> Lengths(int64_t rows, int64_t longest) {
    std::vector<int64_t> lengths;
    for (int64_t i = 0; i < rows; ++i) lengths.push_back(Between(3, longest));
    return lengths;
  }

 private:
  Rng rng_;
};

bool IsDecoderTrial(const trainer::SyntheticTrial& trial) {
  return IsDecoder(*ModelFamilyOf(trial.family));
}

void DrawFamilyAndTask(Draw& draw, trainer::SyntheticTrial& trial) {
  trial.family = draw.OneOf<const char*>({"bert", "roberta", "xlm-roberta", "electra", "distilbert",
                                          "deberta-v2", "gpt2", "llama", "qwen2"});
  if (IsDecoderTrial(trial)) {
    if (draw.Chance(0.6)) trial.task = "language-modeling";
    trial.more_config["tie_word_embeddings"] = draw.Chance(0.5);
  } else if (draw.Chance(0.15)) {
    trial.task = draw.OneOf<const char*>({"multi-query", "multi-query-spans"});
  }
  if (trial.task == "text-classification" && draw.Chance(0.2)) trial.task = "text-regression";
}

// A family's own sizes; `trial` has the common ones.
void DrawShape(Draw& draw, trainer::SyntheticTrial& trial) {
  if (trial.family == "electra") {
    trial.more_config["embedding_size"] =
        draw.Chance(0.5) ? trial.hidden : 4 * draw.LogBetween(1, 20);
  }
  if (trial.family == "llama" || trial.family == "qwen2") {
    std::vector<int64_t> divisors;
    for (int64_t keys = 1; keys <= trial.heads; ++keys) {
      if (trial.heads % keys == 0) divisors.push_back(keys);
    }
    trial.more_config["num_key_value_heads"] = draw.OneOf(divisors);
  }
  if (trial.family != "deberta-v2") return;
  const bool relative = draw.Chance(0.8);
  trial.more_config.update(
      {{"relative_attention", relative},
       {"position_biased_input", !relative || draw.Chance(0.3)},
       {"position_buckets", draw.Chance(0.5) ? draw.LogBetween(4, 64) : -1},
       {"share_att_key", draw.Chance(0.7)},
       {"norm_rel_ebd", draw.Chance(0.5) ? "layer_norm" : "none"},
       {"pos_att_type", relative ? draw.OneOf<const char*>({"p2c|c2p", "c2p", "p2c"}) : ""},
       {"conv_kernel_size", draw.Chance(0.3) ? 3 : 0}});
}

// Of those that a part of the model may be trained by: adapters, or what is not frozen.
void DrawTrainedParts(Draw& draw, trainer::SyntheticTrial& trial) {
  if (draw.Chance(0.25)) {
    trial.params["lora.rank"] = draw.LogBetween(1, 16);
    trial.params["lora.dropout"] = draw.Dropout();
    trial.params["lora.base"] = std::string(draw.OneOf<const char*>({"fp32", "bf16", "nf4"}));
    // Peft has no targets for DistilBERT.
    const bool names = trial.family == "distilbert" || draw.Chance(0.5);
    if (names) trial.params["lora.targets"] = std::string("all-linear");
  } else if (draw.Chance(0.2)) {
    trial.params["model.freeze_embeddings"] = true;
    trial.params["model.freeze_layers"] = draw.Between(0, trial.layers);
  }
}

// Not bfloat16: oneDNN's scratch for it on a CPU is bounded, not counted.
void DrawTechniques(Draw& draw, trainer::SyntheticTrial& trial) {
  DrawTrainedParts(draw, trial);
  if (draw.Chance(0.2)) trial.params["train.precision"] = std::string("fp16");
  trial.params["train.optimizer"] =
      std::string(draw.OneOf<const char*>({"adamw", "adamw", "adamw_8bit", "adafactor", "sgd"}));
  if (draw.Chance(0.25)) trial.params["memory.checkpoint_every"] = draw.Between(1, 3);
  const bool of_rows = trial.task == "text-classification" || trial.task == "text-regression";
  const bool packs = of_rows && !IsDecoderTrial(trial) && trial.family != "deberta-v2";
  if (packs && draw.Chance(0.25)) trial.params["memory.unpadded"] = true;
  if (trial.task == "text-classification" && draw.Chance(0.2)) {
    trial.params["train.label_smoothing"] = 0.1;
  }
  if (trial.task == "language-modeling" && draw.Chance(0.5)) {
    trial.params["memory.loss_rows"] = draw.LogBetween(1, 500);
  }
  if (absl::StartsWith(trial.task, "multi-query")) {
    trial.params["aspects.padding"] =
        std::string(draw.OneOf<const char*>({"none", "batch", "corpus"}));
    if (draw.Chance(0.5)) trial.params["aspects.at_once"] = draw.Between(1, 6);
  }
}

trainer::SyntheticTrial RandomTrial(uint64_t seed, uint64_t stream) {
  Draw draw(seed, stream);
  trainer::SyntheticTrial trial;
  DrawFamilyAndTask(draw, trial);
  trial.heads = draw.Between(1, 8);
  trial.hidden = trial.heads * 4 * draw.LogBetween(1, 10);
  trial.intermediate = draw.LogBetween(16, 5 * trial.hidden);
  trial.layers = draw.Between(1, 5);
  trial.vocabulary = draw.LogBetween(30, 20000);
  trial.positions = draw.LogBetween(32, 1000);
  trial.token_types = draw.Between(1, 4);
  trial.hidden_dropout = draw.Dropout();
  trial.attention_dropout = draw.Dropout();
  if (draw.Chance(0.5)) trial.head_dropout = draw.Dropout();
  if (trial.task != "language-modeling") {
    for (int64_t i = draw.Between(0, 3); i > 0; --i) {
      trial.head_sizes.push_back(draw.LogBetween(2, 500));
    }
  }
  trial.multi_label = trial.task == "text-classification" && draw.Chance(0.3);
  trial.batch_size = draw.LogBetween(1, 16);
  trial.grad_accum = draw.LogBetween(1, 4);
  trial.micro_batch = draw.Between(1, trial.batch_size);
  trial.eval_batch_multiplier = draw.LogBetween(1, 8);
  trial.max_length = draw.LogBetween(16, 320);
  const int64_t rows =
      std::max<int64_t>(2, draw.Between(trial.batch_size, 2 * trial.batch_size * trial.grad_accum));
  const int64_t longest = draw.LogBetween(3, std::min<int64_t>(400, 2 * trial.max_length));
  trial.train_lengths = draw.Lengths(rows, longest);
  trial.validation_lengths = draw.Lengths(draw.LogBetween(1, 40), longest);
  trial.labels = draw.Between(trial.multi_label ? 1 : 2, trial.multi_label ? 40 : rows);
  trial.epochs = draw.Between(1, 2);
  trial.seed = static_cast<uint64_t>(draw.Between(1, 1000));
  DrawShape(draw, trial);
  DrawTechniques(draw, trial);
  return trial;
}

// ---- Runs --------------------------------------------------------------------------------------

class Bench {
 public:
  explicit Bench(Arguments arguments, trainer::TrialDevice device)
      : arguments_(std::move(arguments)), device_(std::move(device)) {}

  absl::StatusOr<nlohmann::json> Run() {
    for (int i = 0; i < arguments_.configurations; ++i) {
      const absl::Status compared = Compare(RandomTrial(arguments_.seed, static_cast<uint64_t>(i)));
      if (!compared.ok()) return compared;
    }
    for (int i = 0; i < arguments_.ladder_configurations; ++i) {
      // Not the configurations above.
      const uint64_t stream = (uint64_t{1} << 32) + static_cast<uint64_t>(i);
      const absl::Status climbed = Climb(RandomTrial(arguments_.seed, stream));
      if (!climbed.ok()) return climbed;
    }
    return nlohmann::json{{"configurations", num_compared_},
                          {"exact", num_exact_},
                          {"exact_to_the_byte", num_exact_bytes_},
                          {"worst_error", worst_error_},
                          {"estimate_below", num_bound_below_},
                          {"estimate_worst_excess", worst_excess_},
                          {"ladder_runs", num_rungs_},
                          {"ladder_right", num_right_}};
  }

 private:
  struct NoEvents final : public EventSink, public StopSource {
    void Send(const UpMessage&) override {}
    std::optional<StopRequest> Poll() override { return std::nullopt; }
  };

  OutcomeMessage RunJob(const TrainerJob& job) {
    NoEvents events;
    return trainer::RunTrial(job, device_, events, events);
  }

  absl::StatusOr<memory::MemoryEstimate> Predict(const TrainerJob& job,
                                                 trainer::JobDescription& description) {
    auto described = trainer::DescribeJob(job, arguments_.threads);
    if (!described.ok()) return described.status();
    description = *std::move(described);
    return memory::ReplayMemory(description.input, description.plan, description.passes);
  }

  absl::Status Compare(const trainer::SyntheticTrial& trial) {
    const trainer::SyntheticFolder folder(trial, arguments_.folder);
    const TrainerJob job = folder.Job();
    trainer::JobDescription description;
    const auto predicted = Predict(job, description);
    if (!predicted.ok()) return predicted.status();
    const auto bound = memory::EstimateMemory(description.input, description.plan);
    if (!bound.ok()) return bound.status();
    const OutcomeMessage outcome = RunJob(job);
    if (!outcome.outcome.has_value() || !std::holds_alternative<Completed>(*outcome.outcome)) {
      return absl::InternalError(absl::StrCat("expected a completed trial, got ",
                                              OutcomeToJson(*outcome.outcome).dump(), " for ",
                                              trainer::Describe(trial)));
    }
    const Bytes counted = outcome.memory.live_peak - outcome.memory.baseline;
    Note(trial, predicted->live_peak, bound->live_peak, counted);
    return absl::OkStatus();
  }

  void Note(const trainer::SyntheticTrial& trial, Bytes predicted, Bytes bound, Bytes counted) {
    const auto error = [counted](Bytes said) {
      return static_cast<double>((said - counted).count) / static_cast<double>(counted.count);
    };
    ++num_compared_;
    num_exact_bytes_ += predicted == counted;
    const bool exact = RoundUp(predicted, kBlock) == RoundUp(counted, kBlock);
    num_exact_ += exact;
    worst_error_ = std::max(worst_error_, std::abs(error(predicted)));
    num_bound_below_ += bound < counted;
    worst_excess_ = std::max(worst_excess_, error(bound));
    if (arguments_.verbose || !exact) {
      std::printf("predicted %lld, counted %lld, estimate %+.2f %%: %s\n",
                  static_cast<long long>(predicted.count), static_cast<long long>(counted.count),
                  100.0 * error(bound),
                  absl::StrCat(trainer::Describe(trial), " ", trial.more_config.dump(), " ",
                               FormatParams(trial.params))
                      .c_str());
    }
  }

  // Limits from 0.9 to 1.1 of the predicted need, the need itself and one unit less among them.
  std::vector<Bytes> Rungs(Bytes need) const {
    std::vector<Bytes> limits = {need, need - CountedUnit()};
    const int spread = arguments_.ladder_limits - static_cast<int>(limits.size());
    for (int i = 0; i < spread; ++i) {
      const double factor = 0.9 + 0.2 * i / std::max(1, spread - 1);
      limits.push_back(Bytes{static_cast<int64_t>(factor * static_cast<double>(need.count))});
    }
    return limits;
  }

  static Bytes CountedUnit() { return Bytes{memory::KernelTraits::Cpu().granularity}; }

  // Under policy strict, which runs the batch as it is or not at all.
  absl::Status Climb(trainer::SyntheticTrial trial) {
    trial.micro_batch = trial.batch_size;
    const trainer::SyntheticFolder folder(trial, arguments_.folder);
    TrainerJob job = folder.Job();
    job.task.memory.policy = MemoryPolicy::kStrict;
    trainer::JobDescription description;
    const auto predicted = Predict(job, description);
    if (!predicted.ok()) return predicted.status();
    const Bytes need = predicted->needed_limit + device_.baseline;
    for (const Bytes limit : Rungs(need)) {
      job.task.limit = limit;
      const OutcomeMessage outcome = RunJob(job);
      const bool ran =
          outcome.outcome.has_value() && std::holds_alternative<Completed>(*outcome.outcome);
      const bool refused =
          outcome.outcome.has_value() && std::holds_alternative<OutOfMemory>(*outcome.outcome);
      if (!ran && !refused) {
        return absl::InternalError(absl::StrCat("expected a run or an out-of-memory, got ",
                                                OutcomeToJson(*outcome.outcome).dump()));
      }
      const bool right = ran == (limit >= need) && outcome.clean;
      ++num_rungs_;
      num_right_ += right;
      if (!right) {
        std::printf("limit %lld of a predicted need of %lld: %s: %s\n",
                    static_cast<long long>(limit.count), static_cast<long long>(need.count),
                    ran ? "ran" : "out of memory", trainer::Describe(trial).c_str());
      }
    }
    return absl::OkStatus();
  }

  Arguments arguments_;
  trainer::TrialDevice device_;
  int num_compared_ = 0;
  int num_exact_ = 0;
  int num_exact_bytes_ = 0;
  double worst_error_ = 0.0;
  int num_bound_below_ = 0;
  double worst_excess_ = 0.0;
  int num_rungs_ = 0;
  int num_right_ = 0;
};

int RunProgram(const Arguments& arguments) {
  at::set_num_threads(arguments.threads);
  at::set_num_interop_threads(1);
  absl::Status status = InitLog("off", /*json=*/false);
  absl::StatusOr<trainer::TrialDevice> device = trainer::OpenTrialDevice("cpu");
  if (status.ok()) status = device.status();
  if (status.ok()) {
    const auto result = Bench(arguments, *std::move(device)).Run();
    if (result.ok()) {
      std::printf("%s\n", result->dump().c_str());
      return kExitOk;
    }
    status = result.status();
  }
  std::fprintf(stderr, "memory_counted: %s\n", std::string(status.message()).c_str());
  return kExitFailure;
}

}  // namespace
}  // namespace hpo

int main(int argc, char** argv) {
  hpo::Arguments arguments;
  arguments.folder = std::filesystem::temp_directory_path().string();
  CLI::App app("Predicted against counted memory of random configurations, on a CPU");
  app.add_option("--seed", arguments.seed, "of the configurations");
  app.add_option("--configurations", arguments.configurations, "to compare");
  app.add_option("--ladder-configurations", arguments.ladder_configurations, "to run under limits");
  app.add_option("--ladder-limits", arguments.ladder_limits, "of each")->check(CLI::Range(3, 1000));
  app.add_option("--threads", arguments.threads, "of torch")->check(CLI::Range(1, 1024));
  app.add_option("--folder", arguments.folder, "for the trials' files");
  app.add_flag("--verbose", arguments.verbose, "a line for every configuration");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? hpo::kExitOk : hpo::kExitUsage;
  }
  return hpo::RunProgram(arguments);
}
