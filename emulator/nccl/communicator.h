// One rank's view of a communicator.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "emulator/nccl/buffers.h"
#include "emulator/nccl/letters.h"
#include "emulator/nccl/meetings.h"
#include "emulator/nccl/rank_file.h"

namespace hpo::emulator::nccl {

// A collective, send or receive of one rank, from its call to its end. Device addresses.
struct Transfer {
  Operation operation;
  const void* from = nullptr;
  void* to = nullptr;
  void* stream = nullptr;
  int user_reduction = 0;    // by number, for reduction kNumReductions
  bool is_captured = false;  // set by Begin
  uint64_t number = 0;       // set by Begin
  Values values;             // set by End: what each rank gave
};

// Where a rank of a new communicator is.
struct Place {
  std::string name;  // the same on all its ranks, and no other communicator's
  int num_ranks = 1;
  int rank = 0;
  int device = 0;
};

// Safe for threads, as NCCL's: one thread at a time for transfers, any for Leave and failure.
class Communicator : public std::enable_shared_from_this<Communicator> {
 public:
  // Joins the communicator without waiting for other ranks.
  static Outcome Join(const Place& place, std::shared_ptr<Communicator>& joined);
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  const Place& place() const { return place_; }
  Outcome AwaitRanks() { return file_->AwaitRanks(place_.rank); }

  // The two halves of a transfer. In between, one thread may begin those of other ranks. Known
  // values arrive at Begin or End, unknown ones are forgotten there; what a rank receives arrives
  // when it is first read, and a failure to receive fails the rank's next call. On a stream that is
  // being captured, ranks do not meet: what the graph transfers is unknown, each time it is
  // launched.
  Outcome Begin(Transfer& transfer);
  Outcome End(Transfer& transfer);

  // The number of a reduction that multiplies by `factor`, one element, before it sums; or by the
  // device's value at `factor_address` when it is used.
  int AddReduction(std::optional<std::string> factor, const void* factor_address);
  void RemoveReduction(int number);

  // The name of the next communicator that all ranks split off together.
  std::string NextName(const std::string& purpose);

  // A failure of any rank, success if none.
  Outcome failure();
  // The rank takes part no more, and its device memory is free.
  void Leave(bool aborted);

 private:
  struct UserReduction {
    std::optional<std::string> factor;
    const void* address;
  };

  Communicator(Place place, std::shared_ptr<RankFile> file);
  Outcome TakeMemory(size_t bytes);
  Outcome Connect(const Operation& operation);
  std::optional<std::string> Given(const Transfer& transfer);
  void DeliverLater(const Transfer& transfer);
  void Deliver(const Transfer& transfer);
  void DeliverReduced(const Transfer& transfer, size_t first_element);
  void DeliverAlone(const Transfer& transfer);

  const Place place_;
  const std::shared_ptr<RankFile> file_;
  const BufferSettings buffers_ = ReadBufferSettings();
  Meetings meetings_;
  Letters letters_;
  std::atomic<bool> has_left_{false};

  std::mutex mutex_;  // guards what follows
  std::vector<void*> memory_;
  bool is_connected_ = false;
  std::set<int> peers_;
  std::map<int, UserReduction> reductions_;
  int num_names_ = 0;
};

}  // namespace hpo::emulator::nccl
