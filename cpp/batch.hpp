// A batch of volumes over threads, with a way to stop all of them.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "gradient.hpp"

namespace homology {

struct Interrupted : std::exception {};

// Workspaces that are not in use. A call takes one for each thread and gives it back, so repeated calls find
// their memory ready; no more are kept than the machine has cores.
template <class Space>
class Pool {
 public:
  std::unique_ptr<Space> take() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (free_.empty()) return std::make_unique<Space>();
    auto space = std::move(free_.back());
    free_.pop_back();
    return space;
  }
  void give(std::unique_ptr<Space> space) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (free_.size() < std::max(1u, std::thread::hardware_concurrency())) free_.push_back(std::move(space));
  }
  void clear() {
    const std::lock_guard<std::mutex> lock(mutex_);
    free_.clear();
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<Space>> free_;
};

// Run work(item, poll) for each item, on the calling thread and up to threads - 1 more. `interrupted` is
// asked now and then, on the calling thread only; once it says so, every thread stops at its next poll and
// Interrupted is thrown. The first exception of any item is rethrown here.
class Batch {
 public:
  Batch(std::size_t count, std::function<void(std::size_t, const Poll&)> work,
        std::function<bool()> interrupted)
      : count_(count), work_(std::move(work)), interrupted_(std::move(interrupted)) {}

  void run(std::size_t threads) {
    std::vector<std::thread> others;
    threads = std::min(threads, count_);
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      running_ = threads > 0 ? threads - 1 : 0;
    }
    for (std::size_t i = 1; i < threads; ++i) {
      try {
        others.emplace_back([this] {
          drain([this] { stop_if_told(); });
          const std::lock_guard<std::mutex> lock(mutex_);
          --running_;
          done_.notify_one();
        });
      } catch (const std::system_error&) {  // no more threads to be had: go on with those there are
        const std::lock_guard<std::mutex> lock(mutex_);
        running_ -= threads - i;
        break;
      }
    }
    drain([this] { ask(); });
    wait();
    for (std::thread& other : others) other.join();
    if (error_) std::rethrow_exception(error_);
  }

 private:
  static constexpr std::chrono::milliseconds kPatience{50};

  void drain(const Poll& poll) {
    try {
      for (std::size_t item = next_++; item < count_; item = next_++) {
        poll();
        work_(item, poll);
      }
    } catch (...) {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (!error_) error_ = std::current_exception();
      stop_ = true;
    }
  }

  void stop_if_told() {
    if (stop_) throw Interrupted();
  }

  void ask() {
    stop_if_told();
    const auto now = std::chrono::steady_clock::now();
    if (now - asked_ < kPatience) return;
    asked_ = now;
    if (interrupted_()) throw Interrupted();
  }

  // The calling thread has nothing left to do but must still hear an interrupt.
  void wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (!done_.wait_for(lock, kPatience, [this] { return running_ == 0; })) {
      lock.unlock();
      const bool stop = !stop_ && interrupted_();
      lock.lock();
      if (stop) {
        if (!error_) error_ = std::make_exception_ptr(Interrupted());
        stop_ = true;
      }
    }
  }

  const std::size_t count_;
  const std::function<void(std::size_t, const Poll&)> work_;
  const std::function<bool()> interrupted_;
  std::atomic<std::size_t> next_{0};
  std::atomic<bool> stop_{false};
  std::chrono::steady_clock::time_point asked_ = std::chrono::steady_clock::now();
  std::mutex mutex_;
  std::condition_variable done_;
  std::size_t running_ = 0;
  std::exception_ptr error_;
};

}  // namespace homology
