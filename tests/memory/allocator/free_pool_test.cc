#include "memory/allocator/free_pool.h"

#include <algorithm>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace hpo::memory {
namespace {

using Entry = FreePool::Entry;

bool Smaller(const Entry& a, const Entry& b) {
  return a.size != b.size ? a.size < b.size : a.address < b.address;
}

TEST(FreePool, AnEmptyOneHasNothing) {
  const FreePool pool;
  EXPECT_FALSE(pool.BestFit(512));
  EXPECT_TRUE(pool.Sorted().empty());
}

TEST(FreePool, TakesTheSmallestThatIsLargeEnoughAtTheLowestAddress) {
  FreePool pool;
  pool.Insert({.size = 4096, .address = 900, .block = 1});
  pool.Insert({.size = 2048, .address = 500, .block = 2});
  pool.Insert({.size = 2048, .address = 100, .block = 3});
  pool.Insert({.size = int64_t{1} << 45, .address = 0, .block = 4});
  EXPECT_EQ(pool.At(pool.BestFit(512)).block, 3);
  EXPECT_EQ(pool.At(pool.BestFit(2048)).block, 3);
  EXPECT_EQ(pool.At(pool.BestFit(2560)).block, 1);
  EXPECT_EQ(pool.At(pool.BestFit(4608)).block, 4);
  EXPECT_FALSE(pool.BestFit((int64_t{1} << 45) + 512));
  EXPECT_EQ(pool.At(pool.After(pool.BestFit(512))).block, 2);
  EXPECT_FALSE(pool.After(pool.BestFit(4608)));
}

// As a sorted list of all entries would.
TEST(FreePool, DoesWhatASortedListDoes) {
  std::mt19937_64 draw(7);
  FreePool pool;
  std::vector<Entry> sorted;
  for (int step = 0; step < 20'000; ++step) {
    const int64_t size = 512 * static_cast<int64_t>(1 + (draw() >> (44 + draw() % 20)));
    if (sorted.empty() || draw() % 2 == 0) {
      const Entry entry{.size = size, .address = step, .block = step};
      pool.Insert(entry);
      sorted.insert(std::upper_bound(sorted.begin(), sorted.end(), entry, Smaller), entry);
      continue;
    }
    const auto expected =
        std::lower_bound(sorted.begin(), sorted.end(), Entry{.size = size}, Smaller);
    const FreePool::Place found = pool.BestFit(size);
    ASSERT_EQ(static_cast<bool>(found), expected != sorted.end());
    if (!found) continue;
    ASSERT_EQ(pool.At(found), *expected);
    if (draw() % 2 == 0) {
      pool.Erase(found);
    } else {
      pool.Erase(expected->size, expected->address);
    }
    sorted.erase(expected);
  }
  EXPECT_EQ(pool.Sorted(), sorted);
}

}  // namespace
}  // namespace hpo::memory
