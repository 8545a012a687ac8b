// exp and log whose last bit does not depend on the processor. The C library picks variants with
// fused multiply-add at run time, Eigen's packets are fixed when compiled: for x86-64 that is SSE2.
// Exact to 2 units in the last place. Pure; safe from any thread.
#pragma once

#include <cstddef>

#include "Eigen/Core"

namespace hpo::sampler {

inline double PortableExp(double x) {
  const Eigen::Array2d packet = Eigen::Array2d::Constant(x).exp();
  return packet[0];
}

// x >= 0; -infinity at 0.
inline double PortableLog(double x) {
  const Eigen::Array2d packet = Eigen::Array2d::Constant(x).log();
  return packet[0];
}

// Numbers that one call of Eigen's packet functions takes, so that none is left to the C library.
constexpr size_t kPacketBlock = 4;

// The least multiple of kPacketBlock that is not below `size`.
constexpr size_t PaddedSize(size_t size) {
  return (size + kPacketBlock - 1) / kPacketBlock * kPacketBlock;
}

}  // namespace hpo::sampler
