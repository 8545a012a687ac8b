#include "emulator/nccl/letters.h"

#include <cstring>

namespace hpo::emulator::nccl {

Outcome Letters::Send(const Operation& operation, const std::optional<std::string>& value) {
  const RankFile::Guard guard(file_);
  if (Outcome failed = file_.failure(); !failed.ok()) return failed;
  const size_t index = next_++ % RankFile::kNumLetters;
  file_.letter(rank_, index) = {
      .number = ++file_.sent(rank_, operation.root), .to = operation.root, .operation = operation};
  Value& sent = file_.letter_value(rank_, index);
  sent.is_known = value.has_value() ? 1 : 0;
  sent.num_bytes = value.has_value() ? static_cast<uint32_t>(value->size()) : 0;
  if (value.has_value()) std::memcpy(sent.bytes, value->data(), value->size());
  file_.Changed();
  return {};
}

Outcome Letters::Open(const Operation& operation, size_t index, std::optional<std::string>& value) {
  Letter& letter = file_.letter(operation.root, index);
  letter.number = 0;
  if (letter.operation.type != operation.type || letter.operation.count != operation.count) {
    const Outcome mismatch{kInvalidUsage, "ranks disagree: rank " + std::to_string(operation.root) +
                                              " does " + Describe(letter.operation) + ", rank " +
                                              std::to_string(rank_) + " does " +
                                              Describe(operation)};
    file_.Fail(mismatch);
    return mismatch;
  }
  const Value& sent = file_.letter_value(operation.root, index);
  if (sent.is_known != 0) value = std::string(sent.bytes, sent.num_bytes);
  return {};
}

uint64_t Letters::Expect(const Operation& operation) {
  return ++expected_[static_cast<size_t>(operation.root)];
}

Outcome Letters::Receive(const Operation& operation, uint64_t number,
                         std::optional<std::string>& value) {
  const int from = operation.root;
  const RankFile::Guard guard(file_);
  if (Outcome failed = file_.failure(); !failed.ok()) return failed;
  value.reset();
  if (operation.count * BytesOf(operation.type) <= kLongestValue) {
    const std::string what = Describe(operation) + " of communicator " + file_.options().name;
    Outcome waited = file_.Await(rank_, what, [&] {
      return file_.sent(from, rank_) < number ? std::vector<int>{from} : std::vector<int>{};
    });
    if (!waited.ok()) return waited;
  }
  for (size_t index = 0; index < RankFile::kNumLetters; ++index) {
    const Letter& letter = file_.letter(from, index);
    if (letter.number == number && letter.to == rank_) return Open(operation, index, value);
  }
  return {};
}

}  // namespace hpo::emulator::nccl
