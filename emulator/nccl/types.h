// NCCL's types by their published numbers (docs.nvidia.com/deeplearning/nccl/user-guide, "API").
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace hpo::emulator::nccl {

constexpr int kSuccess = 0;
constexpr int kUnhandledCudaError = 1;
constexpr int kSystemError = 2;
constexpr int kInvalidArgument = 4;
constexpr int kInvalidUsage = 5;
constexpr int kRemoteError = 6;

// How a call ended: NCCL's code, and what ncclGetLastError says where it failed.
struct Outcome {
  int code = kSuccess;
  std::string text;
  bool ok() const { return code == kSuccess; }
};

// ncclDataType_t.
enum DataType : int32_t {
  kInt8,
  kUint8,
  kInt32,
  kUint32,
  kInt64,
  kUint64,
  kFloat16,
  kFloat32,
  kFloat64,
  kBfloat16,
  kFloat8e4m3,
  kFloat8e5m2,
  kNumDataTypes
};

// ncclRedOp_t. User operations are numbered from kNumReductions on.
enum Reduction : int32_t { kSum, kProduct, kMaximum, kMinimum, kAverage, kNumReductions };

enum class Kind : int32_t {
  kAllReduce,
  kBroadcast,
  kReduce,
  kAllGather,
  kReduceScatter,
  kAllToAll,
  kGather,
  kScatter,
  kSend,
  kReceive,
  kSplit,  // ranks exchange colors and keys
};

// What all ranks must agree on. `count` is in elements, as the call has it.
struct Operation {
  Kind kind = Kind::kAllReduce;
  int32_t type = kUint8;
  int32_t reduction = kSum;  // kNumReductions for every user operation
  int32_t root = 0;          // of a send or receive: the other rank
  uint64_t count = 0;

  bool operator==(const Operation&) const = default;
};

size_t BytesOf(int32_t type);

// "AllReduce of 4 float32 (sum)", "Broadcast of 16 uint8 from rank 0".
std::string Describe(const Operation& operation);

}  // namespace hpo::emulator::nccl
