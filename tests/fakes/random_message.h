// Messages with every kind of value that a field can hold, drawn by a source of numbers: a seeded
// generator, or the bytes that a fuzzer chose. Half of the values lie at or beyond some limit.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"

namespace hpo {

class RandomMessage {
 public:
  // `choose(n)` draws one of 0 ... n-1. `known` are texts that mean something to the receiver:
  // sessions, tokens, names.
  RandomMessage(std::function<uint64_t(uint64_t)> choose, std::vector<std::string> known)
      : choose_(std::move(choose)), known_(std::move(known)) {}

  // Sets some of the fields of `message`, at most `depth` messages deep.
  void Fill(google::protobuf::Message& message, int depth = 6) {
    using google::protobuf::FieldDescriptor;
    const google::protobuf::Descriptor& type = *message.GetDescriptor();
    for (int i = 0; i < type.field_count(); ++i) {
      const FieldDescriptor& field = *type.field(i);
      if (field.is_repeated()) {
        for (uint64_t left = choose_(3); left > 0; --left) Set(message, field, depth);
      } else if (choose_(3) != 0) {
        Set(message, field, depth);
      }
    }
  }

 private:
  void Set(google::protobuf::Message& message, const google::protobuf::FieldDescriptor& field,
           int depth) {
    using google::protobuf::FieldDescriptor;
    const google::protobuf::Reflection& in = *message.GetReflection();
    const bool many = field.is_repeated();
    switch (field.cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT32: {
        const auto value = static_cast<int32_t>(Whole());
        many ? in.AddInt32(&message, &field, value) : in.SetInt32(&message, &field, value);
        break;
      }
      case FieldDescriptor::CPPTYPE_INT64:
        many ? in.AddInt64(&message, &field, Whole()) : in.SetInt64(&message, &field, Whole());
        break;
      case FieldDescriptor::CPPTYPE_DOUBLE:
        many ? in.AddDouble(&message, &field, Real()) : in.SetDouble(&message, &field, Real());
        break;
      case FieldDescriptor::CPPTYPE_BOOL:
        many ? in.AddBool(&message, &field, choose_(2) == 1)
             : in.SetBool(&message, &field, choose_(2) == 1);
        break;
      case FieldDescriptor::CPPTYPE_ENUM: {
        // One more than there are, so that some are unknown.
        const auto value =
            static_cast<int>(choose_(static_cast<uint64_t>(field.enum_type()->value_count()) + 1));
        many ? in.AddEnumValue(&message, &field, value) : in.SetEnumValue(&message, &field, value);
        break;
      }
      case FieldDescriptor::CPPTYPE_STRING:
        many ? in.AddString(&message, &field, Text()) : in.SetString(&message, &field, Text());
        break;
      case FieldDescriptor::CPPTYPE_MESSAGE:
        if (depth > 0) {
          Fill(many ? *in.AddMessage(&message, &field) : *in.MutableMessage(&message, &field),
               depth - 1);
        }
        break;
      default:
        break;
    }
  }

  int64_t Whole() {
    constexpr int64_t kSome[] = {0,
                                 1,
                                 2,
                                 5,
                                 100,
                                 int64_t{1} << 31,
                                 int64_t{1} << 40,
                                 int64_t{1} << 53,
                                 (int64_t{1} << 53) + 1,
                                 std::numeric_limits<int64_t>::max(),
                                 std::numeric_limits<int64_t>::min(),
                                 -1};
    // Small ones more often: they are trial numbers, attempts and steps.
    return choose_(2) == 0 ? static_cast<int64_t>(choose_(4)) : kSome[choose_(std::size(kSome))];
  }

  double Real() {
    constexpr double kSome[] = {0.0,
                                0.5,
                                1.0,
                                -1.0,
                                1e-320,
                                1e308,
                                std::numeric_limits<double>::infinity(),
                                std::numeric_limits<double>::quiet_NaN()};
    return kSome[choose_(std::size(kSome))];
  }

  std::string Text() {
    if (!known_.empty() && choose_(3) != 0) return known_[choose_(known_.size())];
    constexpr size_t kLengths[] = {0, 1, 60, 200, 201, 4096, 4097, 65'536, 65'537};
    const size_t length = kLengths[choose_(std::size(kLengths))];
    const std::string kPieces[] = {"x", "\n", std::string(1, '\0'), "\"\\", "é", "[31m\x1b"};
    const std::string& piece = kPieces[choose_(std::size(kPieces))];
    std::string text;
    while (text.size() + piece.size() <= length) text += piece;
    return text;
  }

  std::function<uint64_t(uint64_t)> choose_;
  std::vector<std::string> known_;
};

}  // namespace hpo
