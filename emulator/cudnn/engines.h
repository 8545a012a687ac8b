// What the emulated cuDNN's heuristics find for an operation graph.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "emulator/cudnn/backend_descriptor.h"

namespace hpo::emulator::cudnn {

// Number of engines for a graph: the one that cuDNN would prefer and, where that one wants scratch
// memory, another that wants none. Torch takes the first whose memory can be had.
int64_t NumEngines(const DescriptorContent& graph);

// The content of an engine descriptor for `graph`, number `index` of NumEngines.
std::shared_ptr<const DescriptorContent> MakeEngine(std::shared_ptr<const DescriptorContent> graph,
                                                    int64_t index);

// Bytes of scratch memory of an engine, as a content that MakeEngine returned or a program made.
int64_t EngineWorkspaceBytes(const DescriptorContent& engine);

}  // namespace hpo::emulator::cudnn
