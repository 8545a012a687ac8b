// Any bytes as a line of the trainer protocol: refused, or a message that is written the same
// again and again.
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "common/base/status.h"
#include "common/protocol/trainer_protocol.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view line(reinterpret_cast<const char*>(data), size);
  if (const auto up = hpo::DecodeUp(line); up.ok()) {
    const std::string written = hpo::EncodeUp(*up);
    HPO_CHECK(written.find('\n') == std::string::npos);
    const auto again = hpo::DecodeUp(written);
    HPO_CHECK(again.ok());
    HPO_CHECK(hpo::EncodeUp(*again) == written);
  }
  if (const auto down = hpo::DecodeDown(line); down.ok()) {
    const std::string written = hpo::EncodeDown(*down);
    HPO_CHECK(written.find('\n') == std::string::npos);
    const auto again = hpo::DecodeDown(written);
    HPO_CHECK(again.ok());
    HPO_CHECK(*again == *down);
  }
  return 0;
}
