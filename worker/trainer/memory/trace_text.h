// The file format that keeps what an allocator did.
//
// Format, one item a line: "hpo-trace 1", then free lines starting with "#", then events.
//   + BLOCK BYTES [STREAM]  allocated; blocks and streams are numbered from 0 as they appear, and
//                           stream 0 is left out
//   - BLOCK                 freed
//   S BYTES, s BYTES        a segment taken from the device, given back
//   M BYTES, m BYTES        pages mapped, unmapped (expandable segments)
//   ! BYTES                 out of memory, for a request of BYTES
#pragma once

#include <string>
#include <vector>

#include "worker/trainer/memory/allocator_log.h"

namespace hpo::trainer {

// `about`: lines for the head of the file, without "#".
std::string FormatTrace(const std::vector<AllocatorEvent>& events,
                        const std::vector<std::string>& about);

}  // namespace hpo::trainer
