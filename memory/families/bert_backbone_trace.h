// worker/trainer/models/bert_model.cc: BERT, RoBERTa, ELECTRA, DistilBERT. See backbone_trace.h.
#pragma once

#include <memory>

#include "memory/families/backbone_trace.h"

namespace hpo::memory {

std::unique_ptr<BackboneTrace> MakeBertBackboneTrace(TracedDevice& device, const ModelShape& shape,
                                                     const ModelParameters& parameters);

}  // namespace hpo::memory
