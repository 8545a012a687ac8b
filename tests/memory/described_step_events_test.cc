// Described steps against torch itself on an emulated card, event by event: sizes in the order in
// which the caching allocator was asked for them, also inside kernels.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "memory/offline/described_step_trace.h"
#include "memory/offline/step_description.h"
#include "nlohmann/json.hpp"
#include "tests/golden_file.h"

namespace hpo::memory {
namespace {

using Json = nlohmann::json;

// Sizes, negative where memory is freed.
std::vector<int64_t> GoldenStepSizes(const Json& events) {
  std::vector<int64_t> allocated;
  std::vector<int64_t> sizes;
  for (const int64_t event : events) {
    if (event > 0) allocated.push_back(event);
    sizes.push_back(event > 0 ? event : -allocated.at(static_cast<size_t>(-event - 1)));
  }
  return sizes;
}

// The end of autocast lets go of the casts of weights in the order of a hash table of addresses.
void SortFrees(std::vector<int64_t>& sizes) {
  for (auto run = sizes.begin(); run != sizes.end();) {
    const bool frees = *run < 0;
    const auto end =
        std::find_if(run, sizes.end(), [&](int64_t size) { return (size < 0) != frees; });
    if (frees) std::sort(run, end);
    run = end;
  }
}

std::vector<int64_t> AllTracedSizes(const AllocationTrace& trace) {
  std::vector<int64_t> sizes;
  for (const TraceEvent& event : trace.events) {
    sizes.push_back(event.allocates ? event.bytes : -event.bytes);
  }
  return sizes;
}

// The last mark at or before `event`, with the phase before it.
std::string PlaceOf(const Json& marks, size_t event) {
  std::string place;
  for (const Json& mark : marks) {
    if (mark[0].get<size_t>() > event) break;
    place = mark[1];
  }
  return place;
}

std::string AroundEvent(const std::vector<int64_t>& events, size_t at) {
  std::string text;
  for (size_t i = at < 15 ? 0 : at - 15; i < std::min(events.size(), at + 25); ++i) {
    absl::StrAppend(&text, i == at ? " >>" : " ", events[i]);
  }
  return text;
}

TEST(DescribedStepEvents, AreTorchsOwn) {
  const Json golden = ReadGolden("described_steps.json");
  for (const auto& [name, entry] : golden["cases"].items()) {
    SCOPED_TRACE(name);
    const auto step = ParseStepDescription(entry["description"].dump(), name);
    ASSERT_TRUE(step.ok()) << step.status();
    const AllocationTrace trace = TraceOfStep(*step);
    std::vector<int64_t> traced = AllTracedSizes(trace);
    std::vector<int64_t> expected = GoldenStepSizes(entry["events"]);
    if (step->precision == StepPrecision::kAutocast) {
      SortFrees(traced);
      SortFrees(expected);
    }
    const auto [ours, theirs] =
        std::mismatch(traced.begin(), traced.end(), expected.begin(), expected.end());
    const auto at = static_cast<size_t>(ours - traced.begin());
    if (at < std::max(traced.size(), expected.size())) {
      ADD_FAILURE() << "first difference at event " << at << " of " << expected.size() << ", in "
                    << PlaceOf(entry["marks"], at) << " (traced: " << trace.PhaseOf(at) << ")"
                    << "\n  traced:  " << AroundEvent(traced, at)
                    << "\n  expected:" << AroundEvent(expected, at);
    }
    const ReplayResult replay = Replay(trace, {});
    EXPECT_EQ(replay.stats.allocated_peak.count, entry["live_peak"]);
    EXPECT_EQ(replay.stats.reserved_peak.count, entry["reserved_peak"]);
  }
}

// Hugging Face's models as they are trained, by their peaks. Live peaks differ by tensors of a few
// bytes for each row and, of the decoders, by their angles and norms.
TEST(KnownModelPeaks, AreTorchsOwn) {
  const Json golden = ReadGolden("known_model_peaks.json");
  for (const auto& [name, entry] : golden["cases"].items()) {
    SCOPED_TRACE(name);
    const auto step = ParseStepDescription(entry["description"].dump(), name);
    ASSERT_TRUE(step.ok()) << step.status();
    const AllocatorStats stats = Replay(TraceOfStep(*step), {}).stats;
    const auto ratio = [](Bytes ours, const Json& torchs) {
      return static_cast<double>(ours.count) / torchs.get<double>();
    };
    EXPECT_NEAR(ratio(stats.allocated_peak, entry["live_peak"]), 1, 0.0005);
    EXPECT_NEAR(ratio(stats.reserved_peak, entry["reserved_peak"]), 1, 0.0002);
  }
}

}  // namespace
}  // namespace hpo::memory
