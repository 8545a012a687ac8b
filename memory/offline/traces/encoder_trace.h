// BERT, RoBERTa, ELECTRA and DistilBERT:
// transformers/models/{bert,roberta,xlm_roberta,electra,distilbert}/modeling_*.py.
// See model_trace.h.
#pragma once

#include <memory>

#include "memory/offline/traces/traced_model.h"

namespace hpo::memory {

std::unique_ptr<ModelTrace> MakeEncoderTrace(TracedDevice& device, const TracedModel& model);

}  // namespace hpo::memory
