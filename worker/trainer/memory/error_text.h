// What an exception of torch says, for error lines.
#pragma once

#include <exception>
#include <string>

namespace hpo::trainer {

// One line without C++ stack frames. CUDA's own errors are followed by advice for programmers,
// which is left out.
std::string DescribeError(const std::exception& error);

}  // namespace hpo::trainer
