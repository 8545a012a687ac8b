// libnccl: versions, errors, groups, and the life of communicators.
#include <sys/random.h>

#include <algorithm>
#include <cstring>

#include "emulator/machine.h"
#include "emulator/nccl/group.h"

namespace {

using hpo::emulator::nccl::Communicator;
using hpo::emulator::nccl::DropHandle;
using hpo::emulator::nccl::Find;
using hpo::emulator::nccl::Kind;
using hpo::emulator::nccl::NewHandle;
using hpo::emulator::nccl::Outcome;
using hpo::emulator::nccl::Place;
using hpo::emulator::nccl::Report;
using hpo::emulator::nccl::Run;
using hpo::emulator::nccl::Steps;
using hpo::emulator::nccl::Transfer;

constexpr int kNoColor = -1;
constexpr size_t kIdBytes = 128;

// ncclUniqueId: text up to a zero. A communicator's name is a part of that text.
struct UniqueId {
  char bytes[kIdBytes];
};

const Outcome kNoCommunicator{hpo::emulator::nccl::kInvalidArgument,
                              "not a communicator, or one that was destroyed"};

std::string NewName() {
  unsigned char random[8];
  if (getentropy(random, sizeof random) != 0) std::abort();
  std::string name;
  for (const unsigned char byte : random) {
    name += "0123456789abcdef"[byte >> 4];
    name += "0123456789abcdef"[byte & 15];
  }
  return name;
}

// Makes `place`'s rank of a new communicator, whose handle appears at once; then waits for others.
Steps Creation(const Place& place, void** handle) {
  const auto made = std::make_shared<std::shared_ptr<Communicator>>();
  return {[place, handle, made] {
            Outcome joined = Communicator::Join(place, *made);
            *handle = joined.ok() ? NewHandle(*made) : nullptr;
            return joined;
          },
          [made] { return (*made)->AwaitRanks(); }, nullptr};
}

int Create(void** handle, int num_ranks, const UniqueId& id, int rank, int device) {
  const std::string name(id.bytes, strnlen(id.bytes, kIdBytes));
  return Run(
      Creation({.name = name, .num_ranks = num_ranks, .rank = rank, .device = device}, handle));
}

struct Membership {
  int color;
  int key;
};

// Where this rank is among those of its color, ordered by key and then by rank.
Place PlaceOf(const Communicator& parent, const std::vector<std::optional<std::string>>& given,
              const std::string& name) {
  std::vector<Membership> members;
  for (const std::optional<std::string>& value : given) {
    std::memcpy(&members.emplace_back(), value.value().data(), sizeof(Membership));
  }
  const int own = parent.place().rank;
  const Membership mine = members[static_cast<size_t>(own)];
  Place place{.name = name + std::to_string(mine.color),
              .num_ranks = 0,
              .rank = 0,
              .device = parent.place().device};
  for (int rank = 0; rank < static_cast<int>(members.size()); ++rank) {
    const Membership& other = members[static_cast<size_t>(rank)];
    if (other.color != mine.color) continue;
    ++place.num_ranks;
    if (std::pair(other.key, rank) < std::pair(mine.key, own)) ++place.rank;
  }
  return place;
}

int Split(void* handle, int color, int key, void** made_handle) {
  const auto parent = Find(handle);
  if (parent == nullptr) return Report(kNoCommunicator);
  const Membership mine{.color = color, .key = key};
  const auto transfer = std::make_shared<Transfer>();
  transfer->operation = {.kind = Kind::kSplit, .count = sizeof mine};
  transfer->values = {std::string(reinterpret_cast<const char*>(&mine), sizeof mine)};
  const std::string name = parent->NextName("-");
  const auto creation = std::make_shared<Steps>();
  *made_handle = nullptr;  // and so it stays for a rank without a color
  return Run({[=] { return parent->Begin(*transfer); },
              [=] {
                Outcome met = parent->End(*transfer);
                if (!met.ok() || color == kNoColor) return met;
                *creation = Creation(PlaceOf(*parent, transfer->values, name), made_handle);
                return (*creation)[0]();
              },
              [=] { return (*creation)[1] ? (*creation)[1]() : Outcome{}; }});
}

int Shrink(void* handle, const int* excluded, int num_excluded, void** made_handle) {
  const auto parent = Find(handle);
  if (parent == nullptr) return Report(kNoCommunicator);
  std::string name = parent->NextName("s");
  const std::vector<int> out(excluded, excluded + num_excluded);
  Place place{.name = "", .num_ranks = 0, .rank = 0, .device = parent->place().device};
  for (int rank = 0; rank < parent->place().num_ranks; ++rank) {
    if (std::find(out.begin(), out.end(), rank) != out.end()) {
      name += "-" + std::to_string(rank);
      continue;
    }
    ++place.num_ranks;
    if (rank < parent->place().rank) ++place.rank;
  }
  place.name = name;
  return Run(Creation(place, made_handle));
}

int End(void* handle, bool aborted) {
  if (const auto communicator = Find(handle); communicator != nullptr) {
    communicator->Leave(aborted);
  }
  DropHandle(handle);
  return 0;
}

}  // namespace

extern "C" {

int ncclGetVersion(int* version) {
  HPO_NCCL_CALL(ncclGetVersion);
  *version = static_cast<int>(hpo::emulator::Machine::Get().settings().versions.nccl);
  return 0;
}

const char* ncclGetErrorString(int code) {
  constexpr const char* kTexts[] = {"no error",
                                    "unhandled cuda error",
                                    "unhandled system error",
                                    "internal error",
                                    "invalid argument",
                                    "invalid usage",
                                    "remote process exited or there was a network error",
                                    "in progress"};
  return code >= 0 && code < static_cast<int>(std::size(kTexts)) ? kTexts[code] : "unknown code";
}

const char* ncclGetLastError(void*) { return hpo::emulator::nccl::LastError(); }

int ncclGetUniqueId(UniqueId* id) {
  HPO_NCCL_CALL(ncclGetUniqueId);
  *id = {};
  const std::string name = NewName();
  std::memcpy(id->bytes, name.data(), name.size());
  return 0;
}

int ncclCommInitRank(void** handle, int num_ranks, UniqueId id, int rank) {
  HPO_NCCL_CALL(ncclCommInitRank);
  return Create(handle, num_ranks, id, rank, hpo::emulator::nccl::ThisDevice());
}

// The configuration says how NCCL uses threads and networks. A communicator that must not block is
// ready when the call returns, which its contract allows.
int ncclCommInitRankConfig(void** handle, int num_ranks, UniqueId id, int rank, const void*) {
  HPO_NCCL_CALL(ncclCommInitRankConfig);
  return Create(handle, num_ranks, id, rank, hpo::emulator::nccl::ThisDevice());
}

// Several ids are several roots of one rendezvous: the first is enough.
int ncclCommInitRankScalable(void** handle, int num_ranks, int rank, int num_ids,
                             const UniqueId* ids, const void*) {
  HPO_NCCL_CALL(ncclCommInitRankScalable);
  if (num_ids < 1) return Report({hpo::emulator::nccl::kInvalidArgument, "no unique id"});
  return Create(handle, num_ranks, ids[0], rank, hpo::emulator::nccl::ThisDevice());
}

int ncclCommInitAll(void** handles, int num_ranks, const int* devices) {
  HPO_NCCL_CALL(ncclCommInitAll);
  UniqueId id = {};
  const std::string name = NewName();
  std::memcpy(id.bytes, name.data(), name.size());
  hpo::emulator::nccl::StartGroup();
  for (int rank = 0; rank < num_ranks; ++rank) {
    Create(handles + rank, num_ranks, id, rank, devices == nullptr ? rank : devices[rank]);
  }
  return hpo::emulator::nccl::EndGroup();
}

int ncclCommSplit(void* handle, int color, int key, void** made, const void*) {
  HPO_NCCL_CALL(ncclCommSplit);
  return Split(handle, color, key, made);
}

int ncclCommShrink(void* handle, int* excluded, int num_excluded, void** made, const void*, int) {
  HPO_NCCL_CALL(ncclCommShrink);
  return Shrink(handle, excluded, num_excluded, made);
}

// All that was begun has ended already.
int ncclCommFinalize(void*) {
  HPO_NCCL_CALL(ncclCommFinalize);
  return 0;
}

int ncclCommDestroy(void* handle) {
  HPO_NCCL_CALL(ncclCommDestroy);
  return End(handle, /*aborted=*/false);
}

int ncclCommAbort(void* handle) {
  HPO_NCCL_CALL(ncclCommAbort);
  return End(handle, /*aborted=*/true);
}

int ncclCommGetAsyncError(void* handle, int* code) {
  HPO_NCCL_CALL(ncclCommGetAsyncError);
  const auto communicator = Find(handle);
  if (communicator == nullptr) return Report(kNoCommunicator);
  *code = Report(communicator->failure());
  return 0;
}

int ncclCommCount(void* handle, int* count) {
  HPO_NCCL_CALL(ncclCommCount);
  const auto communicator = Find(handle);
  if (communicator == nullptr) return Report(kNoCommunicator);
  *count = communicator->place().num_ranks;
  return 0;
}

int ncclCommCuDevice(void* handle, int* device) {
  HPO_NCCL_CALL(ncclCommCuDevice);
  const auto communicator = Find(handle);
  if (communicator == nullptr) return Report(kNoCommunicator);
  *device = communicator->place().device;
  return 0;
}

int ncclCommUserRank(void* handle, int* rank) {
  HPO_NCCL_CALL(ncclCommUserRank);
  const auto communicator = Find(handle);
  if (communicator == nullptr) return Report(kNoCommunicator);
  *rank = communicator->place().rank;
  return 0;
}

int ncclGroupStart() {
  HPO_NCCL_CALL(ncclGroupStart);
  hpo::emulator::nccl::StartGroup();
  return 0;
}

int ncclGroupEnd() {
  HPO_NCCL_CALL(ncclGroupEnd);
  return hpo::emulator::nccl::EndGroup();
}

}  // extern "C"
