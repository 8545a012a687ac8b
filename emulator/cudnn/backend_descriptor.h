// A descriptor of cuDNN's graph API: what was set on it, by the number of the attribute.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "emulator/cudnn/published_numbers.h"

namespace hpo::emulator::cudnn {

class DescriptorContent;

// The elements of one attribute: plain ones in `bytes`, descriptors in `descriptors`.
struct AttributeValue {
  int type = 0;
  int64_t count = 0;
  std::vector<std::byte> bytes;
  std::vector<std::shared_ptr<const DescriptorContent>> descriptors;
};

// Lives as long as a descriptor of the program or another content refers to it, so that a plan
// keeps what it was made of after the program has destroyed the parts.
class DescriptorContent {
 public:
  explicit DescriptorContent(const DescriptorKind& kind) : kind_(&kind) {}

  const DescriptorKind& kind() const { return *kind_; }

  void Set(int attribute, AttributeValue value) { values_[attribute] = std::move(value); }
  // Null where the attribute was not set.
  const AttributeValue* Find(int attribute) const;

  // The following end the program, naming the attribute, if it was not set or has another type.
  const std::shared_ptr<const DescriptorContent>& Child(int attribute) const;
  std::vector<int64_t> Integers(int attribute) const;
  int Number(int attribute) const;  // of 32 bits

  // "CALL of attribute NUMBER of KIND", to name what is not emulated.
  std::string Name(const char* call, int attribute) const;

 private:
  const AttributeValue& Get(int attribute) const;

  const DescriptorKind* kind_;
  std::map<int, AttributeValue> values_;
};

// What a program holds of it.
struct BackendDescriptor {
  explicit BackendDescriptor(const DescriptorKind& kind)
      : content(std::make_shared<DescriptorContent>(kind)) {}

  std::shared_ptr<DescriptorContent> content;
};

}  // namespace hpo::emulator::cudnn
