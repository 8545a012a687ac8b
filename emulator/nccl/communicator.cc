#include "emulator/nccl/communicator.h"

#include <utility>

#include "emulator/device_values.h"
#include "emulator/machine.h"
#include "emulator/nccl/reduction.h"
#include "emulator/streams/streams.h"

namespace hpo::emulator::nccl {
namespace {

// NCCL's kernels on each device of this process: loaded once, and never unloaded.
class LoadedKernels {
 public:
  bool Load(int device) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (devices_.contains(device)) return true;
    if (Machine::Get().Allocate(device, KernelBytes()) == nullptr) return false;
    devices_.insert(device);
    return true;
  }

 private:
  std::mutex mutex_;
  std::set<int> devices_;
};

LoadedKernels& Kernels() {
  static auto* const kernels = new LoadedKernels;
  return *kernels;
}

Outcome NoMemory(size_t bytes) {
  return {kUnhandledCudaError, "Failed to CUDA calloc " + std::to_string(bytes) + " bytes"};
}

char* Offset(const void* address, size_t bytes) {
  return static_cast<char*>(const_cast<void*>(address)) + bytes;
}

RankFileOptions OptionsOf(const Place& place) {
  const Settings& settings = Machine::Get().settings();
  RankFileOptions options;
  options.name = place.name;
  options.num_ranks = place.num_ranks;
  options.patience = std::chrono::seconds(settings.wait_seconds);
  if (!settings.state_file.empty()) options.path = settings.state_file + ".nccl-" + place.name;
  return options;
}

bool IsCaptured(void* stream) {
  CaptureInfo info;
  const StreamCode code = Streams::Get().GetCaptureInfo(stream, info);
  return code == kStreamOk && info.status == CaptureStatus::kActive;
}

void ForgetResult(const Transfer& transfer, int num_ranks) {
  const Operation& operation = transfer.operation;
  if (operation.kind == Kind::kSend) return;
  const bool from_each = operation.kind == Kind::kAllGather || operation.kind == Kind::kAllToAll ||
                         operation.kind == Kind::kGather;
  const size_t bytes = operation.count * BytesOf(operation.type);
  Forget(transfer.to, from_each ? bytes * static_cast<size_t>(num_ranks) : bytes);
}

bool IsReduced(Kind kind) {
  return kind == Kind::kAllReduce || kind == Kind::kReduce || kind == Kind::kReduceScatter;
}

}  // namespace

Outcome Communicator::Join(const Place& place, std::shared_ptr<Communicator>& joined) {
  if (place.num_ranks < 1 || place.rank < 0 || place.rank >= place.num_ranks) {
    return {kInvalidArgument, "rank " + std::to_string(place.rank) + " of " +
                                  std::to_string(place.num_ranks) + " ranks"};
  }
  if (place.device < 0 || place.device >= Machine::Get().num_devices()) {
    return {kInvalidArgument, "there is no device " + std::to_string(place.device)};
  }
  if (!Kernels().Load(place.device)) return NoMemory(KernelBytes());
  std::shared_ptr<RankFile> file;
  if (Outcome outcome = RankFile::Open(OptionsOf(place), file); !outcome.ok()) return outcome;
  const int gpu = Machine::Get().CardOf(place.device);
  if (Outcome outcome = file->Join(place.rank, gpu); !outcome.ok()) return outcome;
  joined.reset(new Communicator(place, std::move(file)));
  return {};
}

Communicator::Communicator(Place place, std::shared_ptr<RankFile> file)
    : place_(std::move(place)),
      file_(std::move(file)),
      meetings_(*file_, place_.rank),
      letters_(*file_, place_.rank) {}

Communicator::~Communicator() { Leave(/*aborted=*/false); }

void Communicator::Leave(bool aborted) {
  if (has_left_.exchange(true)) return;
  file_->Leave(place_.rank, aborted);
  const std::lock_guard<std::mutex> lock(mutex_);
  for (void* const memory : memory_) Machine::Get().Free(memory);
  memory_.clear();
}

Outcome Communicator::failure() {
  const RankFile::Guard guard(*file_);
  return file_->failure();
}

std::string Communicator::NextName(const std::string& purpose) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return place_.name + "." + std::to_string(++num_names_) + purpose;
}

Outcome Communicator::TakeMemory(size_t bytes) {
  if (bytes == 0) return {};
  void* const memory = Machine::Get().Allocate(place_.device, bytes);
  if (memory == nullptr) return NoMemory(bytes);
  memory_.push_back(memory);
  return {};
}

// NCCL connects ranks when they first need it.
Outcome Communicator::Connect(const Operation& operation) {
  if (place_.num_ranks == 1 || operation.kind == Kind::kSplit) return {};
  const std::string name = Machine::Get().card(place_.device).product;
  const std::lock_guard<std::mutex> lock(mutex_);
  std::set<int> peers;
  if (operation.kind == Kind::kSend || operation.kind == Kind::kReceive) {
    peers.insert(operation.root);
  } else if (operation.kind == Kind::kAllToAll || operation.kind == Kind::kGather ||
             operation.kind == Kind::kScatter) {
    for (int rank = 0; rank < place_.num_ranks; ++rank) peers.insert(rank);
  } else if (!is_connected_) {
    if (Outcome taken = TakeMemory(CollectiveBytes(name, buffers_)); !taken.ok()) return taken;
    is_connected_ = true;
  }
  for (const int peer : peers) {
    if (peer == place_.rank || peers_.contains(peer)) continue;
    if (Outcome taken = TakeMemory(PeerBytes(name, buffers_)); !taken.ok()) return taken;
    peers_.insert(peer);
  }
  return {};
}

int Communicator::AddReduction(std::optional<std::string> factor, const void* factor_address) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const int number = reductions_.empty() ? kNumReductions : reductions_.rbegin()->first + 1;
  reductions_[number] = {std::move(factor), factor_address};
  return number;
}

void Communicator::RemoveReduction(int number) {
  const std::lock_guard<std::mutex> lock(mutex_);
  reductions_.erase(number);
}

// What this rank gives, if it is known: multiplied already where a user operation does so.
std::optional<std::string> Communicator::Given(const Transfer& transfer) {
  const Operation& operation = transfer.operation;
  const size_t bytes = BytesGiven(operation, place_.num_ranks);
  const bool is_given = (operation.kind != Kind::kBroadcast && operation.kind != Kind::kScatter) ||
                        operation.root == place_.rank;
  if (!is_given || bytes > kLongestValue) return std::nullopt;
  std::optional<std::string> value = KnownBytes(transfer.from, bytes);
  if (!value.has_value() || operation.reduction != kNumReductions) return value;
  const std::lock_guard<std::mutex> lock(mutex_);
  const UserReduction& reduction = reductions_[transfer.user_reduction];
  const std::optional<std::string> factor =
      reduction.factor.has_value() ? reduction.factor
                                   : KnownBytes(reduction.address, BytesOf(operation.type));
  return factor.has_value() ? Scale(operation.type, *value, *factor) : std::nullopt;
}

Outcome Communicator::Begin(Transfer& transfer) {
  const Operation& operation = transfer.operation;
  if (has_left_) return {kInvalidUsage, "the communicator was destroyed"};
  if (operation.root < 0 || operation.root >= place_.num_ranks) {
    return {kInvalidArgument,
            Describe(operation) + ": there are " + std::to_string(place_.num_ranks) + " ranks"};
  }
  if (Outcome connected = Connect(operation); !connected.ok()) return connected;
  transfer.is_captured = operation.kind != Kind::kSplit && IsCaptured(transfer.stream);
  if (transfer.is_captured) {
    Streams::Get().Enqueue(transfer.stream, NodeKind::kKernel,
                           [=, ranks = place_.num_ranks] { ForgetResult(transfer, ranks); });
    return {};
  }
  if (operation.kind == Kind::kReceive) {
    transfer.number = letters_.Expect(operation);
    return failure();
  }
  if (operation.kind == Kind::kSend) return letters_.Send(operation, Given(transfer));
  std::optional<std::string> given =
      operation.kind == Kind::kSplit ? transfer.values.front() : Given(transfer);
  Outcome arrived = meetings_.Arrive(operation, given, transfer.number);
  if (!arrived.ok() || IsExchanged(operation, place_.num_ranks)) return arrived;
  return meetings_.Finish(operation, transfer.number, transfer.values);
}

Outcome Communicator::End(Transfer& transfer) {
  const Operation& operation = transfer.operation;
  if (transfer.is_captured || operation.kind == Kind::kSend) return {};
  if (operation.kind == Kind::kReceive) {
    DeliverLater(transfer);
    return {};
  }
  if (IsExchanged(operation, place_.num_ranks)) {
    Outcome met = meetings_.Finish(operation, transfer.number, transfer.values);
    if (!met.ok()) return met;
  }
  if (operation.kind == Kind::kSplit) return {};
  if (place_.num_ranks == 1 && operation.reduction != kNumReductions) {
    DeliverAlone(transfer);
  } else {
    Deliver(transfer);
  }
  return {};
}

// A receiver need not wait for its sender: as on a GPU, it can send in the meantime.
void Communicator::DeliverLater(const Transfer& transfer) {
  const size_t bytes = BytesGiven(transfer.operation, place_.num_ranks);
  if (bytes > kLongestValue) return Forget(transfer.to, bytes);
  hpo::emulator::Values().Expect(
      transfer.to, bytes, [weak = weak_from_this(), transfer]() -> std::optional<std::string> {
        std::optional<std::string> value;
        if (const auto self = weak.lock(); self != nullptr) {
          self->letters_.Receive(transfer.operation, transfer.number, value);
        }
        return value;
      });
}

// One rank keeps what it has, of any size.
void Communicator::DeliverAlone(const Transfer& transfer) {
  if (transfer.from == transfer.to) return;
  hpo::emulator::Values().Copy(transfer.to, transfer.from, BytesGiven(transfer.operation, 1));
}

void Communicator::DeliverReduced(const Transfer& transfer, size_t first_element) {
  const Operation& operation = transfer.operation;
  const size_t bytes = operation.count * BytesOf(operation.type);
  Forget(transfer.to, bytes);
  std::vector<std::string> known;
  for (const auto& value : transfer.values) {
    if (!value.has_value()) return;
    known.push_back(value->substr(first_element * BytesOf(operation.type), bytes));
  }
  const int reduction = operation.reduction == kNumReductions ? kSum : operation.reduction;
  const auto reduced = Reduce(operation.type, reduction, known);
  if (reduced.has_value()) Remember(transfer.to, *reduced);
}

void Communicator::Deliver(const Transfer& transfer) {
  const Operation& operation = transfer.operation;
  const bool is_root = operation.root == place_.rank;
  if ((operation.kind == Kind::kReduce || operation.kind == Kind::kGather) && !is_root) return;
  const size_t bytes = operation.count * BytesOf(operation.type);
  const auto rank = static_cast<size_t>(place_.rank);
  if (IsReduced(operation.kind)) {
    const bool scattered = operation.kind == Kind::kReduceScatter;
    return DeliverReduced(transfer, scattered ? rank * operation.count : 0);
  }
  const bool from_root = operation.kind == Kind::kBroadcast || operation.kind == Kind::kScatter;
  const bool in_parts = operation.kind == Kind::kScatter || operation.kind == Kind::kAllToAll;
  for (size_t from = 0; from < transfer.values.size(); ++from) {
    if (from_root && from != static_cast<size_t>(operation.root)) continue;
    const std::optional<std::string>& value = transfer.values[from];
    char* const to = Offset(transfer.to, from_root ? 0 : from * bytes);
    Forget(to, bytes);
    if (value.has_value()) Remember(to, value->substr(in_parts ? rank * bytes : 0, bytes));
  }
}

}  // namespace hpo::emulator::nccl
