// Any bytes as recorded allocation events: rejected with the line, or replayed without a crash on
// another GPU, with either kind of segments.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/base/status.h"
#include "memory/replay/event_replay.h"
#include "memory/replay/other_gpu.h"
#include "memory/replay/recorded_events.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using hpo::memory::RecordedDevice;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto read = hpo::memory::ReadRecordedEvents(text);
  if (const auto* const complaint = std::get_if<std::string>(&read)) {
    HPO_CHECK(complaint->starts_with("line "));
    return 0;
  }
  for (const RecordedDevice& device : std::get<std::vector<RecordedDevice>>(read)) {
    const auto other = hpo::memory::OnGpu(device, {90, 132, 2048});
    for (const bool expandable : {false, true}) {
      hpo::memory::AllocatorOptions options{.expandable_segments = expandable};
      options.card.total = options.card.left = hpo::GiB(1);
      hpo::memory::ReplayEvents(other.device, options);
    }
  }
  return 0;
}
