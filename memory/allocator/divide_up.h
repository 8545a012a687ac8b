// Division of sizes that come in whole pieces.
#pragma once

#include <cstdint>

namespace hpo::memory {

// a / b, rounded up. a >= 0, b > 0.
constexpr int64_t DivideUp(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace hpo::memory
