// libnccl: collectives, sends and receives, user operations, and memory.
#include <algorithm>
#include <optional>

#include "emulator/machine.h"
#include "emulator/nccl/group.h"

namespace {

using hpo::emulator::Machine;
using hpo::emulator::nccl::BytesOf;
using hpo::emulator::nccl::Find;
using hpo::emulator::nccl::Kind;
using hpo::emulator::nccl::kInvalidArgument;
using hpo::emulator::nccl::kNumDataTypes;
using hpo::emulator::nccl::kNumReductions;
using hpo::emulator::nccl::kSum;
using hpo::emulator::nccl::Operation;
using hpo::emulator::nccl::Report;
using hpo::emulator::nccl::Run;
using hpo::emulator::nccl::Transfer;

struct Place {
  const void* from;
  void* to;
  void* stream;
};

// `operation` as the call has it.
int Move(void* handle, Operation operation, const Place& place) {
  const auto communicator = Find(handle);
  if (communicator == nullptr) {
    return Report({kInvalidArgument, "not a communicator, or one that was destroyed"});
  }
  if (operation.type < 0 || operation.type >= kNumDataTypes) {
    return Report({kInvalidArgument, "no data type " + std::to_string(operation.type)});
  }
  const auto transfer = std::make_shared<Transfer>();
  transfer->user_reduction = operation.reduction;
  // A user's operation has one number for all ranks to agree on.
  operation.reduction = std::min<int32_t>(operation.reduction, kNumReductions);
  transfer->operation = operation;
  transfer->from = place.from;
  transfer->to = place.to;
  transfer->stream = place.stream;
  return Run({[=] { return communicator->Begin(*transfer); },
              [=] { return communicator->End(*transfer); }, nullptr});
}

// Handles of what NCCL registers: it moves no data, so there is nothing to remember.
int Register(void** handle) {
  *handle = new char;
  return 0;
}

int Deregister(void* handle) {
  delete static_cast<char*>(handle);
  return 0;
}

}  // namespace

extern "C" {

int ncclAllReduce(const void* from, void* to, size_t count, int type, int reduction, void* handle,
                  void* stream) {
  HPO_NCCL_CALL(ncclAllReduce);
  return Move(handle, {Kind::kAllReduce, type, reduction, 0, count}, {from, to, stream});
}

int ncclReduce(const void* from, void* to, size_t count, int type, int reduction, int root,
               void* handle, void* stream) {
  HPO_NCCL_CALL(ncclReduce);
  return Move(handle, {Kind::kReduce, type, reduction, root, count}, {from, to, stream});
}

int ncclReduceScatter(const void* from, void* to, size_t count, int type, int reduction,
                      void* handle, void* stream) {
  HPO_NCCL_CALL(ncclReduceScatter);
  return Move(handle, {Kind::kReduceScatter, type, reduction, 0, count}, {from, to, stream});
}

int ncclBroadcast(const void* from, void* to, size_t count, int type, int root, void* handle,
                  void* stream) {
  HPO_NCCL_CALL(ncclBroadcast);
  return Move(handle, {Kind::kBroadcast, type, kSum, root, count}, {from, to, stream});
}

int ncclBcast(void* buffer, size_t count, int type, int root, void* handle, void* stream) {
  HPO_NCCL_CALL(ncclBcast);
  return Move(handle, {Kind::kBroadcast, type, kSum, root, count}, {buffer, buffer, stream});
}

int ncclAllGather(const void* from, void* to, size_t count, int type, void* handle, void* stream) {
  HPO_NCCL_CALL(ncclAllGather);
  return Move(handle, {Kind::kAllGather, type, kSum, 0, count}, {from, to, stream});
}

int ncclAlltoAll(const void* from, void* to, size_t count, int type, void* handle, void* stream) {
  HPO_NCCL_CALL(ncclAlltoAll);
  return Move(handle, {Kind::kAllToAll, type, kSum, 0, count}, {from, to, stream});
}

int ncclGather(const void* from, void* to, size_t count, int type, int root, void* handle,
               void* stream) {
  HPO_NCCL_CALL(ncclGather);
  return Move(handle, {Kind::kGather, type, kSum, root, count}, {from, to, stream});
}

int ncclScatter(const void* from, void* to, size_t count, int type, int root, void* handle,
                void* stream) {
  HPO_NCCL_CALL(ncclScatter);
  return Move(handle, {Kind::kScatter, type, kSum, root, count}, {from, to, stream});
}

int ncclSend(const void* from, size_t count, int type, int peer, void* handle, void* stream) {
  HPO_NCCL_CALL(ncclSend);
  return Move(handle, {Kind::kSend, type, kSum, peer, count}, {from, nullptr, stream});
}

int ncclRecv(void* to, size_t count, int type, int peer, void* handle, void* stream) {
  HPO_NCCL_CALL(ncclRecv);
  return Move(handle, {Kind::kReceive, type, kSum, peer, count}, {nullptr, to, stream});
}

// `residence` is ncclScalarHostImmediate, 1, or ncclScalarDevice, 0: read when it is used.
int ncclRedOpCreatePreMulSum(int* reduction, void* scalar, int type, int residence, void* handle) {
  HPO_NCCL_CALL(ncclRedOpCreatePreMulSum);
  const auto communicator = Find(handle);
  if (communicator == nullptr || type < 0 || type >= kNumDataTypes) {
    return Report({kInvalidArgument, "ncclRedOpCreatePreMulSum: bad communicator or type"});
  }
  std::optional<std::string> factor;
  if (residence == 1) factor = std::string(static_cast<const char*>(scalar), BytesOf(type));
  *reduction = communicator->AddReduction(factor, scalar);
  return 0;
}

int ncclRedOpDestroy(int reduction, void* handle) {
  HPO_NCCL_CALL(ncclRedOpDestroy);
  if (const auto communicator = Find(handle); communicator != nullptr) {
    communicator->RemoveReduction(reduction);
  }
  return 0;
}

int ncclMemAlloc(void** pointer, size_t bytes) {
  HPO_NCCL_CALL(ncclMemAlloc);
  *pointer = Machine::Get().Allocate(hpo::emulator::nccl::ThisDevice(), bytes);
  if (*pointer != nullptr) return 0;
  return Report({hpo::emulator::nccl::kUnhandledCudaError,
                 "Failed to CUDA malloc " + std::to_string(bytes) + " bytes"});
}

int ncclMemFree(void* pointer) {
  HPO_NCCL_CALL(ncclMemFree);
  if (pointer == nullptr || Machine::Get().Free(pointer)) return 0;
  return Report({kInvalidArgument, "ncclMemFree: not an address of ncclMemAlloc"});
}

int ncclCommRegister(const void*, void*, size_t, void** handle) {
  HPO_NCCL_CALL(ncclCommRegister);
  return Register(handle);
}

int ncclCommDeregister(const void*, void* handle) {
  HPO_NCCL_CALL(ncclCommDeregister);
  return Deregister(handle);
}

int ncclCommWindowRegister(const void*, void*, size_t, void** window, int) {
  HPO_NCCL_CALL(ncclCommWindowRegister);
  return Register(window);
}

int ncclCommWindowDeregister(const void*, void* window) {
  HPO_NCCL_CALL(ncclCommWindowDeregister);
  return Deregister(window);
}

// As ncclGroupEnd without doing what was grouped. Times are not emulated; the estimate, the last
// field of ncclSimInfo_t, is left alone.
int ncclGroupSimulateEnd(void*) {
  HPO_NCCL_CALL(ncclGroupSimulateEnd);
  return hpo::emulator::nccl::DropGroup();
}

}  // extern "C"
