// One attempt of one trial, from its job to its outcome.
#pragma once

#include "common/protocol/trainer_protocol.h"
#include "worker/channel/event_sink.h"
#include "worker/text/batching/token_cache.h"
#include "worker/trainer/device/trial_device.h"

namespace hpo::trainer {

// Runs `job` on `device` (which job.device names) and says how it ended; never throws.
// Measurements, memory and checkpoints go to `events` meanwhile. When it returns, everything the
// trial allocated is freed; where live bytes are not the device's baseline again, the message says
// clean = false. Tokens of the data files are looked for in `tokens`, and left there.
OutcomeMessage RunTrial(const TrainerJob& job, TrialDevice& device, EventSink& events,
                        StopSource& stops, const text::TokenCache& tokens = {});

}  // namespace hpo::trainer
