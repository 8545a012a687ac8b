// Any bytes as a checkpoint's manifest.json and as its state.json: refused, or something that is
// written the same again and again. Its tensors are a safetensors file (safetensors_fuzz.cc).
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "common/base/status.h"
#include "worker/trainer/checkpoints/checkpoint_manifest.h"
#include "worker/trainer/checkpoints/checkpoint_state.h"

namespace {

void CheckManifest(absl::string_view text) {
  const auto manifest = hpo::trainer::DecodeManifest(text);
  if (!manifest.ok()) {
    HPO_CHECK(absl::IsInvalidArgument(manifest.status()));
    return;
  }
  for (const auto& [name, sum] : *manifest) {
    HPO_CHECK(sum.size >= 0);
    HPO_CHECK(!name.empty() && name.front() != '/');
    HPO_CHECK(!absl::StartsWith(name, "../") && !absl::StrContains(name, "/../"));
  }
  const auto again = hpo::trainer::DecodeManifest(hpo::trainer::EncodeManifest(*manifest));
  HPO_CHECK(again.ok());
  HPO_CHECK(*again == *manifest);
}

void CheckState(absl::string_view text) {
  const auto state = hpo::trainer::DecodeCheckpointState(text);
  if (!state.ok()) {
    HPO_CHECK(absl::IsInvalidArgument(state.status()) ||
              absl::IsFailedPrecondition(state.status()));
    return;
  }
  HPO_CHECK(state->loop.step >= 1);
  HPO_CHECK(state->optimizer_steps >= 0);
  HPO_CHECK(hpo::trainer::CheckIdentity(state->identity, state->identity).ok());
  const std::string written = hpo::trainer::EncodeCheckpointState(*state);
  const auto again = hpo::trainer::DecodeCheckpointState(written);
  HPO_CHECK(again.ok());
  HPO_CHECK(hpo::trainer::EncodeCheckpointState(*again) == written);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  CheckManifest(text);
  CheckState(text);
  return 0;
}
