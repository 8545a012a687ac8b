// The two directions between a running trial and whoever runs it: a supervisor's channel, standard
// output, or a test.
#pragma once

#include <optional>

#include "common/protocol/trainer_protocol.h"

namespace hpo {

class EventSink {
 public:
  virtual ~EventSink() = default;

  // Takes the message; never throws, never waits longer than the reader of a socket makes it.
  virtual void Send(const UpMessage& message) = 0;
};

class StopSource {
 public:
  virtual ~StopSource() = default;

  // A request to end the attempt that has arrived; never blocks. Asked between optimizer steps.
  // Once a request was given it is given again at every later call.
  virtual std::optional<StopRequest> Poll() = 0;
};

}  // namespace hpo
