// Tested by tests/worker/trainer/suite/memory_suite_test.cc.
#include "worker/trainer/suite/suite_plan.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"

namespace hpo::trainer {
namespace {

constexpr int64_t kLabels = 2;
constexpr int64_t kEvaluationRows = 4;

struct Sizes {
  int64_t hidden;
  int64_t layers;
  int64_t heads;
  int64_t vocabulary;
};

struct Grid {
  std::array<Sizes, 4> sizes;
  std::array<int64_t, 4> tokens;
  std::array<int64_t, 4> micro_batches;
};

constexpr Grid kSmall = {
    .sizes = {{{32, 1, 2, 500}, {48, 3, 4, 2000}, {64, 2, 4, 8000}, {96, 4, 6, 3000}}},
    .tokens = {16, 32, 64, 112},
    .micro_batches = {1, 2, 5, 8}};

constexpr Grid kLarge = {.sizes = {{{256, 4, 4, 30522},
                                    {384, 6, 12, 30522},
                                    {768, 12, 12, 30522},
                                    {1024, 24, 16, 30522}}},
                         .tokens = {32, 128, 256, 512},
                         .micro_batches = {1, 4, 12, 32}};

SuitePoint MakePoint(const Sizes& sizes, int64_t tokens, int64_t micro_batch, size_t number) {
  const int64_t parts = number % 2 == 0 ? 1 : 2;
  const double dropout = number % 3 == 0 ? 0.0 : 0.1;
  SuitePoint point;
  point.model = {.family = "bert",
                 .vocab_size = sizes.vocabulary,
                 .hidden_size = sizes.hidden,
                 .num_layers = sizes.layers,
                 .num_heads = sizes.heads,
                 .intermediate_size = 4 * sizes.hidden,
                 .max_positions = 512,
                 .type_vocab_size = 2,
                 .hidden_dropout = dropout,
                 .attention_dropout = dropout};
  point.config.batch_size = micro_batch;
  point.config.grad_accum = parts;
  point.config.max_length = tokens;
  point.plan = {.effective_batch = parts * micro_batch, .micro_batch = micro_batch};
  point.tokens = tokens;
  point.name = absl::StrCat("h", sizes.hidden, " l", sizes.layers, " t", tokens, " m", micro_batch,
                            " e", point.plan.effective_batch, dropout > 0.0 ? " dropout" : "");
  return point;
}

// Grows as the work of a step does; only the order matters.
int64_t Work(const SuitePoint& point) {
  return point.model.hidden_size * point.model.hidden_size * point.model.num_layers * point.tokens *
         point.plan.effective_batch;
}

}  // namespace

std::vector<SuitePoint> SuitePoints(const std::string& device) {
  const Grid& grid = device == "cpu" ? kSmall : kLarge;
  std::vector<SuitePoint> points;
  for (const Sizes& sizes : grid.sizes) {
    for (const int64_t tokens : grid.tokens) {
      for (const int64_t micro_batch : grid.micro_batches) {
        points.push_back(MakePoint(sizes, tokens, micro_batch, points.size()));
      }
    }
  }
  std::stable_sort(points.begin(), points.end(),
                   [](const SuitePoint& a, const SuitePoint& b) { return Work(a) < Work(b); });
  return points;
}

text::EncodedDataset SuiteRows(const SuitePoint& point, int64_t steps) {
  text::EncodedDataset data;
  data.num_labels = kLabels;
  data.token_offsets.push_back(0);
  data.label_offsets.push_back(0);
  for (int64_t row = 0; row < steps * point.plan.effective_batch; ++row) {
    for (int64_t token = 0; token < point.tokens; ++token) {
      data.ids.push_back(static_cast<int32_t>((row * 31 + token * 7) % point.model.vocab_size));
      data.type_ids.push_back(0);
    }
    data.labels.push_back(static_cast<int32_t>(row % kLabels));
    data.token_offsets.push_back(static_cast<int64_t>(data.ids.size()));
    data.label_offsets.push_back(static_cast<int64_t>(data.labels.size()));
  }
  return data;
}

memory::EstimateInput SuiteInput(const SuitePoint& point, int64_t steps,
                                 const DeviceProfile& device) {
  memory::EstimateInput input;
  input.model = point.model;
  input.config = point.config;
  input.workload.num_labels = kLabels;
  const int64_t rows = steps * point.plan.effective_batch;
  input.workload.train_lengths = {{point.tokens, rows}};
  input.workload.validation_lengths = {{point.tokens, std::min(rows, kEvaluationRows)}};
  input.device = device;
  return input;
}

}  // namespace hpo::trainer
