#include "worker/trainer/data/training_options.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/spelling.h"
#include "common/base/status.h"
#include "common/space/describe_param.h"

namespace hpo::trainer {
namespace {

struct ParameterLine {
  const char* name;
  const char* fallback;
  const char* meaning;
};

constexpr ParameterLine kParameters[] = {
    {"aspects.at_once", "0", "queries that run together (multi-query); 0: all of a micro-batch"},
    {"aspects.max", "0", "texts of more aspects are not trained on (multi-query); 0: all are"},
    {"aspects.padding", "none", "queries a text is given: none, batch or corpus (multi-query)"},
    {"data.subset", "1",
     "share of the training rows to use, the same of each label; of the texts (multi-query)"},
    {"head.dropout", "the model's", "dropout before and inside the classification head"},
    {"head.layers", "0", "hidden layers of the head, 0 to 3"},
    {"head.size_1", "-", "width of the head's first hidden layer"},
    {"head.size_2", "-", "width of the second"},
    {"head.size_3", "-", "width of the third"},
    {"lora.alpha", "16", "adapters' output is multiplied by alpha / rank"},
    {"lora.base", "fp32", "fp32, bf16 or nf4: how the frozen model below adapters is stored"},
    {"lora.dropout", "0", "dropout before an adapter"},
    {"lora.rank", "0",
     "rank of LoRA adapters on a frozen model; 0: no adapters, all weights train"},
    {"lora.targets", "the family's",
     "ends of linear layers' names, separated by commas, or all-linear"},
    {"memory.checkpoint_every", "0",
     "gradient checkpointing: layers computed again at a time; 0: off"},
    {"memory.clear_cache_every", "0", "steps between releases of the allocator's cache; 0: never"},
    {"memory.loss_rows", "by vocabulary",
     "tokens whose logits are in memory at a time (language modelling)"},
    {"memory.unpadded", "false",
     "pack batches, so that models run on tokens alone, without padding"},
    {"model.dropout", "config.json's", "dropout of hidden states and attention"},
    {"model.freeze_embeddings", "false", "whether embeddings are not trained"},
    {"model.freeze_layers", "0", "number of lowest layers that are not trained"},
    {"model.name", "-", "chooses the model folder (read by the worker)"},
    {"seed", "the study's", "random seed of batches, initial weights and dropout"},
    {"tok.max_length", "128", "longest text in tokens; longer ones are truncated"},
    {"train.batch_size", "8", "rows of a batch; times grad_accum it is the effective batch"},
    {"train.beta1", "0.9", "AdamW's decay of the first moment"},
    {"train.beta2", "0.999", "AdamW's decay of the second moment"},
    {"train.class_weights", "none", "none, balanced, or by label: \"no=1, yes=2.5\""},
    {"train.early_stopping", "0", "measurements without improvement that end the trial; 0: off"},
    {"train.eps", "1e-08", "AdamW's epsilon"},
    {"train.eval_batch_multiplier", "1",
     "rows at a time in evaluation, as a multiple of the micro-batch"},
    {"train.grad_accum", "1", "batches accumulated for an optimizer step"},
    {"train.group_by_length", "false", "batch rows of similar length, for less padding"},
    {"train.label_smoothing", "0", "share of the target that is spread over all labels"},
    {"train.lr", "5e-05", "peak learning rate"},
    {"train.max_grad_norm", "1", "gradients are clipped to this norm"},
    {"train.momentum", "0.9", "SGD's momentum, 0 to 1"},
    {"train.optimizer", "adamw", "adamw, adamw_8bit, adafactor or sgd"},
    {"train.precision", "fp32", "fp32, tf32, bf16 or fp16: of matrix products and attention"},
    {"train.warmup_ratio", "0.1", "share of the steps in which the learning rate rises"},
    {"train.weight_decay", "0.01", "weight decay, but for biases and LayerNorm"},
};

// Numbers that must lie in [low, high).
struct NumberRange {
  const char* name;
  double low;
  double high;
  double* value;
};

absl::Status ReadNumber(const ParamMap& params, const NumberRange& range) {
  const auto found = params.find(range.name);
  if (found == params.end()) return absl::OkStatus();
  const std::optional<double> number = AsNumber(found->second);
  if (!number.has_value() || !(*number >= range.low && *number < range.high)) {
    return absl::InvalidArgumentError(absl::StrCat(range.name, ": expected a number in [",
                                                   range.low, ", ", range.high, "), got ",
                                                   DescribeParam(found->second)));
  }
  *range.value = *number;
  return absl::OkStatus();
}

// An integer of at least 0; nullopt where it is not given.
absl::StatusOr<std::optional<int64_t>> ReadCount(const ParamMap& params, const char* name) {
  const auto found = params.find(name);
  if (found == params.end()) return std::nullopt;
  const std::optional<int64_t> count = FindInt(params, name);
  if (count.has_value() && *count >= 0) return count;
  return absl::InvalidArgumentError(absl::StrCat(name, ": expected an integer of at least 0, got ",
                                                 DescribeParam(found->second)));
}

// What others know and this trainer has something better for.
constexpr const char* kOffload = "memory.offload_optimizer";
constexpr const char* kInsteadOfOffload =
    "not offered; train.optimizer adamw_8bit needs a quarter of the memory for optimizer states, "
    "adafactor nearly none, both without transfers in every step";

absl::Status CheckNames(const ParamMap& params) {
  std::vector<std::string> known;
  for (const ParameterLine& line : kParameters) known.emplace_back(line.name);
  for (const auto& [name, value] : params) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    if (name == kOffload) {
      return absl::InvalidArgumentError(absl::StrCat(name, ": ", kInsteadOfOffload));
    }
    const std::string meant = DidYouMean(name, known);
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": hpo-trainer has no such parameter",
                     meant.empty() ? " (hpo-trainer --list-parameters lists them)" : meant));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<TrainingOptions> ReadTrainingOptions(const ParamMap& params, uint64_t job_seed) {
  HPO_RETURN_IF_ERROR(CheckNames(params));
  TrainingOptions options;
  HPO_ASSIGN_OR_RETURN(options.config, memory::TrainingConfigOf(params, TrainerSpec{}));
  constexpr double kAny = std::numeric_limits<double>::infinity();
  const double kAboveOne = std::nextafter(1.0, 2.0);
  const NumberRange ranges[] = {
      {"data.subset", std::numeric_limits<double>::min(), kAboveOne, &options.data_subset},
      {"train.beta1", 0.0, 1.0, &options.beta1},
      {"train.beta2", 0.0, 1.0, &options.beta2},
      {"train.eps", std::numeric_limits<double>::min(), 1.0, &options.eps},
      {"train.label_smoothing", 0.0, 1.0, &options.label_smoothing},
      {"train.lr", 0.0, kAny, &options.learning_rate},
      {"train.max_grad_norm", std::numeric_limits<double>::min(), kAny, &options.max_grad_norm},
      {"train.warmup_ratio", 0.0, 1.0, &options.warmup_ratio},
      {"train.weight_decay", 0.0, kAny, &options.weight_decay},
  };
  for (const NumberRange& range : ranges) HPO_RETURN_IF_ERROR(ReadNumber(params, range));
  options.tf32 = FindString(params, "train.precision") == "tf32";
  if (const auto weights = params.find("train.class_weights"); weights != params.end()) {
    auto spec = ParseClassWeights(
        FindString(params, "train.class_weights").value_or(FormatParam(weights->second)));
    if (!spec.ok()) return Annotate(spec.status(), "train.class_weights");
    options.class_weights = *std::move(spec);
  }
  auto padding =
      text::ParseQueryPadding(FindString(params, "aspects.padding").value_or(std::string("none")));
  if (!padding.ok()) return Annotate(padding.status(), "aspects.padding");
  options.query_padding = *padding;
  HPO_ASSIGN_OR_RETURN(const auto early_stopping, ReadCount(params, "train.early_stopping"));
  options.early_stopping = early_stopping.value_or(0);
  HPO_ASSIGN_OR_RETURN(const auto clear_cache, ReadCount(params, "memory.clear_cache_every"));
  options.clear_cache_every = clear_cache.value_or(0);
  HPO_ASSIGN_OR_RETURN(const std::optional<int64_t> seed, ReadCount(params, "seed"));
  options.seed = seed.has_value() ? static_cast<uint64_t>(*seed) : job_seed;
  return options;
}

std::string DescribeParameters() {
  std::string text = absl::StrFormat("%-28s %-14s %s\n", "parameter", "default", "meaning");
  for (const ParameterLine& line : kParameters) {
    absl::StrAppendFormat(&text, "%-28s %-14s %s\n", line.name, line.fallback, line.meaning);
  }
  return text;
}

}  // namespace hpo::trainer
