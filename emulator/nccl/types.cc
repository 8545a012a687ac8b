#include "emulator/nccl/types.h"

#include <array>

namespace hpo::emulator::nccl {
namespace {

struct TypeFacts {
  const char* name;
  size_t bytes;
};

constexpr std::array<TypeFacts, kNumDataTypes> kTypes = {{{"int8", 1},
                                                          {"uint8", 1},
                                                          {"int32", 4},
                                                          {"uint32", 4},
                                                          {"int64", 8},
                                                          {"uint64", 8},
                                                          {"float16", 2},
                                                          {"float32", 4},
                                                          {"float64", 8},
                                                          {"bfloat16", 2},
                                                          {"float8e4m3", 1},
                                                          {"float8e5m2", 1}}};
constexpr std::array<const char*, kNumReductions + 1> kReductionNames = {
    "sum", "product", "maximum", "minimum", "average", "user operation"};

const char* NameOf(Kind kind) {
  switch (kind) {
    case Kind::kAllReduce:
      return "AllReduce";
    case Kind::kBroadcast:
      return "Broadcast";
    case Kind::kReduce:
      return "Reduce";
    case Kind::kAllGather:
      return "AllGather";
    case Kind::kReduceScatter:
      return "ReduceScatter";
    case Kind::kAllToAll:
      return "AlltoAll";
    case Kind::kGather:
      return "Gather";
    case Kind::kScatter:
      return "Scatter";
    case Kind::kSend:
      return "Send";
    case Kind::kReceive:
      return "Recv";
    case Kind::kSplit:
      return "CommSplit";
  }
  return "unknown";
}

}  // namespace

size_t BytesOf(int32_t type) { return kTypes[static_cast<size_t>(type)].bytes; }

std::string Describe(const Operation& operation) {
  std::string text = NameOf(operation.kind);
  if (operation.kind == Kind::kSplit) return text;
  text += " of " + std::to_string(operation.count) + " " +
          kTypes[static_cast<size_t>(operation.type)].name;
  switch (operation.kind) {
    case Kind::kAllReduce:
    case Kind::kReduceScatter:
      return text + " (" + kReductionNames[static_cast<size_t>(operation.reduction)] + ")";
    case Kind::kReduce:
      return text + " (" + kReductionNames[static_cast<size_t>(operation.reduction)] +
             ") to rank " + std::to_string(operation.root);
    case Kind::kGather:
    case Kind::kSend:
      return text + " to rank " + std::to_string(operation.root);
    case Kind::kBroadcast:
    case Kind::kScatter:
    case Kind::kReceive:
      return text + " from rank " + std::to_string(operation.root);
    default:
      return text;
  }
}

}  // namespace hpo::emulator::nccl
