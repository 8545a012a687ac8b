// A trial small enough to train in milliseconds: the golden tiny-bert with a vocabulary of made-up
// words, and data whose label its words give away.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/protocol/trainer_protocol.h"
#include "tests/worker/trainer/test_device.h"
#include "worker/channel/event_sink.h"
#include "worker/trainer/device/trial_device.h"

namespace hpo::trainer {

// Keeps every message, and asks to stop once a given number of optimizer steps was reported.
class RecordingEvents final : public EventSink, public StopSource {
 public:
  void Send(const UpMessage& message) override;
  std::optional<StopRequest> Poll() override;

  // From `step` on, Poll answers with `reason`.
  void StopAt(int64_t step, std::string reason);

  // The messages of one type, in order.
  template <typename Message>
  std::vector<Message> All() const {
    std::vector<Message> found;
    for (const UpMessage& message : messages) {
      if (const auto* match = std::get_if<Message>(&message)) found.push_back(*match);
    }
    return found;
  }

  std::vector<std::string> Stages() const;

  std::vector<UpMessage> messages;

 private:
  int64_t step_ = 0;
  std::optional<int64_t> stop_at_;
  std::string reason_;
};

// Files in a folder of its own, removed with it.
class TinyTrial {
 public:
  TinyTrial();
  ~TinyTrial();
  TinyTrial(const TinyTrial&) = delete;
  TinyTrial& operator=(const TinyTrial&) = delete;

  // Three labels, 48 training and 24 validation rows, batch 8, length up to 32, one epoch, dropout
  // 0.1, policy plan, no limit, no admission.
  TrainerJob Job() const;

  std::string Path(const std::string& name) const { return folder_ + "/" + name; }
  // Writes a file; returns its path.
  std::string Write(const std::string& name, const std::string& contents) const;

 private:
  std::string folder_;
};

// All tensors of a .safetensors file, and of the best model that a trial kept, as bytes.
std::string TensorBytes(const std::string& path);
std::string BestWeights(const TinyTrial& trial);

// `count` lines of JSON: "text" of 3 to 28 words, "label" one of "a", "b", "c".
std::string TinyRows(int count, uint64_t seed);

// While it lives the device reads losses late, as a card does.
class LateReading {
 public:
  explicit LateReading(TrialDevice& device) : device_(device) { device_.reads_late = true; }
  ~LateReading() { device_.reads_late = false; }
  LateReading(const LateReading&) = delete;
  LateReading& operator=(const LateReading&) = delete;

 private:
  TrialDevice& device_;
};

}  // namespace hpo::trainer
