// libnccl: collectives, sends and receives, user operations, and memory.
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
using hpo::emulator::nccl::Operation;
using hpo::emulator::nccl::Report;
using hpo::emulator::nccl::Run;
using hpo::emulator::nccl::Transfer;

// A reduction of a call: a user's has one number for all ranks to agree on.
int Common(int reduction) { return reduction < kNumReductions ? reduction : kNumReductions; }

int Move(void* handle, const Transfer& transfer) {
  const auto communicator = Find(handle);
  if (communicator == nullptr) {
    return Report({kInvalidArgument, "not a communicator, or one that was destroyed"});
  }
  const int type = transfer.operation.type;
  if (type < 0 || type >= kNumDataTypes) {
    return Report({kInvalidArgument, "data type " + std::to_string(type) + " is not known"});
  }
  const auto moved = std::make_shared<Transfer>(transfer);
  return Run({[=] { return communicator->Begin(*moved); },
              [=] { return communicator->End(*moved); }, nullptr});
}

int Reduced(void* handle, Kind kind, const void* from, void* to, size_t count, int type,
            int reduction, int root) {
  return Move(handle, {.operation = {.kind = kind,
                                     .type = type,
                                     .reduction = Common(reduction),
                                     .root = root,
                                     .count = count},
                       .from = from,
                       .to = to,
                       .user_reduction = reduction});
}

int Moved(void* handle, Kind kind, const void* from, void* to, size_t count, int type, int root) {
  return Move(handle, {.operation = {.kind = kind, .type = type, .root = root, .count = count},
                       .from = from,
                       .to = to});
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
                  void*) {
  HPO_NCCL_CALL(ncclAllReduce);
  return Reduced(handle, Kind::kAllReduce, from, to, count, type, reduction, 0);
}

int ncclReduce(const void* from, void* to, size_t count, int type, int reduction, int root,
               void* handle, void*) {
  HPO_NCCL_CALL(ncclReduce);
  return Reduced(handle, Kind::kReduce, from, to, count, type, reduction, root);
}

int ncclReduceScatter(const void* from, void* to, size_t count, int type, int reduction,
                      void* handle, void*) {
  HPO_NCCL_CALL(ncclReduceScatter);
  return Reduced(handle, Kind::kReduceScatter, from, to, count, type, reduction, 0);
}

int ncclBroadcast(const void* from, void* to, size_t count, int type, int root, void* handle,
                  void*) {
  HPO_NCCL_CALL(ncclBroadcast);
  return Moved(handle, Kind::kBroadcast, from, to, count, type, root);
}

int ncclBcast(void* buffer, size_t count, int type, int root, void* handle, void*) {
  HPO_NCCL_CALL(ncclBcast);
  return Moved(handle, Kind::kBroadcast, buffer, buffer, count, type, root);
}

int ncclAllGather(const void* from, void* to, size_t count, int type, void* handle, void*) {
  HPO_NCCL_CALL(ncclAllGather);
  return Moved(handle, Kind::kAllGather, from, to, count, type, 0);
}

int ncclAlltoAll(const void* from, void* to, size_t count, int type, void* handle, void*) {
  HPO_NCCL_CALL(ncclAlltoAll);
  return Moved(handle, Kind::kAllToAll, from, to, count, type, 0);
}

int ncclGather(const void* from, void* to, size_t count, int type, int root, void* handle, void*) {
  HPO_NCCL_CALL(ncclGather);
  return Moved(handle, Kind::kGather, from, to, count, type, root);
}

int ncclScatter(const void* from, void* to, size_t count, int type, int root, void* handle, void*) {
  HPO_NCCL_CALL(ncclScatter);
  return Moved(handle, Kind::kScatter, from, to, count, type, root);
}

int ncclSend(const void* from, size_t count, int type, int peer, void* handle, void*) {
  HPO_NCCL_CALL(ncclSend);
  return Moved(handle, Kind::kSend, from, nullptr, count, type, peer);
}

int ncclRecv(void* to, size_t count, int type, int peer, void* handle, void*) {
  HPO_NCCL_CALL(ncclRecv);
  return Moved(handle, Kind::kReceive, nullptr, to, count, type, peer);
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
