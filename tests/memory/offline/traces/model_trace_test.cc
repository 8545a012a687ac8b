#include "memory/offline/traces/model_trace.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/models/model_config.h"
#include "common/study/model_catalog.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/golden_file.h"

namespace hpo::memory {
namespace {

// Losses, seeds and other scalars, some of which torch keeps on the host.
constexpr int64_t kScalar = 8;

// Sizes in order, negative where memory is freed. Between two frees the order of allocations is a
// kernel's own affair, and so is that of frees between two allocations: both are sorted.
std::vector<int64_t> Canonical(const std::vector<int64_t>& sizes) {
  std::vector<int64_t> events;
  for (const int64_t size : sizes) {
    if (std::abs(size) > kScalar) events.push_back(size);
  }
  for (auto run = events.begin(); run != events.end();) {
    const bool allocates = *run > 0;
    const auto end =
        std::find_if(run, events.end(), [&](int64_t size) { return (size > 0) != allocates; });
    std::sort(run, end);
    run = end;
  }
  return events;
}

std::vector<int64_t> GoldenSizes(const nlohmann::json& golden) {
  std::vector<int64_t> allocated;
  std::vector<int64_t> sizes;
  for (const char* part : {"forward", "backward"}) {
    for (const int64_t event : golden[part]) {
      if (event >= 0) allocated.push_back(event);
      sizes.push_back(event >= 0 ? event : -allocated.at(static_cast<size_t>(-event - 1)));
    }
  }
  return sizes;
}

// What the trace says from its phase "forward" on, without temporaries inside kernels.
std::vector<int64_t> TracedSizes(const AllocationTrace& trace) {
  std::vector<int64_t> sizes;
  for (size_t i = trace.phases.at(0).first_event; i < trace.events.size(); ++i) {
    const auto& event = trace.events[i];
    if (event.memory_class == MemoryClass::kTemporary) continue;
    sizes.push_back(event.allocates ? event.bytes : -event.bytes);
  }
  return sizes;
}

std::string Around(const std::vector<int64_t>& events, size_t at) {
  std::string text;
  for (size_t i = at < 12 ? 0 : at - 12; i < std::min(events.size(), at + 12); ++i) {
    absl::StrAppend(&text, i == at ? " >>" : " ", events[i]);
  }
  return text;
}

void ExpectSame(const std::vector<int64_t>& traced, const std::vector<int64_t>& expected) {
  const auto [ours, theirs] =
      std::mismatch(traced.begin(), traced.end(), expected.begin(), expected.end());
  const auto at = static_cast<size_t>(ours - traced.begin());
  if (ours == traced.end() && theirs == expected.end()) return;
  ADD_FAILURE() << "first difference at event " << at << " of " << expected.size()
                << "\n  traced:  " << Around(traced, at) << "\n  expected:" << Around(expected, at);
}

std::optional<LoraOptions> LoraOf(const nlohmann::json& entry) {
  if (!entry.contains("lora")) return std::nullopt;
  const nlohmann::json& golden = entry["lora"];
  LoraOptions lora{.rank = golden["rank"], .dropout = golden.value("dropout", 0.0)};
  const nlohmann::json& targets = golden["targets"];
  for (const nlohmann::json& target : targets.is_array() ? targets : nlohmann::json{targets}) {
    lora.targets.push_back(target);
  }
  return lora;
}

TEST(ModelTrace, AllocatesAndFreesWhatHuggingFaceDoes) {
  const nlohmann::json golden = ReadGolden("model_traces.json");
  for (const auto& [name, entry] : golden["cases"].items()) {
    SCOPED_TRACE(name);
    const ModelShape shape = ParseModelConfig(entry["config"].dump(), name).value();
    const ModelBatch batch = {.rows = golden["rows"], .tokens = entry["tokens"]};
    StepTracer tracer(golden["sums_in_place"] ? GradientSums::kInPlace : GradientSums::kNew);
    KernelTraits traits = KernelTraits::Cuda();
    // FakeTensors attend by the efficient kernel whatever the head size, and pad no mask.
    traits.capability = 70;
    traits.mask_step = 1;
    TracedDevice device(tracer, traits);
    const std::string precision = entry["precision"];
    device.SetParameterType(precision == "bfloat16" ? 2 : 4, /*trainable=*/true);
    const bool predicts_tokens =
        IsDecoder(*ModelFamilyOf(shape.family)) && !entry.value("classifies", false);
    const TaskHead head = {.kind = predicts_tokens ? TaskHead::Kind::kCausalLm
                                                   : TaskHead::Kind::kSequenceClassification,
                           .num_labels = golden["num_labels"]};
    auto model = MakeModelTrace(
        device, shape, head,
        {.lora = LoraOf(entry), .checkpointing = entry.value("checkpointing", false)});
    EXPECT_TRUE(model.ok()) << model.status();
    if (!model.ok()) continue;
    const TracedStorage ids = tracer.Allocate(8 * batch.rows * batch.tokens);
    tracer.EnterPhase("forward");
    if (precision == "autocast") device.EnterAutocast();
    TracedTensor loss = (*model)->Loss(batch, ids);
    device.LeaveAutocast();
    tracer.Backward(std::move(loss));
    ExpectSame(Canonical(TracedSizes(tracer.trace())), Canonical(GoldenSizes(entry)));
  }
}

}  // namespace
}  // namespace hpo::memory
