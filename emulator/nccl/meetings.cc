#include "emulator/nccl/meetings.h"

#include <cstring>

namespace hpo::emulator::nccl {

size_t BytesGiven(const Operation& operation, int num_ranks) {
  const size_t bytes = operation.count * BytesOf(operation.type);
  const bool for_each_rank = operation.kind == Kind::kReduceScatter ||
                             operation.kind == Kind::kAllToAll || operation.kind == Kind::kScatter;
  return for_each_rank ? bytes * static_cast<size_t>(num_ranks) : bytes;
}

bool IsExchanged(const Operation& operation, int num_ranks) {
  return BytesGiven(operation, num_ranks) <= kLongestValue;
}

std::string Meetings::NameOf(const Operation& operation, uint64_t number) {
  return Describe(operation) + ", collective " + std::to_string(number) + " of communicator " +
         file_.options().name + " with " + std::to_string(file_.num_ranks()) + " ranks";
}

// Waits until all ranks are done with the meeting whose place this one takes.
Outcome Meetings::AwaitPlace(const Operation& operation, uint64_t number) {
  const Meeting& meeting = file_.meeting(number);
  return file_.Await(rank_, NameOf(operation, number), [&] {
    std::vector<int> behind;
    if (meeting.number == 0 || meeting.number == number) return behind;
    for (int rank = 0; rank < file_.num_ranks(); ++rank) {
      if (file_.arrived(rank) <= meeting.number) behind.push_back(rank);
    }
    if (behind.empty()) behind.push_back(rank_);  // of a group with more collectives than places
    return behind;
  });
}

Outcome Meetings::Arrive(const Operation& operation, const std::optional<std::string>& value,
                         uint64_t& number) {
  const RankFile::Guard guard(file_);
  if (Outcome failed = file_.failure(); !failed.ok()) return failed;
  number = file_.arrived(rank_) + 1;
  Meeting& meeting = file_.meeting(number);
  if (Outcome waited = AwaitPlace(operation, number); !waited.ok()) return waited;
  if (meeting.number != number) {
    meeting = {
        .number = number, .operation = operation, .num_arrived = 0, .num_done = 0, .first = rank_};
  } else if (meeting.operation != operation) {
    const Outcome mismatch{
        kInvalidUsage, "ranks disagree on " + NameOf(meeting.operation, number) + ": rank " +
                           std::to_string(meeting.first) + " does " + Describe(meeting.operation) +
                           ", rank " + std::to_string(rank_) + " does " + Describe(operation)};
    file_.Fail(mismatch);
    return mismatch;
  }
  Value& given = file_.meeting_value(number, rank_);
  given.is_known = value.has_value() ? 1 : 0;
  given.num_bytes = value.has_value() ? static_cast<uint32_t>(value->size()) : 0;
  if (value.has_value()) std::memcpy(given.bytes, value->data(), value->size());
  file_.arrived(rank_) = number;
  ++meeting.num_arrived;
  file_.Changed();
  return {};
}

Outcome Meetings::Await(const Operation& operation, uint64_t number) {
  const bool from_root = operation.kind == Kind::kBroadcast || operation.kind == Kind::kScatter;
  const bool to_root = operation.kind == Kind::kReduce || operation.kind == Kind::kGather;
  const bool is_root = operation.root == rank_;
  if (!IsExchanged(operation, file_.num_ranks()) || (from_root && is_root) ||
      (to_root && !is_root)) {
    return {};
  }
  return file_.Await(rank_, NameOf(operation, number), [&] {
    std::vector<int> missing;
    for (int rank = 0; rank < file_.num_ranks(); ++rank) {
      const bool needed = !from_root || rank == operation.root;
      if (needed && file_.arrived(rank) < number) missing.push_back(rank);
    }
    return missing;
  });
}

Outcome Meetings::Finish(const Operation& operation, uint64_t number, Values& values) {
  const RankFile::Guard guard(file_);
  if (Outcome waited = Await(operation, number); !waited.ok()) return waited;
  values.assign(static_cast<size_t>(file_.num_ranks()), std::nullopt);
  Meeting& meeting = file_.meeting(number);
  for (int rank = 0; rank < file_.num_ranks(); ++rank) {
    const Value& value = file_.meeting_value(number, rank);
    if (file_.arrived(rank) < number || value.is_known == 0) continue;
    values[static_cast<size_t>(rank)] = std::string(value.bytes, value.num_bytes);
  }
  if (++meeting.num_done == file_.num_ranks()) meeting.number = 0;
  return {};
}

}  // namespace hpo::emulator::nccl
