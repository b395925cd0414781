// Slotted multi-stage packet network of ns-3 nodes and point-to-point links. In every slot, an agent behind a Unix stream
// socket selects, for each link, the class whose head packet the link sends. README.md describes the model and the
// protocol.

#include "agent.h"

#include <algorithm>
#include <chrono>
#include <iomanip>
#include <iostream>
#include <iterator>
#include <limits>

namespace iswitch {
namespace {

struct Result {
    uint64_t seed;
    double queued;
    double delay_little;
    double delay;
    uint64_t arrived;
    uint64_t left;
    uint64_t left_inside;
    bool consistent;
};

constexpr std::chrono::seconds progress_interval{2};

/// Prints the progress of a long job on stderr, unless --quiet is given.
class Progress {
  public:
    explicit Progress(const Options& options) : options_(options) {}

    void Show(uint64_t index, uint64_t slot, uint64_t queued) {
        const auto now = std::chrono::steady_clock::now();
        if (options_.quiet || now - shown_ < progress_interval) {
            return;
        }
        shown_ = now;
        std::cerr << "run " << index + 1 << " of " << options_.repeat << ", slot " << slot << " of " << options_.slots
                  << ": " << queued << " packets queued" << std::endl;
    }

  private:
    const Options& options_;
    std::chrono::steady_clock::time_point shown_ = std::chrono::steady_clock::now();
};

/// One run from an empty network, with its counters.
class Run {
  public:
    Run(const Options& options, const Traffic& traffic, uint64_t index, Progress& progress)
        : options_(options), traffic_(traffic), index_(index), progress_(progress),
          network_(options.stages, options.switches), agent_(options.agent, options.timeout_s) {
        SetSeed(options.seed + index);
        gap_ = CreateRandom<ns3::ExponentialRandomVariable>(arrivals_stream);
        if (!options.trace.empty()) {
            trace_.open(options.trace);
            trace_ << "slot,queued_before_arrivals,queued_after_arrivals" << std::endl;
            CheckTrace();
        }
    }

    Result Execute() {
        ns3::Simulator::ScheduleNow(&Run::Slot, this, 0);
        ns3::Simulator::Run();
        ns3::Simulator::Destroy();
        trace_.flush();
        CheckTrace();
        return Count();
    }

  private:
    void CheckTrace() const {
        if (!trace_) {
            Fail("--trace ", options_.trace, ": cannot be written: ", std::strerror(errno));
        }
    }

    void Slot(uint64_t slot) {
        const uint64_t before = Total(network_.Queues());
        Arrive(slot);
        const QueueLengths queues = network_.Queues();
        const uint64_t after = Total(queues);
        queued_before_ += before;
        queued_after_ += after;
        arrived_ += after - before;
        if (trace_.is_open()) {
            trace_ << slot << ',' << before << ',' << after << '\n';
        }
        progress_.Show(index_, slot, after);
        network_.Send(agent_.Ask(slot, queues));
        if (slot + 1 < options_.slots) {
            ns3::Simulator::Schedule(ns3::MicroSeconds(slot_us), &Run::Slot, this, slot + 1);
        }
    }

    void Arrive(uint64_t slot) {
        if (traffic_.recorded) {
            for (const Arrival& arrival : (*traffic_.recorded)[slot]) {
                network_.Arrive(arrival);
            }
            return;
        }
        for (uint64_t i = 0; i < options_.switches; ++i) {
            for (uint64_t j = 0; j < options_.switches; ++j) {
                network_.Arrive({slot, i, j, DrawPoisson(traffic_.rates[i][j])});
            }
        }
    }

    /// Returns the number of arrivals of a Poisson process in a slot: the number of exponential gaps with mean 1 that
    /// fit into `rate`.
    uint64_t DrawPoisson(double rate) {
        uint64_t count = 0;
        for (double at = gap_->GetValue(1.0, 0.0); at < rate; at += gap_->GetValue(1.0, 0.0)) {
            ++count;
        }
        return count;
    }

    Result Count() const {
        const Sojourns left = network_.CountLeft();
        const Sojourns inside = network_.CountInside(options_.slots);
        const auto slots = static_cast<double>(options_.slots);
        Result result;
        result.seed = options_.seed + index_;
        result.queued = static_cast<double>(queued_before_) / slots;
        result.delay_little = static_cast<double>(queued_after_) / slots / traffic_.rate;
        result.delay = static_cast<double>(left.sum_slots) / static_cast<double>(left.packets);
        result.arrived = arrived_;
        result.left = left.packets;
        result.left_inside = inside.packets;
        result.consistent =
            left.sum_slots + inside.sum_slots == queued_after_ && left.packets + inside.packets == arrived_;
        return result;
    }

    const Options& options_;
    const Traffic& traffic_;
    uint64_t index_;
    Progress& progress_;
    Network network_;
    Agent agent_;
    Ptr<ns3::ExponentialRandomVariable> gap_;
    std::ofstream trace_;
    uint64_t queued_before_ = 0; // Sums over the slots.
    uint64_t queued_after_ = 0;
    uint64_t arrived_ = 0;
};

struct Estimate {
    double mean;
    double ci95; // Half the width of the 95 % confidence interval; NaN for a single run.
};

/// Two-sided 95 % quantile of Student's t distribution.
double StudentQuantile95(size_t freedom) {
    constexpr double table[] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
                                2.201,  2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
                                2.080,  2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042};
    // Beyond the table, the approximation is accurate to 0.2 %.
    return freedom <= std::size(table) ? table[freedom - 1] : 1.96 + 2.4 / static_cast<double>(freedom);
}

Estimate EstimateOf(const std::vector<Result>& results, double Result::* metric) {
    const auto count = static_cast<double>(results.size());
    double sum = 0;
    double square_sum = 0;
    for (const Result& result : results) {
        sum += result.*metric;
    }
    const double mean = sum / count;
    for (const Result& result : results) {
        square_sum += (result.*metric - mean) * (result.*metric - mean);
    }
    if (results.size() == 1) {
        return {mean, std::numeric_limits<double>::quiet_NaN()};
    }
    return {mean, StudentQuantile95(results.size() - 1) * std::sqrt(square_sum / (count - 1) / count)};
}

bool AllConsistent(const std::vector<Result>& results) {
    return std::all_of(results.begin(), results.end(), [](const Result& result) { return result.consistent; });
}

struct Metric {
    const char* name;
    double Result::* value;
};

constexpr Metric metrics[] = {
    {"queued", &Result::queued}, {"delay_little", &Result::delay_little}, {"delay", &Result::delay}};

void PrintJson(const Options& options, double load, const std::vector<Result>& results) {
    ordered_json report = {{"stages", options.stages},
                           {"switches", options.switches},
                           {"slots", options.slots},
                           {"load", load},
                           {"consistent", AllConsistent(results)}};
    for (const Metric& metric : metrics) {
        const Estimate estimate = EstimateOf(results, metric.value);
        report[metric.name] = estimate.mean;
        report[metric.name + std::string("_ci95")] = estimate.ci95;
    }
    for (const Result& result : results) {
        ordered_json run = {{"seed", result.seed},
                            {"arrived", result.arrived},
                            {"left", result.left},
                            {"left_inside", result.left_inside},
                            {"consistent", result.consistent}};
        for (const Metric& metric : metrics) {
            run[metric.name] = result.*metric.value;
        }
        report["runs"].push_back(run);
    }
    std::cout << report.dump() << std::endl;
}

/// Formats a number; prints "none" for the mean of no values, where JSON has null.
std::string Decimal(double value) {
    std::ostringstream text;
    text << std::fixed << std::setprecision(3) << value;
    return std::isnan(value) ? "none" : text.str();
}

void PrintText(const Options& options, double load, const std::vector<Result>& results) {
    std::cout << std::boolalpha << options.stages << " stages of " << options.switches << " switches, " << options.slots
              << " slots, load " << Decimal(load) << "\n";
    for (const Result& result : results) {
        std::cout << "seed " << result.seed << ": ";
        for (const Metric& metric : metrics) {
            std::cout << metric.name << " " << Decimal(result.*metric.value) << ", ";
        }
        std::cout << "arrived " << result.arrived << ", left " << result.left << ", left_inside " << result.left_inside
                  << ", consistent: " << result.consistent << "\n";
    }
    if (results.size() > 1) {
        std::cout << "mean of " << results.size() << " runs, with 95 % confidence intervals: ";
        const char* separator = "";
        for (const Metric& metric : metrics) {
            const Estimate estimate = EstimateOf(results, metric.value);
            std::cout << separator << metric.name << " " << Decimal(estimate.mean) << " +- " << Decimal(estimate.ci95);
            separator = ", ";
        }
        std::cout << "\n";
    }
    std::cout << std::flush;
}

int Main(int argc, char** argv) {
    const Options options = ParseOptions(argc, argv);
    const Traffic traffic = ReadTraffic(options);
    Progress progress(options);
    std::vector<Result> results;
    for (uint64_t index = 0; index < options.repeat; ++index) {
        results.push_back(Run(options, traffic, index, progress).Execute());
    }
    const double load = traffic.rate / static_cast<double>(options.switches * options.switches);
    (options.json ? PrintJson : PrintText)(options, load, results);
    return AllConsistent(results) ? 0 : 1;
}

} // namespace
} // namespace iswitch

int main(int argc, char** argv) {
    try {
        return iswitch::Main(argc, argv);
    } catch (const std::exception& error) {
        std::cerr << "routing: " << error.what() << std::endl;
        return 1;
    }
}
